public import HttpWare

/// The values of the request fields that a response's `Vary` names, normalised so that equal meanings are equal. They
/// are bytes: values that are not UTF-8 are equal only if their bytes are. RFC 9111 §4.1.
public struct VaryKey: Sendable, Equatable {
    /// The names, in the order of the response.
    public let names: [FieldName]
    let values: [[UInt8]?]

    /// The maximum number of names; a response with more is not stored.
    public static let mostNames = 64

    /// The key of a response that does not vary.
    public static let none = VaryKey()

    /// A key of names without duplicates, and as many values.
    init(names: [FieldName] = [], values: [[UInt8]?] = []) {
        self.names = names
        self.values = values
    }

    /// The key of a response to a request with these fields; `nil` if it matches no request (`*`, or an invalid name)
    /// or names too many fields. The fields in `always` count in addition to the response's.
    public init?(_ response: HttpFields, always: [FieldName] = [], of request: HttpFields) {
        self.init(response, always: always, lines: { request.rawValues(of: $0) })
    }

    /// The key of a response to a request whose fields have values that are text.
    public init?(_ response: HttpFields, always: [FieldName] = [], request: (FieldName) -> [String]) {
        self.init(response, always: always, lines: { request($0).map { Array($0.utf8) } })
    }

    private init?(_ response: HttpFields, always: [FieldName], lines: (FieldName) -> [[UInt8]]) {
        guard response.contains(.vary) || !always.isEmpty else {
            self.init()
            return
        }
        let members = response.listMembers(of: .vary)
        guard members.count + always.count <= VaryKey.mostNames else { return nil }
        var names = always
        for member in members {
            guard member != "*", let name = FieldName(member) else { return nil }
            if !names.contains(name) { names.append(name) }
        }
        self.init(names: names, values: names.map { VaryKey.normal($0, lines($0)) })
    }

    // MARK: Matching

    /// Whether a request with these fields would get this response.
    public func matches(_ request: HttpFields) -> Bool {
        var known = Known()
        return matches(request, &known)
    }

    /// Whether a request with these fields would get this response, as one of several variants. `known` keeps the request's
    /// values, so that long ones are not read again for each variant. A value with the same bytes as the stored one is
    /// compared directly.
    public func matches(_ request: HttpFields, _ known: inout Known) -> Bool {
        for index in names.indices where !isEqual(index, request, &known) { return false }
        return true
    }

    /// Whether a request with these fields would get this response, apart from the languages that it accepts.
    func matchesButLanguage(_ request: HttpFields) -> Bool {
        var known = Known()
        for index in names.indices where names[index] != .acceptLanguage {
            guard isEqual(index, request, &known) else { return false }
        }
        return true
    }

    private func isEqual(_ index: Int, _ request: HttpFields, _ known: inout Known) -> Bool {
        let name = names[index]
        guard let value = values[index] else { return !request.contains(name) }
        // A value in the normal form needs no change.
        return request.isOnlyValue(value, of: name) || known.value(of: name) { request.rawValues(of: $0) } == value
    }

    /// Whether a request would get this response, if its fields have values that are text.
    public func matches(_ request: (FieldName) -> [String]) -> Bool {
        var known = Known()
        return matches(request, &known)
    }

    /// Whether a request would get this response, as one of several variants, if its fields have values that are text.
    public func matches(_ request: (FieldName) -> [String], _ known: inout Known) -> Bool {
        zip(names, values).allSatisfy { name, value in
            known.value(of: name) { request($0).map { Array($0.utf8) } } == value
        }
    }

    /// The values of a request that were compared before.
    public struct Known {
        private var values: [FieldName: [UInt8]?] = [:]

        public init() {}

        fileprivate mutating func value(of name: FieldName, _ lines: (FieldName) -> [[UInt8]]) -> [UInt8]? {
            if let value = values[name] { return value }
            let value = VaryKey.normal(name, lines(name))
            values[name] = .some(value)
            return value
        }
    }

    // MARK: The normal form

    /// The value in a normal form with the same meaning: lines are joined, white space around commas is removed, and the order
    /// is kept. Languages and codings are sets with weights, so their order and case are normalised, too. If a quoted string
    /// does not end, the lines stay unchanged, separated by line feeds. `nil` if the field is missing. The normal form of a
    /// single line in normal form is the line itself.
    static func normal(_ name: FieldName, _ lines: [[UInt8]]) -> [UInt8]? {
        guard !lines.isEmpty else { return nil }
        var members: [ArraySlice<UInt8>] = []
        for line in lines {
            guard let more = VaryKey.members(line) else { return Array(lines.joined(separator: [0x0a])) }
            members += more
        }
        guard name == .acceptLanguage || name == .acceptEncoding else {
            return Array(members.joined(separator: [0x2c]))
        }
        let weighted = Set(members.map(weighted)).sorted { $0.lexicographicallyPrecedes($1) }
        return Array(weighted.joined(separator: [0x2c]))
    }

    /// A member in its normal form. `gzip;q=1.0` and `GZIP` are the same; other weights are written with three digits,
    /// `;q=0.500`.
    private static func weighted(_ member: ArraySlice<UInt8>) -> [UInt8] {
        let parts = WeightedMember.parts(of: member)
        guard let token = parts.first else { return Array(member) }
        guard parts.count == 2, let weight = WeightedMember.weight(parts[1]) else {
            return Array(parts.joined(separator: [0x3b]))
        }
        if weight == 1000 { return token }
        let digits = [weight / 100, weight / 10 % 10, weight % 10].map { 0x30 + UInt8($0) }
        return token + Array(";q=0.".utf8) + digits
    }

    /// The parts between commas outside quoted strings, without surrounding white space; `nil` if a quoted string does not
    /// end.
    static func members(_ line: [UInt8]) -> [ArraySlice<UInt8>]? {
        var members: [ArraySlice<UInt8>] = []
        var start = 0
        var isQuoted = false
        var isEscaped = false
        for (index, byte) in line.enumerated() {
            if byte == 0x2c, !isQuoted {
                members.append(WeightedMember.trimmed(line[start..<index]))
                start = index + 1
            } else if isEscaped {
                isEscaped = false
            } else if isQuoted, byte == 0x5c {
                isEscaped = true
            } else if byte == 0x22 {
                isQuoted.toggle()
            }
        }
        guard !isQuoted else { return nil }
        members.append(WeightedMember.trimmed(line[start...]))
        return members
    }
}
