public import HttpWare

/// The values of the request fields that a response's `Vary` names, in a form in which equal meanings are equal.
/// RFC 9111 §4.1.
public struct VaryKey: Sendable, Equatable {
    /// The names, in the order of the response.
    public let names: [FieldName]
    let values: [String?]

    /// More names than this are not compared: such a response is not stored.
    public static let mostNames = 64

    /// Nothing varies.
    public static let none = VaryKey()

    /// A key of names, each once, and as many values.
    init(names: [FieldName] = [], values: [String?] = []) {
        self.names = names
        self.values = values
    }

    /// The key of a response to that request; `nil` when it matches no request (`*`, or a name that is none), or names more
    /// fields than are compared. `always` are names that tell requests apart whatever the response says.
    public init?(_ response: HttpFields, always: [FieldName] = [], request: (FieldName) -> [String]) {
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
        self.init(names: names, values: names.map { VaryKey.normal($0, request($0)) })
    }

    /// Whether the request would have had this response.
    public func matches(_ request: (FieldName) -> [String]) -> Bool {
        var known = Known()
        return matches(request, &known)
    }

    /// The same for one of several that may be the request's: `known` keeps the request's values from one to the next, so that
    /// long ones are not read anew for each variant.
    public func matches(_ request: (FieldName) -> [String], _ known: inout Known) -> Bool {
        names.isEmpty || zip(names, values).allSatisfy { known.value(of: $0, request) == $1 }
    }

    /// The values of a request that were compared before.
    public struct Known {
        private var values: [FieldName: String?] = [:]

        public init() {}

        fileprivate mutating func value(of name: FieldName, _ request: (FieldName) -> [String]) -> String? {
            if let value = values[name] { return value }
            let value = VaryKey.normal(name, request(name))
            values[name] = .some(value)
            return value
        }
    }

    /// The value in a form that changes no meaning: lines joined, white space around commas gone, order kept. Languages and
    /// codings are sets with weights, in whatever order and case. `nil` for a field that is not there.
    static func normal(_ name: FieldName, _ lines: [String]) -> String? {
        guard !lines.isEmpty else { return nil }
        let members = lines.flatMap { line in
            VaryKey.members(line)
        }
        guard name == .acceptLanguage || name == .acceptEncoding else { return members.joined(separator: ",") }
        return Set(members.map(weighted)).sorted().joined(separator: ",")
    }

    /// `gzip;q=1.0` and `GZIP` are the same; a weight of 0 is written out as `;q=0`.
    private static func weighted(_ member: String) -> String {
        let parts = member.lowercased().split(separator: ";").map { $0.filter { $0 != " " && $0 != "\t" } }
        guard let token = parts.first else { return member }
        guard parts.count == 2, parts[1].hasPrefix("q="), let weight = thousandths(parts[1].dropFirst(2)) else {
            return parts.joined(separator: ";")
        }
        return weight == 1000 ? token : "\(token);q=\(weight)"
    }

    /// `qvalue` as a number of thousandths; `nil` when it is none. RFC 9110 §12.4.2.
    private static func thousandths(_ text: Substring) -> Int? {
        let digits = text.utf8.filter { $0 != 0x2e }
        guard let first = text.utf8.first, first == 0x30 || first == 0x31, digits.count <= 4,
            digits.allSatisfy({ (0x30...0x39).contains($0) }),
            text.utf8.count == digits.count
                || text.utf8.dropFirst().first == 0x2e && text.utf8.count == digits.count + 1
        else { return nil }
        let padded = digits.dropFirst() + Array(repeating: 0x30, count: 4 - digits.count)
        let weight = (first == 0x31 ? 1000 : 0) + padded.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        return weight <= 1000 ? weight : nil
    }

    /// The parts between commas that are in no quoted string, without white space around them.
    private static func members(_ line: String) -> [String] {
        var members: [String] = []
        var member: [UInt8] = []
        var isQuoted = false
        var isEscaped = false
        func add() {
            var part = member[...]
            while let first = part.first, first == 0x20 || first == 0x09 { part = part.dropFirst() }
            while let last = part.last, last == 0x20 || last == 0x09 { part = part.dropLast() }
            members.append(String(decoding: part, as: UTF8.self))
            member = []
        }
        for byte in line.utf8 {
            if byte == 0x2c, !isQuoted {
                add()
                continue
            }
            member.append(byte)
            if isEscaped {
                isEscaped = false
            } else if isQuoted, byte == 0x5c {
                isEscaped = true
            } else if byte == 0x22 {
                isQuoted.toggle()
            }
        }
        add()
        return members
    }
}
