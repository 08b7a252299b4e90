/// Decodes a request's head. RFC 9112 §3, §5.
///
/// It returns `nil` if it needs more bytes, or the length of a complete head, or throws. It keeps no pointer to its input.
struct RequestHeadDecoder {
    private var scanner = HeadScanner()
    private var hasRequestLine = false
    /// The framing of the content, once the head is complete.
    private(set) var framing = ContentFraming.none

    init() {}

    /// Continues reading. The input begins at the start of the request; `request` must have been reset before the first call. With
    /// `isReverse`, the gateway owns the path; without it, a proxy passes it on as received.
    ///
    /// - Returns: the length of the head including its last line end, or `nil` if it is not complete yet.
    mutating func decode(_ input: RawSpan, into request: inout HttpRequest, limits: HeadLimits, isReverse: Bool)
        throws(GatewayError) -> Int?
    {
        if !hasRequestLine {
            guard try requestLine(input, into: &request, limits: limits, isReverse: isReverse) else { return nil }
            hasRequestLine = true
        }
        do {
            guard try scanner.fields(input, into: &request.fields, limits: limits) else { return nil }
        } catch {
            throw error.inRequest(limits)
        }
        framing = try RequestFraming.interpret(&request)
        return scanner.position
    }

    /// The maximum length of a method in bytes. Registered methods have up to 17.
    static let longestMethod = 32
    /// The error for a request whose method is longer than that. RFC 9112 §3: "SHOULD respond with a 501".
    static var methodTooLong: GatewayError {
        GatewayError(
            .downstream, .methodUnsupported, "the method is longer than \(longestMethod) bytes, a limit that is fixed")
    }
    /// The maximum length of a request line without its target: a method, two spaces, a version, CRLF, and a reserve.
    private static let aroundTarget = 64

    private mutating func requestLine(
        _ input: RawSpan, into request: inout HttpRequest, limits: HeadLimits, isReverse: Bool
    ) throws(GatewayError) -> Bool {
        // Up to four empty lines before a request are skipped. RFC 9112 §2.2.
        while scanner.position < 8, scanner.position &+ 1 < input.byteCount, input.byte(at: scanner.position) == 0x0d,
            input.byte(at: scanner.position &+ 1) == 0x0a
        { scanner.position &+= 2 }
        let start = scanner.position
        // Clamped, so that no limit causes an overflow.
        let room = min(limits.requestTarget, 1 << 40) &+ start &+ Self.aroundTarget
        let lineEnd: Int?
        do {
            lineEnd = try scanner.lineEnd(input, limit: min(limits.head, room), allowsTab: false)
        } catch {
            throw error.inRequest(limits)
        }
        guard let end = lineEnd else {
            guard input.byteCount >= min(limits.head, room) else { return false }
            _ = try methodEnd(input, start, input.byteCount)
            throw limits.head < room ? HeadFault.tooLarge.inRequest(limits) : limits.targetTooLong
        }

        let methodEnd = try methodEnd(input, start, end)
        request.method = RequestHeadDecoder.method(input, start, methodEnd)
        request.receivedMethod = request.method

        let targetEnd = end &- 9
        guard targetEnd > methodEnd, input.byte(at: targetEnd) == 0x20 else {
            throw .malformed("the request line does not end with a version")
        }
        request.version = try StartLine.version(input, at: targetEnd &+ 1)

        let targetStart = methodEnd &+ 1
        guard targetStart < targetEnd else { throw .malformed("the request target is empty") }
        guard targetEnd &- targetStart <= limits.requestTarget else { throw limits.targetTooLong }
        guard isTarget(input, targetStart, targetEnd) else {
            throw .malformed("the request target holds a space, a control character or a fragment")
        }
        try request.target.parse(
            input.extracting(targetStart..<targetEnd),
            isConnect: input.byte(at: start) == 0x43 && request.method == .connect,
            isOptions: input.byte(at: start) == 0x4f && request.method == .options, isReverse: isReverse,
            isPassed: !isReverse)
        scanner.passStartLine(endingAt: end)
        return true
    }

