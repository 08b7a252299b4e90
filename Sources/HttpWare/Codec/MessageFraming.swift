/// What the framing and hop-by-hop fields of a head say; afterwards those fields are gone from the message.
/// RFC 9112 §6, §9; RFC 9110 §7.6.1.
struct HeadFacts {
    var hasTransferEncoding = false
    var isChunked = false
    var contentLength: Int?
    var closes = false
    var keepsAlive = false
    var namesOthers = false
    var hosts = 0

    /// What `Content-Length` says in one line: digits, or a list of equal numbers (RFC 9110 §8.6).
    mutating func readContentLength(_ value: UnsafeBufferPointer<UInt8>) throws(HeadValueFault) {
        var number = 0
        var digits = 0
        var index = 0
        while index < value.count {
            let byte = value[index]
            if ByteClass.isDigit(byte) {
                let (product, overflow) = number.multipliedReportingOverflow(by: 10)
                let (sum, carry) = product.addingReportingOverflow(Int(byte & 0x0f))
                guard !overflow, !carry else { throw .contentLength }
                number = sum
                digits &+= 1
                index &+= 1
            } else {
                // A list: each member is a number, and all are the same.
                guard digits > 0 else { throw .contentLength }
                while index < value.count, FieldList.isSpace(value[index]) { index &+= 1 }
                guard index < value.count, value[index] == 0x2c else { throw .contentLength }
                index &+= 1
                while index < value.count, FieldList.isSpace(value[index]) { index &+= 1 }
                try setContentLength(number)
                number = 0
                digits = 0
            }
        }
        guard digits > 0 else { throw .contentLength }
        try setContentLength(number)
    }

    private mutating func setContentLength(_ number: Int) throws(HeadValueFault) {
        guard contentLength == nil || contentLength == number else { throw .contentLength }
        contentLength = number
    }

    /// What `Transfer-Encoding` says in one line: `chunked` once and last; others are not implemented. RFC 9112 §6.1.
    mutating func readTransferEncoding(_ value: UnsafeBufferPointer<UInt8>) throws(HeadValueFault) {
        hasTransferEncoding = true
        var fault: HeadValueFault?
        var isLastChunked = isChunked
        var hasOther = otherCodings
        FieldList.forEachToken(value) { range in
            if isLastChunked { fault = .transferEncoding }
            if HeadFacts.equals(value, range, "chunked") { isLastChunked = true } else { hasOther = true }
        }
        if let fault { throw fault }
        isChunked = isLastChunked
        otherCodings = hasOther
    }

    /// Codings besides `chunked` were named.
    var otherCodings = false

    /// What `Connection` says in one line. RFC 9110 §7.6.1.
    mutating func readConnection(_ value: UnsafeBufferPointer<UInt8>) {
        var facts = self
        FieldList.forEachToken(value) { range in
            if HeadFacts.equals(value, range, "close") {
                facts.closes = true
            } else if HeadFacts.equals(value, range, "keep-alive") {
                facts.keepsAlive = true
            } else {
                facts.namesOthers = true
            }
        }
        self = facts
    }

    /// Whether that part of a value is the text, which is in lower case, without regard to case.
    @inline(__always)
    static func equals(_ value: UnsafeBufferPointer<UInt8>, _ range: Range<Int>, _ text: StaticString) -> Bool {
        guard range.count == text.utf8CodeUnitCount else { return false }
        for index in 0..<range.count where ByteClass.lower(value[range.lowerBound + index]) != text.utf8Start[index] {
            return false
        }
        return true
    }
}

/// A field whose value breaks the framing.
enum HeadValueFault: Error {
    case contentLength, transferEncoding, connection

    var reason: String {
        switch self {
        case .contentLength: "Content-Length is not one number"
        case .transferEncoding: "Transfer-Encoding does not end with one chunked"
        case .connection: "Connection names too many fields"
        }
    }
}

extension HttpFields {
    /// The most fields that `Connection` may name: more is refused, so that the cost stays bounded.
    static let mostNominated = 64

