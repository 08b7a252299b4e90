// One file: each field that decides about framing or belongs to one connection is read here, and only here.

/// The framing and hop-by-hop information of a head. Afterwards these fields are removed from the message.
/// RFC 9112 §6, §9; RFC 9110 §7.6.1.
struct HeadFacts {
    var hasTransferEncoding = false
    var isChunked = false
    var contentLength: Int?
    var closes = false
    var keepsAlive = false
    /// Whether `Connection` names `upgrade`; otherwise `Upgrade` is ignored. RFC 9110 §7.8.
    var namesUpgrade = false
    /// The known fields that `Connection` names.
    var namedFields: UInt64 = 0
    /// Whether `Connection` names other fields.
    var namesOthers = false
    var hosts = 0
    /// Whether `Content-Length` is not a single number without leading zeros.
    var isLengthOdd = false

    /// Reads one line of `Content-Length`: digits, or a list of equal numbers (RFC 9110 §8.6).
    mutating func readContentLength(_ value: UnsafeBufferPointer<UInt8>) throws(HeadValueFault) {
        var number = 0
        var digits = 0
        var index = 0
        if contentLength != nil || value.count > 1 && value[0] == 0x30 { isLengthOdd = true }
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
                // A list: each member is a number, and all are equal.
                isLengthOdd = true
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

    /// Reads one line of `Transfer-Encoding`: `chunked` once and last; other codings are not implemented. RFC 9112 §6.1.
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

    /// Whether codings besides `chunked` were named.
    var otherCodings = false

    /// Reads one line of `Connection`. RFC 9110 §7.6.1.
    mutating func readConnection(_ value: UnsafeBufferPointer<UInt8>) {
        // The most frequent values.
        if HeadFacts.equals(value, 0..<value.count, "keep-alive") { return keepsAlive = true }
        if HeadFacts.equals(value, 0..<value.count, "close") { return closes = true }
        var facts = self
        FieldList.forEachToken(value) { range in
            if HeadFacts.equals(value, range, "close") {
                facts.closes = true
            } else if HeadFacts.equals(value, range, "keep-alive") {
                facts.keepsAlive = true
            } else {
                let known = KnownField.identify(value.span.bytes, from: range.lowerBound, count: range.count)
                if known == .other { facts.namesOthers = true } else { facts.namedFields |= known.bit }
            }
        }
        facts.namesUpgrade = facts.namedFields & KnownField.upgrade.bit != 0
        self = facts
    }

    /// Whether that part of a value equals the text, ignoring case. The text must be in lower case.
    @inline(__always)
    static func equals(_ value: UnsafeBufferPointer<UInt8>, _ range: Range<Int>, _ text: StaticString) -> Bool {
        guard range.count == text.utf8CodeUnitCount else { return false }
        for index in 0..<range.count where ByteClass.lower(value[range.lowerBound + index]) != text.utf8Start[index] {
            return false
        }
        return true
    }
}

/// The fields that a head's `Connection` names: they are removed from the trailer section, too. RFC 9110 §7.6.1.
struct NominatedFields {
    /// The known fields.
    fileprivate let known: UInt64
    /// The names of the others, in lower case.
    fileprivate let others: [[UInt8]]
}

extension HttpFields {
    /// The limits for names in `Connection` besides the known fields: their number and their total bytes. More is
    /// refused, because each line is compared with each name.
    static let mostNominated = 64
    static let mostNominatedBytes = 1024
    /// Fields of the framing and the host belong to the gateway; `Connection` cannot remove them.
    private static let neverNominated =
        KnownField.other.bit | KnownField.host.bit | KnownField.contentLength.bit | KnownField.transferEncoding.bit

    /// Reads the framing and connection fields.
    func facts() throws(HeadValueFault) -> HeadFacts {
        var facts = HeadFacts()
        let wanted =
            KnownField.contentLength.bit | KnownField.transferEncoding.bit | KnownField.connection.bit
            | KnownField.host.bit
        guard present & wanted != 0 else { return facts }
        for line in lines {
            switch line.known {
            case .contentLength:
                try withValue(line) { value throws(HeadValueFault) in try facts.readContentLength(value) }
            case .transferEncoding:
                try withValue(line) { value throws(HeadValueFault) in try facts.readTransferEncoding(value) }
            case .connection: withValue(line) { facts.readConnection($0) }
            case .host: facts.hosts &+= 1
            default: break
            }
        }
        return facts
    }

