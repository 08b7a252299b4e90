// One file: the rules for one section depend on each other, and their order decides which fault is reported.

/// Reads an HTTP/2 head or trailer section, field by field as HPACK gives them. RFC 9113 §8.2, §8.3.
///
/// An error is remembered, and the rest of the section is skipped, because the compression's state must still be updated.
struct Http2HeadDecoder {
    /// The kind of section.
    enum Section { case request, response, trailers }

    private(set) var section = Section.request
    /// Whether white space around values is removed, as HTTP/1.1 does, instead of being a fault. So a response of an origin server that
    /// sends some is not lost, and what is forwarded is valid. Requests with such values are refused. RFC 9113 §8.2.1.
    private let trimsValues: Bool
    /// The first fault.
    private(set) var fault: Http2Fault?
    /// The size of the section: names and values, and 32 bytes for each line. RFC 9113 §6.5.2.
    private(set) var size = 0
    /// The expected amount of content, if it is known, once the section is finished.
    private(set) var contentLength: Int?
    private var pseudo: Pseudo = []
    private var method = HttpMethod.get
    private var status = 0
    private var isHttps = false
    private var isHttp = false
    private var authority: [UInt8] = []
    private var path: [UInt8] = []
    private var protocolName: [UInt8] = []
    private var hasFields = false
    private var hostLine: Int?
    private var cookieLines = 0

    private struct Pseudo: OptionSet {
        let rawValue: UInt8
        static let method = Pseudo(rawValue: 1)
        static let scheme = Pseudo(rawValue: 2)
        static let authority = Pseudo(rawValue: 4)
        static let path = Pseudo(rawValue: 8)
        static let `protocol` = Pseudo(rawValue: 16)
        static let status = Pseudo(rawValue: 32)
    }

    init(trimsValues: Bool = false) { self.trimsValues = trimsValues }

    /// Begins a section, whose fields must have been reset before.
    mutating func beginSection(_ section: Section) {
        self.section = section
        fault = nil
        size = 0
        contentLength = nil
        pseudo = []
        isHttps = false
        isHttp = false
        hasFields = false
        hostLine = nil
        cookieLines = 0
        if !protocolName.isEmpty { protocolName = [] }
    }

    // MARK: Fields

    /// Takes one field. The bytes are used during the call only.
    mutating func add(
        _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, to fields: inout HttpFields, limits: HeadLimits
    ) {
        size &+= name.count &+ value.count &+ 32
        guard fault == nil else { return }
        guard size <= limits.head else { return fault = .refusedHead(.tooLarge) }
        if fields.lines.count >= limits.fieldLines, isOneTooMany(name, fields, limits) {
            return fault = .refusedHead(.tooManyLines)
        }
        guard Http2HeadDecoder.isValue(value.bytes) else {
            return malformed("a field value holds a control character")
        }
        guard let first = name.first else { return malformed("a field name is empty") }
        if first == 0x3a { return addPseudo(name, value) }
        guard Http2HeadDecoder.isName(name.bytes) else {
            return malformed("a field name is not a token in lower case")
        }
        guard name.count <= FieldName.mostBytes else { return fault = .refusedHead(.nameTooLong) }
        var value = value
        if let first = value.first, FieldList.isSpace(first) || FieldList.isSpace(value[value.count &- 1]) {
            guard trimsValues else { return malformed("a field value begins or ends with white space") }
            value = Http2HeadDecoder.trimmed(value)
        }
        let known = KnownField.identify(name.bytes, from: 0, count: name.count)
        if known == .other, !fields.hasUnderscores {
            fields.hasUnderscores = Http2HeadDecoder.hasUnderscore(name.bytes)
        }
        if !hasFields { beginFields(&fields) }
        var flags = HttpFields.Line.exact
        if known.bit & Http2HeadDecoder.special != 0 {
            guard mayStand(known, value) else { return }
            if known.bit & KnownField.oneHop != 0 { flags |= HttpFields.Line.removed | HttpFields.Line.hopByHop }
            if known == .host, section == .request {
                hostLine = fields.lines.count
                // The authority already has its own line; `finish` checks that both agree.
                if pseudo.contains(.authority) { flags |= HttpFields.Line.removed | HttpFields.Line.hopByHop }
            }
        }
        fields.addDecoded(name, value, known, flags: flags)
    }

