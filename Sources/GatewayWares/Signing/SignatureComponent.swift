public import HttpWare

/// A part of a request that a signature covers: a field, or a derived component such as `@method`. RFC 9421 §2.
public struct SignatureComponent: Sendable, Hashable {
    /// The name, in lower case.
    public let name: String
    /// `key` (a member of a dictionary field) or `name` (a query parameter): RFC 9421 §2.1.2, §2.2.8.
    let member: String?
    /// Whether each line of the field is covered as a byte sequence. RFC 9421 §2.1.3.
    let isBinary: Bool

    /// The supported derived components of requests.
    static let derived: Set = [
        "@method", "@target-uri", "@authority", "@scheme", "@request-target", "@path", "@query", "@query-param",
    ]

    /// Reads an item of a signature's list; `nil` if the component or one of its parameters is unknown.
    init?(_ item: StructuredItem, _ parameters: StructuredParameters) {
        guard let name = item.string, !name.isEmpty, name == name.lowercased() else { return nil }
        var member: String?
        var isBinary = false
        for (parameter, value) in parameters {
            switch parameter {
            case "bs" where value == .boolean(true) && !name.hasPrefix("@"): isBinary = true
            case "key" where !name.hasPrefix("@"), "name" where name == "@query-param":
                guard let text = value.string else { return nil }
                member = text
            default: return nil
            }
        }
        guard name.hasPrefix("@") ? Self.derived.contains(name) : FieldName(name) != nil,
            (name == "@query-param") == (member != nil && name.hasPrefix("@")), !isBinary || member == nil
        else { return nil }
        self.name = name
        self.member = member
        self.isBinary = isBinary
    }

    private var parameters: StructuredParameters {
        if isBinary { return [("bs", .boolean(true))] }
        return member.map { [(name == "@query-param" ? "name" : "key", .string($0))] } ?? []
    }

    /// The name of the covered field; `nil` for a derived component.
    var field: FieldName? { name.hasPrefix("@") ? nil : FieldName(name) }

    /// The identifier as written in a signature: `"content-type"`, `"@query-param";name="id"`.
    var identifier: String { StructuredText.text(.string(name)) + StructuredText.text(parameters) }
}

extension SignatureComponent: OptionValue {
    public static let optionType = "signature component"
    public var optionText: String { name + StructuredText.text(parameters) }

    public init(optionText: String) throws(OptionMistake) {
        let end = optionText.firstIndex(of: ";") ?? optionText.endIndex
        let name = optionText[..<end].lowercased()
        // The text is read as the parameters of a dictionary's only member.
        guard let members = try? StructuredReader.dictionary(Array("a\(optionText[end...])".utf8)), members.count == 1,
            case .item(.boolean(true), let parameters) = members[0].value,
            let component = SignatureComponent(.string(name), parameters)
        else {
            throw OptionMistake(
                "write a field name, @method, @authority, @path, @query, @target-uri, or @query-param;name=\"id\"")
        }
        self = component
    }
}

/// The parts of a request that a signature can cover. RFC 9421 §2.
struct SignedRequest {
    let method: String
    let isSecure: Bool
    /// The authority in lower case, without the default port.
    let authority: String
    let path: [UInt8]
    let query: [UInt8]?
    let fields: HttpFields
    /// The value of `Host`, if the field is replaced on the way upstream.
    var host: String?

    /// The request as its client sent it.
    init(received request: borrowing HttpRequest) {
        let parts = request.receivedParts
        method = request.method.name
        isSecure = request.scheme == "https"
        authority = parts.authority
        path = parts.path
        query = parts.query
        fields = request.fields.received
    }

    /// The request as it is sent upstream.
    init(sent request: borrowing HttpRequest, as names: UpstreamNames) {
        method = request.method.name
        isSecure = names.isSecure
        authority = SignedRequest.normal(names.authority, isSecure: names.isSecure)
        let target = Array(names.basePath.utf8) + request.upstreamTargetBytes
        let question = target.firstIndex(of: 0x3f)
        let path = Array(target[..<(question ?? target.endIndex)])
        self.path = path.isEmpty ? [0x2f] : path
        query = question.map { Array(target[($0 + 1)...]) }
        fields = request.fields
        host = names.authority
    }

    private static func normal(_ authority: String, isSecure: Bool) -> String {
        guard let parsed = Authority(authority) else { return authority.lowercased() }
        return parsed.port == (isSecure ? 443 : 80) ? parsed.host : parsed.description
    }