    /// Removes the hop-by-hop fields: the known ones, and the fields that `Connection` names.
    mutating func removeHopByHop(_ facts: HeadFacts) throws(HeadValueFault) {
        if facts.namesOthers { try removeNominated() }
        // The decoder has already removed the known ones.
        let leaving = facts.namedFields & ~HttpFields.neverNominated & ~KnownField.oneHop
        guard present & leaving != 0 else { return }
        for index in lines.indices where lines[index].known.bit & leaving != 0 {
            lines[index].flags |= Line.removed | Line.hopByHop
        }
    }

    private mutating func removeNominated() throws(HeadValueFault) {
        var names: [Range<Int>] = []
        var nameBytes = 0
        for line in lines where line.known == .connection {
            withValue(line) { value in
                FieldList.forEachToken(value) { range in
                    let isBounded =
                        names.count <= HttpFields.mostNominated && nameBytes <= HttpFields.mostNominatedBytes
                    if isBounded, !HeadFacts.equals(value, range, "close"),
                        !HeadFacts.equals(value, range, "keep-alive"),
                        KnownField.identify(value.span.bytes, from: range.lowerBound, count: range.count) == .other
                    {
                        names.append(range.lowerBound + Int(line.valueStart)..<range.upperBound + Int(line.valueStart))
                        nameBytes += range.count
                    }
                }
            }
        }
        guard names.count <= HttpFields.mostNominated, nameBytes <= HttpFields.mostNominatedBytes else {
            throw .connection
        }
        for index in lines.indices where lines[index].known == .other {
            if names.contains(where: { isSame($0, lines[index].name) }) {
                lines[index].flags |= Line.removed | Line.hopByHop
            }
        }
    }

    /// The fields that `Connection` names; `nil` if it names none. For a head that was read, so that its names are bounded.
    var nominated: NominatedFields? {
        guard present & KnownField.connection.bit != 0 else { return nil }
        var facts = HeadFacts()
        var others: [[UInt8]] = []
        for line in lines where line.known == .connection {
            withValue(line) { value in
                facts.readConnection(value)
                guard facts.namesOthers else { return }
                FieldList.forEachToken(value) { range in
                    if KnownField.identify(value.span.bytes, from: range.lowerBound, count: range.count) == .other {
                        others.append(value[range].map { ByteClass.lower($0) })
                    }
                }
            }
        }
        let known = facts.namedFields & ~HttpFields.neverNominated
        return known == 0 && others.isEmpty ? nil : NominatedFields(known: known, others: others)
    }

    /// Whether `Connection` names this field.
    func isNominated(_ line: Line, in nominated: NominatedFields) -> Bool {
        if line.known != .other { return nominated.known & line.known.bit != 0 }
        let name = bytes[line.name]
        return nominated.others.contains { other in
            other.count == name.count && zip(other, name).allSatisfy { $0 == ByteClass.lower($1) }
        }
    }

    /// Whether two names are equal, ignoring case.
    private func isSame(_ name: Range<Int>, _ other: Range<Int>) -> Bool {
        guard name.count == other.count else { return false }
        for offset in 0..<name.count
        where ByteClass.lower(bytes[name.lowerBound &+ offset]) != ByteClass.lower(bytes[other.lowerBound &+ offset]) {
            return false
        }
        return true
    }

    private static let contentLengthTwin: FieldName = "content_length"
    private static let transferEncodingTwin: FieldName = "transfer_encoding"
    private static let framingTwins = (contentLengthTwin.trace, transferEncodingTwin.trace)

    /// Removes `Content_Length` and `Transfer_Encoding`, whatever wrote them. An origin server that reads `_` as `-` would take
    /// them for the framing, and see another end of the message than the gateway. RFC 9112 §11.2.
    @inline(__always)
    mutating func removeFramingTwins() {
        let twins = HttpFields.framingTwins
        if others.mayHold(twins.0) || others.mayHold(twins.1) { takeFramingTwins() }
    }