    /// Whether one more line exceeds the limit. The `Cookie` lines of a request count once, because a client sends each of its
    /// cookies as a line, and they become one line. RFC 9113 §8.2.3.
    @inline(never)
    private func isOneTooMany(
        _ name: UnsafeRawBufferPointer, _ fields: borrowing HttpFields, _ limits: HeadLimits
    ) -> Bool {
        guard section == .request, cookieLines > 0 else { return true }
        if KnownField.identify(name.bytes, from: 0, count: name.count) == .cookie { return false }
        return fields.lines.count &- (cookieLines &- 1) >= limits.fieldLines
    }

    @inline(never)
    private static func trimmed(_ value: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        var (start, end) = (0, value.count)
        while start < end, FieldList.isSpace(value[start]) { start &+= 1 }
        while end > start, FieldList.isSpace(value[end &- 1]) { end &-= 1 }
        return UnsafeRawBufferPointer(rebasing: value[start..<end])
    }

    private static let connectionSpecific =
        KnownField.connection.bit | KnownField.proxyConnection.bit | KnownField.keepAlive.bit
        | KnownField.transferEncoding.bit | KnownField.upgrade.bit
    private static let special =
        connectionSpecific | KnownField.oneHop | KnownField.host.bit | KnownField.cookie.bit

    /// Whether a field that affects the framing is allowed here; records it.
    private mutating func mayStand(_ known: KnownField, _ value: UnsafeRawBufferPointer) -> Bool {
        if known.bit & Http2HeadDecoder.connectionSpecific != 0 {
            // RFC 9113 §8.2.2.
            malformed("a field of a connection stands in a message of HTTP/2")
            return false
        }
        switch known {
        case .te where section == .request:
            let text = value.bindMemory(to: UInt8.self)
            guard HeadFacts.equals(text, 0..<text.count, "trailers") else {
                malformed("TE is not trailers")
                return false
            }
        case .host where section == .request:
            guard hostLine == nil else {
                malformed("more than one Host")
                return false
            }
        case .cookie: cookieLines &+= 1
        default: break
        }
        return true
    }

    private mutating func malformed(_ reason: StaticString) { fault = .malformed(reason) }

    /// Adds the authority as the message's `Host` line, before all others.
    private mutating func beginFields(_ fields: inout HttpFields) {
        hasFields = true
        guard section == .request, pseudo.contains(.authority) else { return }
        authority.withUnsafeBytes { value in
            let name: StaticString = "host"
            fields.addDecoded(
                UnsafeRawBufferPointer(start: name.utf8Start, count: 4), value, .host, flags: HttpFields.Line.exact)
        }
    }

    private mutating func addPseudo(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
        guard section != .trailers else { return malformed("a pseudo-field stands in a trailer section") }
        guard !hasFields else { return malformed("a pseudo-field stands behind a field") }
        let text = name.bindMemory(to: UInt8.self)
        let field: Pseudo
        if section == .response {
            guard HeadFacts.equals(text, 0..<text.count, ":status"), name[1] == 0x73 else {
                return malformed("an unknown pseudo-field")
            }
            field = .status
            status = 0
            guard value.count == 3, value.allSatisfy({ ByteClass.isDigit($0) }) else {
                return malformed("the status is not three digits")
            }
            for byte in value { status = status * 10 + Int(byte & 0x0f) }
        } else if is_(":method") {
            field = .method
            guard value.count > 0, HeadScanner.isToken(value.bytes, from: 0, to: value.count) else {
                return malformed("the method is not a token")
            }
            guard value.count <= RequestHeadDecoder.longestMethod else {
                return fault = .refused(RequestHeadDecoder.methodTooLong)
            }
            method = RequestHeadDecoder.method(value.bytes, 0, value.count)
        } else if is_(":scheme") {
            field = .scheme
            let scheme = value.bindMemory(to: UInt8.self)
            isHttp = HeadFacts.equals(scheme, 0..<scheme.count, "http")
            isHttps = HeadFacts.equals(scheme, 0..<scheme.count, "https")
            guard value.count > 0 else { return malformed("the scheme is empty") }
        } else if is_(":authority") {
            field = .authority
            authority.removeAll(keepingCapacity: true)
            authority.append(contentsOf: value)
        } else if is_(":path") {
            field = .path
            path.removeAll(keepingCapacity: true)
            path.append(contentsOf: value)
        } else if is_(":protocol") {
            field = .protocol
            protocolName = Array(value)
        } else {
            return malformed("an unknown pseudo-field")
        }
        guard pseudo.insert(field).inserted else { return malformed("a pseudo-field stands there twice") }

        func is_(_ known: StaticString) -> Bool {
            guard text.count == known.utf8CodeUnitCount else { return false }
            for index in 1..<text.count where text[index] != known.utf8Start[index] { return false }
            return true
        }
    }