    /// Reads the framing and connection fields.
    func facts() throws(HeadValueFault) -> HeadFacts {
        var facts = HeadFacts()
        let wanted = KnownField.contentLength.bit | KnownField.transferEncoding.bit | KnownField.connection.bit | KnownField.host.bit
        guard present & wanted != 0 else { return facts }
        for line in lines {
            switch line.known {
            case .contentLength: try withValue(line) { value throws(HeadValueFault) in try facts.readContentLength(value) }
            case .transferEncoding: try withValue(line) { value throws(HeadValueFault) in try facts.readTransferEncoding(value) }
            case .connection: withValue(line) { facts.readConnection($0) }
            case .host: facts.hosts &+= 1
            default: break
            }
        }
        return facts
    }

    /// Takes off the fields that concern one hop: the known ones, and those that `Connection` names.
    mutating func removeHopByHop(_ facts: HeadFacts, _ known: UInt64) throws(HeadValueFault) {
        guard present & known != 0 else { return }
        if facts.namesOthers { try removeNominated() }
        for index in lines.indices where lines[index].known.bit & known != 0 && lines[index].known != .other {
            lines[index].flags |= Line.removed | Line.hopByHop
        }
    }

    private mutating func removeNominated() throws(HeadValueFault) {
        var names: [[UInt8]] = []
        for line in lines where line.known == .connection {
            withValue(line) { value in
                FieldList.forEachToken(value) { range in
                    guard names.count <= HttpFields.mostNominated else { return }
                    if !HeadFacts.equals(value, range, "close"), !HeadFacts.equals(value, range, "keep-alive") {
                        names.append(value[range].map { ByteClass.lower($0) })
                    }
                }
            }
        }
        guard names.count <= HttpFields.mostNominated else { throw .connection }
        for index in lines.indices {
            // The framing and the host are ours to say; naming them takes nothing away.
            switch lines[index].known {
            case .host, .contentLength, .transferEncoding: continue
            default: break
            }
            let range = lines[index].name
            let isNamed = names.contains { name in
                name.count == range.count && zip(range, name).allSatisfy { ByteClass.lower(bytes[$0]) == $1 }
            }
            if isNamed { lines[index].flags |= Line.removed | Line.hopByHop }
        }
    }

    @inline(__always)
    func withValue<Result, Failure: Error>(
        _ line: Line, _ body: (UnsafeBufferPointer<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try bytes.withUnsafeBufferPointer { all throws(Failure) in
            try body(UnsafeBufferPointer(rebasing: all[line.value]))
        }
    }
}

/// The rules for requests.
enum RequestFraming {
    private static let hopByHop = KnownField.hopByHop | KnownField.proxyAuthorization.bit
    private static let needsLook = hopByHop | KnownField.expect.bit

    /// Settles the authority, the framing and the connection of a request whose head was read. RFC 9112 §3.2, §6.3.
    static func interpret(_ request: inout HttpRequest) throws(GatewayError) {
        let facts: HeadFacts
        do { facts = try request.fields.facts() } catch { throw .malformed(error.reason) }
        try readHost(&request, facts)

        if facts.hasTransferEncoding {
            guard request.version >= .http11 else { throw .malformed("Transfer-Encoding in an HTTP/1.0 request") }
            guard facts.contentLength == nil else { throw .malformed("both Transfer-Encoding and Content-Length") }
            guard facts.isChunked else { throw .malformed(HeadValueFault.transferEncoding.reason) }
            guard !facts.otherCodings else {
                throw GatewayError(.downstream, .transferCodingUnsupported, "a transfer coding other than chunked")
            }
            request.content = HttpContent(extent: .unknown)
        } else if let length = facts.contentLength {
            request.content = HttpContent(extent: length == 0 ? .none : .length(length))
        } else {
            request.content = .none
        }
        if !request.content.isEmpty, request.method == .connect || request.method == .trace {
            throw .malformed("\(request.method) has no content")
        }

        request.isPersistent = request.version >= .http11 ? !facts.closes : facts.keepsAlive && !facts.closes
        guard request.fields.present & needsLook != 0 else { return }
        readOptions(&request)
        do { try request.fields.removeHopByHop(facts, hopByHop) } catch { throw .malformed(error.reason) }
    }