    /// The place of the space after the method.
    @inline(__always)
    private func methodEnd(_ input: RawSpan, _ start: Int, _ end: Int) throws(GatewayError) -> Int {
        var index = start
        let most = min(end, start &+ Self.longestMethod)
        while index < most, ByteClass.isToken(input.byte(at: index)) { index &+= 1 }
        guard index > start, index < end, input.byte(at: index) == 0x20 else {
            throw fault(ofMethod: input, start, end)
        }
        return index
    }

    /// The error for a request line that does not begin with a method of at most that length and a space.
    @inline(never)
    private func fault(ofMethod input: RawSpan, _ start: Int, _ end: Int) -> GatewayError {
        var index = start
        while index < end, ByteClass.isToken(input.byte(at: index)) { index &+= 1 }
        // Without a line end, the line is the whole input: its method may go on.
        let isMethod = index == input.byteCount || index < end && input.byte(at: index) == 0x20
        return isMethod && index &- start > Self.longestMethod
            ? Self.methodTooLong : .malformed("the request line does not begin with a method and a space")
    }

    /// Whether the bytes, which contain no control characters, form a valid target: without spaces and fragment signs.
    @inline(__always)
    private func isTarget(_ input: RawSpan, _ start: Int, _ end: Int) -> Bool {
        var index = start
        while index &+ 8 <= end {
            let word = input.word(at: index)
            guard Swar.equal(word, Swar.all(0x20)) | Swar.equal(word, Swar.all(0x23)) == 0 else { return false }
            index &+= 8
        }
        while index < end {
            guard ByteClass.isTarget(input.byte(at: index)) else { return false }
            index &+= 1
        }
        return true
    }

    /// The method with that name, which must be a token: the caller has checked each byte.
    @inline(__always)
    static func method(_ input: RawSpan, _ start: Int, _ end: Int) -> HttpMethod {
        // Known names have at most eight bytes, and are compared as one number.
        var name: UInt64 = 0
        guard end &- start <= 8 else { return other() }
        for index in start..<end { name = name << 8 | UInt64(input.byte(at: index)) }
        switch name {
        case 0x474554: return .get
        case 0x48454144: return .head
        case 0x504f5354: return .post
        case 0x505554: return .put
        case 0x4f5054_494f4e53: return .options
        case 0x50415443_48: return .patch
        case 0x4445_4c455445: return .delete
        case 0x434f4e_4e454354: return .connect
        case 0x54_52414345: return .trace
        default: return other()
        }

        func other() -> HttpMethod {
            HttpMethod(
                verified: input.extracting(start..<end).withUnsafeBytes { String(decoding: $0, as: UTF8.self) })
        }
    }
}

extension RequestHeadDecoder {
    /// Decodes a head from its lines, the request line first, as strictly as a head from a client.
    static func decode(
        lines: [String], into request: inout HttpRequest, limits: HeadLimits, isReverse: Bool
    ) throws(GatewayError) {
        let head = Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
        var decoder = RequestHeadDecoder()
        let length = try decoder.decode(head.span.bytes, into: &request, limits: limits, isReverse: isReverse)
        guard length == head.count else { throw .malformed("a line of the head holds a line end") }
    }
}

/// The common part of request lines and status lines.
enum StartLine {
    /// Reads `HTTP/1.x` at that place, where the input must have eight bytes. RFC 9112 §2.3.
    @inline(__always)
    static func version(_ input: RawSpan, at start: Int) throws(GatewayError) -> HttpVersion {
        let word = input.word(at: start)
        if word == 0x312e_312f_5054_5448 { return .http11 }
        if word == 0x302e_312f_5054_5448 { return .http10 }
        guard word & 0x00ff_00ff_ffff_ffff == 0x002e_002f_5054_5448, ByteClass.isDigit(input.byte(at: start &+ 5)),
            ByteClass.isDigit(input.byte(at: start &+ 7))
        else { throw .malformed("the protocol version is not of the form HTTP/1.1") }
        // A higher minor version is treated as 1.1, the highest that we know. RFC 9110 §2.5.
        guard input.byte(at: start &+ 5) == 0x31 else {
            throw GatewayError(.downstream, .versionUnsupported, "the major protocol version is not 1")
        }
        return .http11
    }
}