    /// Whether the bytes are a token without capital letters. RFC 9113 §8.2.1.
    @inline(__always)
    private static func isName(_ name: RawSpan) -> Bool {
        var index = 0
        while index &+ 8 <= name.byteCount {
            let word = name.word(at: index)
            // A letter has bit 6 set; a capital one has bit 5 clear.
            guard Swar.areCommonInNames(word, first: 8), (word &>> 1) & ~word & Swar.all(0x20) == 0 else { break }
            index &+= 8
        }
        // The last bytes are checked at once, together with some that were checked before.
        if index &+ 8 > name.byteCount, let rest = name.lastWord, Swar.areCommonInNames(rest, first: 8),
            (rest &>> 1) & ~rest & Swar.all(0x20) == 0
        {
            return true
        }
        while index < name.byteCount {
            let byte = name.byte(at: index)
            guard ByteClass.isToken(byte), byte &- 0x41 >= 26 else { return false }
            index &+= 1
        }
        return true
    }

    /// Whether the name contains `_`.
    @inline(__always)
    private static func hasUnderscore(_ name: RawSpan) -> Bool {
        var index = 0
        while index &+ 8 <= name.byteCount {
            if Swar.equal(name.word(at: index), Swar.all(0x5f)) != 0 { return true }
            index &+= 8
        }
        while index < name.byteCount {
            if name.byte(at: index) == 0x5f { return true }
            index &+= 1
        }
        return false
    }

    @inline(__always)
    private static func isValue(_ value: RawSpan) -> Bool {
        var index = 0
        while index &+ 8 <= value.byteCount {
            // After a possible hit, the rest is checked byte by byte.
            if Swar.mayHoldControls(value.word(at: index)) != 0 { break }
            index &+= 8
        }
        if index &+ 8 > value.byteCount, let rest = value.lastWord, Swar.mayHoldControls(rest) == 0 { return true }
        while index < value.byteCount {
            guard ByteClass.isFieldValue(value.byte(at: index)) else { return false }
            index &+= 1
        }
        return true
    }

    // MARK: Requests

    /// The rules for requests on a connection.
    struct Rules {
        var limits = HeadLimits()
        /// Whether requests name their scheme and host, as those to a proxy do.
        var isForward = false
        /// Whether the gateway owns the path; otherwise a proxy passes it on as received.
        var ownsPaths = true
        /// Whether the connection is secured by TLS.
        var isSecure = false
    }

    /// Completes a request after all fields were added. RFC 9113 §8.3.1.
    mutating func finish(_ request: inout HttpRequest, endsStream: Bool, _ rules: Rules) throws(Http2Fault) {
        if let fault { throw fault }
        guard pseudo.contains(.method) else { throw .malformed("the method is missing") }
        if !hasFields { beginFields(&request.fields) }
        request.version = .http2
        request.method = method
        request.receivedMethod = method
        let isTunnel = method == .connect && !pseudo.contains(.protocol)
        if isTunnel { try finishConnect(&request) } else { try finishTarget(&request, rules) }
        try finishHost(&request, isTunnel: isTunnel)
        if cookieLines > 1 { joinCookies(&request.fields) }
        request.fields.receivedCount = request.fields.lines.count

        let facts: HeadFacts
        do { facts = try request.fields.facts() } catch { throw .malformed("Content-Length is not one number") }
        contentLength = facts.contentLength
        request.content = .none
        if pseudo.contains(.protocol) {
            try finishExtendedConnect(&request)
        } else {
            do {
                let framing = try ContentFraming.ofRequest(facts, method: method, endsStream: endsStream)
                request.content = HttpContent(extent: framing.extent)
            } catch {
                throw .malformed(error.reason)
            }
        }
        request.fields.settleContentLength(facts)
        if request.fields.present & RequestFraming.hasOptions != 0 { RequestFraming.readOptions(&request, facts) }
    }