    /// The value of a component; `nil` if the request lacks it, or has several values where only one is allowed.
    func value(of component: SignatureComponent) -> [UInt8]? {
        switch component.name {
        case "@method": Array(method.utf8)
        case "@scheme": Array((isSecure ? "https" : "http").utf8)
        case "@authority": Array(authority.utf8)
        case "@path": path
        case "@query": [0x3f] + (query ?? [])
        case "@request-target": path + (query.map { [0x3f] + $0 } ?? [])
        case "@target-uri":
            Array("\(isSecure ? "https" : "http")://\(authority)".utf8) + path + (query.map { [0x3f] + $0 } ?? [])
        case "@query-param": component.member.flatMap(queryParameter)
        case "host" where host != nil && !component.isBinary && component.member == nil: host.map { Array($0.utf8) }
        default: fieldValue(component)
        }
    }

    /// Whether the request has a component.
    enum Presence {
        /// The origin server cannot find it either: the request has no such field line, or a well-formed dictionary without that key.
        case absent
        case present
        /// The field is not a dictionary, so another reader may find the member in it.
        case unreadable
    }

    /// Whether the request has a component. A derived component is never absent.
    func presence(of component: SignatureComponent) -> Presence {
        guard let name = component.field else { return .present }
        let lines = fields.rawValues(of: name)
        if lines.isEmpty { return .absent }
        guard let key = component.member else { return .present }
        guard let members = try? StructuredReader.dictionary(Array(lines.joined(separator: ", ".utf8))) else {
            return .unreadable
        }
        return members.contains { $0.name == key } ? .present : .absent
    }

    private func fieldValue(_ component: SignatureComponent) -> [UInt8]? {
        guard let name = FieldName(component.name) else { return nil }
        let lines = fields.rawValues(of: name)
        guard !lines.isEmpty else { return nil }
        if component.isBinary {
            return Array(lines.map { StructuredText.text(.bytes($0)) }.joined(separator: ", ").utf8)
        }
        let value = Array(lines.joined(separator: ", ".utf8))
        guard let key = component.member else { return value }
        guard let members = try? StructuredReader.dictionary(value),
            let member = members.first(where: { $0.name == key })
        else { return nil }
        return Array(StructuredText.text(member.value).utf8)
    }

    /// The value of the only parameter of that name. RFC 9421 §2.2.8. Some servers separate parameters by `;` too: a query in which
    /// they find another parameter of that name has no value.
    private func queryParameter(_ name: String) -> [UInt8]? {
        guard let query else { return nil }
        var found: Range<Int>?
        let wanted = Array(name.utf8)
        var start = 0
        while start < query.count {
            let end = query[start...].firstIndex(of: 0x26) ?? query.count
            let equals = query[start..<end].firstIndex(of: 0x3d) ?? end
            if end > start, SignedRequest.isFormEncoded(query[start..<equals], as: wanted) {
                guard found == nil else { return nil }
                found = min(equals + 1, end)..<end
            }
            if query[start..<end].contains(0x3b), holdsPiece(named: wanted, in: query[start..<end]) { return nil }
            start = end + 1
        }
        guard let found else { return nil }
        var value: [UInt8] = []
        PercentText.forEachDecoded(query[found], plusIsSpace: true) { SignedRequest.append(formByte: $0, to: &value) }
        return value
    }

    /// Whether a parameter of that name stands behind a `;` in the text.
    private func holdsPiece(named wanted: [UInt8], in text: ArraySlice<UInt8>) -> Bool {
        text.split(separator: 0x3b, omittingEmptySubsequences: false).dropFirst().contains {
            SignedRequest.isFormEncoded($0.prefix { $0 != 0x3d }, as: wanted)
        }
    }

    /// Whether a part of a form equals this text after decoding and encoding again. Allocates nothing, because a query has many
    /// parts.
    private static func isFormEncoded(_ part: ArraySlice<UInt8>, as wanted: [UInt8]) -> Bool {
        var place = 0
        var isSame = true
        PercentText.forEachDecoded(part, plusIsSpace: true) { byte in
            guard isSame else { return }
            if isPlain(byte) {
                isSame = place < wanted.count && wanted[place] == byte
                place += 1
            } else {
                isSame =
                    place + 2 < wanted.count && wanted[place] == 0x25
                    && wanted[place + 1] == Hex.upper(byte >> 4)
                    && wanted[place + 2] == Hex.upper(byte & 15)
                place += 3
            }
        }
        return isSame && place == wanted.count
    }

    /// Appends a byte of a form in the only encoding that signatures accept: a space is `%20`.
    private static func append(formByte byte: UInt8, to text: inout [UInt8]) {
        if isPlain(byte) { text.append(byte) } else { PercentText.append(byte, to: &text) }
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2a, 0x2d, 0x2e, 0x5f: true
        default: false
        }
    }
}
