/// A value that becomes JSON (RFC 8259): all JSON that is made passes here, but for the lines of access logs, which are built as bytes.
public indirect enum Json: Sendable {
    case null
    case bool(Bool)
    case number(Int)
    /// Not below zero, with three decimals; null where it is no number.
    case decimal(Double)
    /// A number as it is written: `-1`, `0.5`, `1e9` (RFC 8259 §6).
    case digits(String)
    /// A value that is JSON already.
    case raw(String)
    case text(String)
    case list([Json])
    /// In this order.
    case object([(String, Json)])

    /// A text, or null.
    public static func optional(_ text: String?) -> Json { text.map { .text($0) } ?? .null }

    /// An object without the members that have no value.
    public static func object(given members: [(String, Json?)]) -> Json {
        .object(members.compactMap { key, value in value.map { (key, $0) } })
    }

    /// On one line.
    public var text: String {
        var output = ""
        write(to: &output)
        return output
    }

    private func write(to output: inout String) {
        switch self {
        case .null: output += "null"
        case .bool(let value): output += value ? "true" : "false"
        case .number(let value): output += String(value)
        case .decimal(let value): output += Json.decimal(value)
        case .digits(let value), .raw(let value): output += value
        case .text(let value): output += value.jsonString
        case .list(let values):
            output += "["
            for (index, value) in values.enumerated() {
                if index > 0 { output += "," }
                value.write(to: &output)
            }
            output += "]"
        case .object(let members):
            output += "{"
            for (index, member) in members.enumerated() {
                if index > 0 { output += "," }
                output += member.0.jsonString + ":"
                member.1.write(to: &output)
            }
            output += "}"
        }
    }

    private static func decimal(_ value: Double) -> String {
        guard value.isFinite else { return "null" }
        let thousandths = Int((min(max(value, 0), 1e12) * 1000).rounded())
        let rest = String(thousandths % 1000)
        return "\(thousandths / 1000)." + String(repeating: "0", count: 3 - rest.utf8.count) + rest
    }
}

extension Json {
    /// The same over several lines, for people; a list or an object that fits stays on one.
    public var prettyText: String { prettyText(indent: "", used: 0) }

    private func prettyText(indent: String, used: Int) -> String {
        let compact = text
        if indent.utf8.count + used + compact.utf8.count <= 100 { return compact }
        let inner = indent + "  "
        let lines: [String]
        let ends: (String, String)
        switch self {
        case .list(let values):
            lines = values.map { $0.prettyText(indent: inner, used: 0) }
            ends = ("[", "]")
        case .object(let members):
            lines = members.map { member in
                let key = member.0.jsonString + ": "
                return key + member.1.prettyText(indent: inner, used: key.utf8.count)
            }
            ends = ("{", "}")
        default: return compact
        }
        return ends.0 + "\n" + lines.map { inner + $0 }.joined(separator: ",\n") + "\n" + indent + ends.1
    }
}

extension Json: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral {
    public init(stringLiteral value: String) { self = .text(value) }
    public init(integerLiteral value: Int) { self = .number(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
}

extension String {
    /// This text as a JSON string (RFC 8259 §7), quotes included. Control characters are escaped, also those that JSON allows but
    /// terminals obey: DEL and U+0080 … U+009F.
    var jsonString: String {
        var quoted = "\""
        for scalar in unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            case "\r": quoted += "\\r"
            case "\t": quoted += "\\t"
            case _ where scalar.value < 0x20 || (0x7f...0x9f).contains(scalar.value):
                let hex = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}