    @inline(never)
    private mutating func takeFramingTwins() {
        for name in [HttpFields.contentLengthTwin, HttpFields.transferEncodingTwin] {
            while let index = firstIndex(of: name) { lines[index].flags |= Line.removed }
        }
    }

    /// Reduces `Content-Length` to one line with one number, if it has more. RFC 9110 §8.6.
    mutating func settleContentLength(_ facts: HeadFacts) {
        guard facts.isLengthOdd, let length = facts.contentLength else { return }
        setOwn(.contentLength, "\(length)")
    }

    /// Reads the connection fields of an interim response. It ends with its head "regardless of the header fields present": a length
    /// or a transfer coding means nothing, and is removed. RFC 9112 §6.3, RFC 9110 §8.6.
    mutating func factsOfInterim() -> HeadFacts {
        var facts = HeadFacts()
        for index in lines.indices {
            switch lines[index].known {
            case .contentLength, .transferEncoding: lines[index].flags |= Line.removed | Line.hopByHop
            case .connection: withValue(lines[index]) { facts.readConnection($0) }
            default: break
            }
        }
        return facts
    }

    /// Whether the line is the expectation of 100 (Continue), and nothing else. RFC 9110 §10.1.1.
    func isContinue(_ line: Line) -> Bool {
        line.known == .expect && !line.isRemoved
            && withValue(line) { HeadFacts.equals($0, 0..<$0.count, "100-continue") }
    }

    /// Removes the expectation of 100 (Continue); other expectations stay.
    @inline(never)
    mutating func removeContinue(_ flags: UInt8 = Line.removed) {
        for index in lines.indices where isContinue(lines[index]) {
            noteChange()
            lines[index].flags |= flags
        }
    }

    /// Replaces `Host` by the authority of the target.
    fileprivate mutating func setOwnHost(_ authority: Authority?) {
        guard let authority else { return }
        setOwn(.host, authority.description)
    }

    /// The protocols that the lines of `Upgrade` ask for together. `nil` if the list is empty, invalid or too long. Also `nil` if it names
    /// HTTP/2 over clear text, which was withdrawn (RFC 9113 §3.1) and could bypass a gateway.
    fileprivate var upgradeProtocols: String? {
        let protocols = listedProtocols
        let areAllowed = protocols.allSatisfy { name in
            let name = name.lowercased()
            return !name.contains("h2c") && !name.hasPrefix("h2") && !name.hasPrefix("http/")
        }
        return areAllowed && !protocols.isEmpty ? protocols.joined(separator: ", ") : nil
    }

    /// The protocols that a 426 requires, which the client must learn; `nil` if the list is empty, invalid or too long. RFC 9110
    /// §15.5.22.
    fileprivate var requiredProtocols: String? {
        let protocols = listedProtocols
        return protocols.isEmpty ? nil : protocols.joined(separator: ", ")
    }