    /// Completes the parts of a refused request that were read, for its response and its record.
    func keepRead(of request: inout HttpRequest) {
        request.version = .http2
        if pseudo.contains(.method) {
            request.method = method
            request.receivedMethod = method
        }
        request.fields.receivedCount = request.fields.lines.count
    }

    private mutating func finishConnect(_ request: inout HttpRequest) throws(Http2Fault) {
        guard pseudo == [.method, .authority] else { throw .malformed("CONNECT has a method and an authority only") }
        do {
            try request.target.parse(authority.span.bytes, isConnect: true, isReverse: false)
        } catch {
            throw .malformed("the authority of CONNECT is not host:port")
        }
    }

    private mutating func finishTarget(_ request: inout HttpRequest, _ rules: Rules) throws(Http2Fault) {
        guard pseudo.isSuperset(of: [.scheme, .path]) else { throw .malformed("the scheme or the path is missing") }
        let isAsterisk = path.count == 1 && path[0] == 0x2a && method == .options
        guard path.first == 0x2f || isAsterisk else { throw .malformed("the path does not begin with a slash") }
        guard path.count <= rules.limits.requestTarget else {
            throw .refused(rules.limits.targetTooLong)
        }
        guard path.allSatisfy({ ByteClass.isTarget($0) }) else {
            throw .malformed("the path holds a space, a control character or a fragment")
        }
        do {
            try request.target.parse(
                path.span.bytes, isConnect: false, isOptions: method == .options, isReverse: rules.ownsPaths,
                isPassed: !rules.ownsPaths)
        } catch {
            throw .refused(error)
        }
        request.target.isSecure = rules.isSecure
        if rules.isForward {
            guard isHttp || isHttps else { throw .refused(.malformed("the scheme is neither http nor https")) }
            request.target.form = .absolute
            request.target.isSecure = isHttps
        }
    }

    /// Ensures that there is one authority, in `:authority` or in `Host`. RFC 9113 §8.3.1.
    private mutating func finishHost(_ request: inout HttpRequest, isTunnel: Bool) throws(Http2Fault) {
        if pseudo.contains(.authority), !isTunnel {
            guard authority.withUnsafeBufferPointer({ request.target.setAuthority($0) }) else {
                throw .malformed("the authority is not a valid host and port")
            }
        }
        guard let hostLine else {
            guard pseudo.contains(.authority) else { throw .malformed("neither an authority nor Host") }
            return
        }
        let line = request.fields.lines[hostLine]
        guard pseudo.contains(.authority) else {
            guard request.fields.withValue(line, { request.target.setAuthority($0) }) else {
                throw .malformed("Host is not a valid host and port")
            }
            return
        }
        let isSame = request.fields.withValue(line) { value in
            Authority.parse(value).map { request.target.names(value, $0.host, $0.port) } ?? false
        }
        guard isSame else { throw .malformed("Host and the authority disagree") }
    }

    /// Turns a WebSocket request into an upgrade, for wares and for origin servers that speak HTTP/1.1. RFC 8441 §5.
    private func finishExtendedConnect(_ request: inout HttpRequest) throws(Http2Fault) {
        guard method == .connect else { throw .malformed("a protocol without CONNECT") }
        guard String(decoding: protocolName, as: UTF8.self) == "websocket" else {
            throw .refused(
                GatewayError(.downstream, .protocolUnsupported, "a protocol other than websocket in CONNECT"))
        }
        request.method = .get
        request.receivedMethod = .get
        request.upgrade = "websocket"
        request.fields.setOwn("Sec-WebSocket-Key", WebSocketKey.random())
    }

    /// Joins the `Cookie` lines: HTTP/1.1 allows only one. RFC 9113 §8.2.3.
    private func joinCookies(_ fields: inout HttpFields) {
        var joined: [UInt8] = []
        for index in fields.lines.indices where fields.lines[index].known == .cookie {
            if !joined.isEmpty { joined += [0x3b, 0x20] }
            joined += fields.bytes[fields.lines[index].value]
            fields.lines[index].flags |= HttpFields.Line.removed | HttpFields.Line.hopByHop
        }
        let name: StaticString = "cookie"
        joined.withUnsafeBytes {
            fields.addDecoded(
                UnsafeRawBufferPointer(start: name.utf8Start, count: 6), $0, .cookie, flags: HttpFields.Line.exact)
        }
    }

    // MARK: Responses and trailers

