/// Decodes a response's head, as strictly as a request's: origin servers are untrusted too. RFC 9112 §4, §5.
struct ResponseHeadDecoder {
    private var scanner = HeadScanner()
    private var hasStatusLine = false
    /// The framing of the content, once the head is complete.
    private(set) var framing = ContentFraming.none

    init() {}

    /// Continues reading. The input begins at the start of the response; `response` must have been reset before the first call.
    ///
    /// - Returns: the length of the head including its last line end, or `nil` if it is not complete yet.
    mutating func decode(_ input: RawSpan, into response: inout HttpResponse, method: HttpMethod, limits: HeadLimits)
        throws(GatewayError) -> Int?
    {
        if !hasStatusLine {
            guard try statusLine(input, into: &response, limits: limits) else { return nil }
            hasStatusLine = true
        }
        do {
            guard try scanner.fields(input, into: &response.fields, limits: limits) else { return nil }
        } catch {
            throw error.inResponse(limits)
        }
        framing = try ResponseFraming.interpret(&response, method: method)
        return scanner.position
    }

    private mutating func statusLine(
        _ input: RawSpan, into response: inout HttpResponse, limits: HeadLimits
    ) throws(GatewayError) -> Bool {
        let lineEnd: Int?
        do {
            lineEnd = try scanner.lineEnd(input, limit: limits.head, allowsTab: true)
        } catch {
            throw error.inResponse(limits)
        }
        guard let end = lineEnd else {
            guard input.byteCount < limits.head else { throw HeadFault.tooLarge.inResponse(limits) }
            return false
        }
        guard end >= 12 else { throw .badResponse("the status line is too short") }
        do {
            response.version = try StartLine.version(input, at: 0)
        } catch {
            throw .badResponse(error.reason)
        }
        var code = 0
        for index in 9..<12 {
            guard ByteClass.isDigit(input.byte(at: index)) else {
                throw .badResponse("the status code is not three digits")
            }
            code = code * 10 + Int(input.byte(at: index) & 0x0f)
        }
        guard input.byte(at: 8) == 0x20, end == 12 || input.byte(at: 12) == 0x20, let status = HttpStatus(code) else {
            throw .badResponse("the status line is malformed")
        }
        response.status = status
        if end > 13 { setReason(input.extracting(13..<end), &response) }
        scanner.passStartLine(endingAt: end)
        return true
    }

    /// Stores the reason phrase if it differs from the standard one.
    @inline(__always)
    private func setReason(_ text: RawSpan, _ response: inout HttpResponse) {
        // The most frequent case.
        if response.status == .ok, text.byteCount == 2, text.byte(at: 0) == 0x4f, text.byte(at: 1) == 0x4b { return }
        let usual = response.status.reasonPhrase.utf8
        var isUsual = usual.count == text.byteCount
        var index = 0
        for byte in usual where isUsual {
            isUsual = text.byte(at: index) == byte
            index &+= 1
        }
        if !isUsual { response.reason = text.withUnsafeBytes { Array($0) } }
    }
}