    /// The protocols in the lines of `Upgrade`; empty if the list is invalid or too long.
    private var listedProtocols: [String] {
        var protocols: [String] = []
        var left = 1024
        for line in lines where line.known == .upgrade {
            left -= Int(line.valueCount)
            guard left >= 0 else { return [] }
            protocols += FieldList.members(of: string(line.value))
        }
        let areValid = protocols.allSatisfy { $0.utf8.allSatisfy { ByteClass.isToken($0) || $0 == 0x2f } }
        return areValid ? protocols : []
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
    private static let needsLook = KnownField.oneHop | hasOptions
    static let hasOptions = KnownField.expect.bit | KnownField.te.bit | KnownField.proxyAuthorization.bit

    /// Determines the authority, the framing and the connection options of a request whose head was read. RFC 9112 §3.2, §6.3.
    static func interpret(_ request: inout HttpRequest) throws(GatewayError) -> ContentFraming {
        let facts: HeadFacts
        do { facts = try request.fields.facts() } catch { throw error.inRequest }
        try readHost(&request, facts)

        let framing: ContentFraming
        do {
            framing = try ContentFraming.ofRequest(facts, method: request.method, version: request.version)
        } catch {
            throw error.inRequest
        }
        request.content = HttpContent(extent: framing.extent)

        request.isPersistent = request.version >= .http11 ? !facts.closes : facts.keepsAlive && !facts.closes
        request.fields.settleContentLength(facts)
        guard request.fields.present & needsLook != 0 else { return framing }
        do { try request.fields.removeHopByHop(facts) } catch { throw error.inRequest }
        readOptions(&request, facts)
        return framing
    }

    private static func readHost(_ request: inout HttpRequest, _ facts: HeadFacts) throws(GatewayError) {
        guard facts.hosts <= 1 else { throw .malformed("more than one Host") }
        guard let index = request.fields.firstIndex(of: KnownField.host) else {
            guard request.version < .http11 else { throw .malformed("Host is missing") }
            request.fields.setOwnHost(request.authority)
            return
        }
        let line = request.fields.lines[index]
        if request.target.host.count == 0 {
            guard request.fields.withValue(line, { request.target.setAuthority($0) }) else { throw invalidHost }
        } else {
            // The target's authority replaces the value of Host. RFC 9112 §3.2.2.
            let isSame = try request.fields.withValue(line) { value throws(GatewayError) in
                if value.isEmpty { return false }
                guard let parsed = Authority.parse(value) else { throw invalidHost }
                return request.target.names(value, parsed.host, parsed.port)
            }
            if !isSame { request.fields.setOwnHost(request.authority) }
        }
    }

    private static var invalidHost: GatewayError { .malformed("Host is not a valid host and port") }

    static func readOptions(_ request: inout HttpRequest, _ facts: HeadFacts) {
        // RFC 9110 §7.8: not in HTTP/1.0.
        if facts.namesUpgrade && request.version >= .http11 { request.upgrade = request.fields.upgradeProtocols }
        guard request.fields.present & hasOptions != 0 else { return }
        if request.fields.present & KnownField.expect.bit != 0 {
            // RFC 9110 §10.1.1: "MUST ignore that expectation" in HTTP/1.0, and a client "MUST NOT generate" it without content.
            if request.version < .http11 || request.content.isEmpty {
                request.fields.removeContinue(HttpFields.Line.removed | HttpFields.Line.hopByHop)
            } else {
                request.expectsContinue = request.fields.lines.contains { request.fields.isContinue($0) }
            }
        }
        for line in request.fields.lines {
            switch line.known {
            case .te:
                request.fields.withValue(line) { value in
                    FieldList.forEachToken(value) { range in
                        if HeadFacts.equals(value, range, "trailers") { request.acceptsTrailers = true }
                    }
                }
            case .proxyAuthorization:
                request.hasSeveralProxyAuthorizations = request.proxyAuthorization != nil
                request.proxyAuthorization = request.fields.string(line.value)
            default: break
            }
        }
    }
}

/// The rules for responses.
enum ResponseFraming {
    /// Determines the framing and the connection options of a response whose head was read. RFC 9112 §6.3.
    static func interpret(
        _ response: inout HttpResponse, method: HttpMethod
    ) throws(GatewayError) -> ContentFraming {
        let facts: HeadFacts
        if response.status.isInterim {
            facts = response.fields.factsOfInterim()
        } else {
            do { facts = try response.fields.facts() } catch { throw error.inResponse }
        }
        let framing: ContentFraming
        do {
            framing = try ContentFraming.ofResponse(
                facts, status: response.status, to: method, version: response.version)
        } catch {
            throw error.inResponse
        }
        response.content = HttpContent(extent: framing.extent)
        let endsByClose = if case .untilClose = framing { true } else { false }
        // Bytes may follow a 204 response that announces content. They must not count as the next response.
        let isDoubtful = facts.announcesContent && response.status == .noContent
        response.isPersistent =
            !endsByClose && !facts.closes && !isDoubtful && (response.version >= .http11 || facts.keepsAlive)
        response.fields.settleContentLength(facts)
        guard response.fields.present & KnownField.oneHop != 0 else { return framing }
        switch response.status {
        case .switchingProtocols: response.upgrade = response.fields.upgradeProtocols
        case .upgradeRequired: response.upgrade = response.fields.requiredProtocols
        default: break
        }
        do { try response.fields.removeHopByHop(facts) } catch { throw error.inResponse }
        return framing
    }
}