    private static func readHost(_ request: inout HttpRequest, _ facts: HeadFacts) throws(GatewayError) {
        guard facts.hosts <= 1 else { throw .malformed("more than one Host") }
        guard let index = request.fields.firstIndex(of: KnownField.host) else {
            guard request.version < .http11 else { throw .malformed("Host is missing") }
            return
        }
        let line = request.fields.lines[index]
        // A target in absolute or authority form names the authority; Host is only checked then. RFC 9112 §3.2.2.
        var isValid: Bool
        if request.target.host.count == 0 {
            isValid = request.fields.withValue(line) { request.target.setAuthority($0) }
        } else {
            isValid = request.fields.withValue(line) { Authority.parse($0) != nil }
        }
        if line.valueCount == 0, request.target.form == .absolute || request.target.form == .authority { isValid = true }
        guard isValid else { throw .malformed("Host is not a valid host and port") }
    }

    private static func readOptions(_ request: inout HttpRequest) {
        for line in request.fields.lines {
            switch line.known {
            case .expect where request.version >= .http11:
                if request.fields.withValue(line, { HeadFacts.equals($0, 0..<$0.count, "100-continue") }) {
                    request.expectsContinue = true
                }
            case .upgrade where request.version >= .http11:
                // Not over clear text to HTTP/2, which was withdrawn (RFC 9113 §3.1) and is a way around a gateway.
                let value = request.fields.string(line.value)
                if !value.lowercased().split(separator: ",").contains(where: { $0.contains("h2c") }) {
                    request.upgrade = value
                }
            case .te:
                request.fields.withValue(line) { value in
                    FieldList.forEachToken(value) { range in
                        if HeadFacts.equals(value, range, "trailers") { request.acceptsTrailers = true }
                    }
                }
            case .proxyAuthorization: request.proxyAuthorization = request.fields.string(line.value)
            default: break
            }
        }
    }
}

/// The rules for responses.
enum ResponseFraming {
    private static let hopByHop = KnownField.hopByHop

    /// Settles the framing and the connection of a response whose head was read. RFC 9112 §6.3.
    static func interpret(_ response: inout HttpResponse, method: HttpMethod) throws(GatewayError) {
        let facts: HeadFacts
        do { facts = try response.fields.facts() } catch { throw .badResponse(error.reason) }
        if facts.hasTransferEncoding {
            guard response.version >= .http11 else { throw .badResponse("Transfer-Encoding in an HTTP/1.0 response") }
            guard facts.contentLength == nil else { throw .badResponse("both Transfer-Encoding and Content-Length") }
            guard facts.isChunked, !facts.otherCodings else {
                throw .badResponse("a transfer coding other than one chunked at the end")
            }
        }
        let isTunnel = method == .connect && (200..<300).contains(response.status.code)
        var endsByClose = false
        if method == .head || response.status.neverHasContent || isTunnel {
            response.content = .none
        } else if facts.isChunked {
            response.content = HttpContent(extent: .unknown)
        } else if let length = facts.contentLength {
            response.content = HttpContent(extent: length == 0 ? .none : .length(length))
        } else {
            response.content = HttpContent(extent: .unknown)
            endsByClose = true
        }
        response.isPersistent =
            !endsByClose && !facts.closes && (response.version >= .http11 || facts.keepsAlive)
        response.endsByClose = endsByClose
        guard response.fields.present & hopByHop != 0 else { return }
        if let index = response.fields.firstIndex(of: KnownField.upgrade) {
            response.upgrade = response.fields.string(response.fields.lines[index].value)
        }
        do { try response.fields.removeHopByHop(facts, hopByHop) } catch { throw .badResponse(error.reason) }
    }
}