    /// Completes a response after all fields were added. RFC 9113 §8.3.2.
    mutating func finish(_ response: inout HttpResponse, to method: HttpMethod, endsStream: Bool) throws(Http2Fault) {
        if let fault { throw fault }
        guard pseudo.contains(.status), let status = HttpStatus(status) else {
            throw .malformed("the status is missing")
        }
        response.version = .http2
        response.status = status
        response.fields.receivedCount = response.fields.lines.count
        // RFC 9113 §8.6.
        guard status != .switchingProtocols else { throw .malformed("101 does not exist in HTTP/2") }
        guard !status.isInterim || !endsStream else { throw .malformed("an interim response ends the stream") }
        let facts: HeadFacts
        if status.isInterim {
            facts = response.fields.factsOfInterim()
        } else {
            do { facts = try response.fields.facts() } catch { throw .malformed("Content-Length is not one number") }
        }
        response.fields.settleContentLength(facts)
        do {
            let framing = try ContentFraming.ofResponse(facts, status: status, to: method, endsStream: endsStream)
            contentLength = framing.contentLength
            response.content = HttpContent(extent: framing.extent)
        } catch {
            throw .malformed(error.reason)
        }
    }

    /// Completes a trailer section.
    func finish(_ trailers: inout HttpFields, endsStream: Bool) throws(Http2Fault) {
        if let fault { throw fault }
        guard endsStream else { throw .malformed("a trailer section does not end the stream") }
        trailers.receivedCount = trailers.lines.count
        trailers.removeForbiddenTrailers()
    }
}

/// A fault in a section, and its consequence.
enum Http2Fault: Error {
    /// The message is malformed: the stream is reset, and no ware runs. RFC 9113 §8.1.1.
    case malformed(StaticString)
    /// The section exceeds a limit.
    case refusedHead(HeadFault)
    /// The message is well formed, but not accepted: the client gets this error.
    case refused(GatewayError)

    /// The error for a request with this fault.
    func inRequest(_ limits: HeadLimits, section: HeadFault.Section = .head) -> GatewayError {
        switch self {
        case .malformed(let reason): .malformed("\(reason)")
        case .refusedHead(let fault): fault.inRequest(limits, section: section)
        case .refused(let error): error
        }
    }

    /// The error for a response with this fault.
    func inResponse(_ limits: HeadLimits, section: HeadFault.Section = .head) -> GatewayError {
        switch self {
        case .malformed(let reason): .badResponse("\(reason)")
        case .refusedHead(let fault): fault.inResponse(limits, section: section)
        case .refused(let error): error
        }
    }
}

extension HttpFields {
    /// Appends a decoded line in the format of HTTP/1.1.
    @inline(__always)
    mutating func addDecoded(
        _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ known: KnownField, flags: UInt8
    ) {
        let start = UInt32(truncatingIfNeeded: bytes.count)
        appendWire(name, value)
        addLine(
            Line(
                start: start, valueStart: start &+ UInt32(truncatingIfNeeded: name.count) &+ 2,
                valueCount: UInt32(truncatingIfNeeded: value.count), nameCount: UInt16(truncatingIfNeeded: name.count),
                known: known, flags: flags),
            others: known == .other ? NameFilter(name.bytes, from: 0, count: name.count) : NameFilter())
    }

    /// Appends the bytes of a line. They are joined on the stack first, because each append to an array has a fixed cost.
    @inline(__always)
    private mutating func appendWire(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
        let count = name.count &+ value.count &+ 4
        guard count <= 256, let nameStart = name.baseAddress else { return appendLongWire(name, value) }
        withUnsafeTemporaryAllocation(byteCount: 256, alignment: 8) { line in
            // The allocation has an address, and enough room.
            guard let base = line.baseAddress else { return }
            base.copyMemory(from: nameStart, byteCount: name.count)
            let separator = base + name.count
            separator.storeBytes(of: UInt16(littleEndian: 0x203a), as: UInt16.self)
            if let start = value.baseAddress { (separator + 2).copyMemory(from: start, byteCount: value.count) }
            (separator + 2 + value.count).storeBytes(of: LineEnd.word, as: UInt16.self)
            bytes.append(contentsOf: UnsafeRawBufferPointer(start: base, count: count))
        }
    }

    @inline(never)
    private mutating func appendLongWire(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
        bytes.append(contentsOf: name)
        bytes.append(0x3a)
        bytes.append(0x20)
        bytes.append(contentsOf: value)
        LineEnd.append(to: &bytes)
    }
}
