/// A value for JSON output (RFC 8259). All JSON is made here, except the lines of access logs, which are built as bytes.
public indirect enum Json: Sendable {
    case null
    case bool(Bool)
    case number(Int)
    /// A non-negative number with three decimals; null if it is not finite.
    case decimal(Double)
    /// A number in JSON notation: `-1`, `0.5`, `1e9` (RFC 8259 §6).
    case digits(String)
    /// A text that is already JSON.
    case raw(String)
    case text(String)
    case list([Json])
    /// The members, in this order.
    case object([(String, Json)])

    /// A text, or null.
    public static func optional(_ text: String?) -> Json { text.map { .text($0) } ?? .null }

    /// An object without the members whose value is `nil`.
    public static func object(given members: [(String, Json?)]) -> Json {
        .object(members.compactMap { key, value in value.map { (key, $0) } })
    }

    /// The JSON on one line.
    public var text: String { String(decoding: bytes, as: UTF8.self) }

    /// The JSON in UTF-8.
    public var bytes: [UInt8] {
        var output: [UInt8] = []
        write(to: &output)
        return output
    }

    private func write(to output: inout [UInt8]) {
        switch self {
        case .null: output += "null".utf8
        case .bool(let value): output += (value ? "true" : "false").utf8
        case .number(let value): Json.write(value, to: &output)
        case .decimal(let value): Json.write(decimal: value, to: &output)
        case .digits(let value), .raw(let value): output += value.utf8
        case .text(let value): value.writeJson(to: &output)
        case .list(let values):
            output.append(0x5b)
            for (index, value) in values.enumerated() {
                if index > 0 { output.append(0x2c) }
                value.write(to: &output)
            }
            output.append(0x5d)
        case .object(let members):
            output.append(0x7b)
            for (index, member) in members.enumerated() {
                if index > 0 { output.append(0x2c) }
                member.0.writeJson(to: &output)
                output.append(0x3a)
                member.1.write(to: &output)
            }
            output.append(0x7d)
        }
    }

    /// Appends an integer.
    static func write(_ value: Int, to output: inout [UInt8], digits least: Int = 1) {
        if value < 0 { output.append(0x2d) }
        var rest = value.magnitude
        let start = output.count
        repeat {
            output.append(0x30 + UInt8(truncatingIfNeeded: rest % 10))
            rest /= 10
        } while rest > 0 || output.count - start < least
        output[start...].reverse()
    }

    /// Appends a non-negative number with three decimals; null if it is not finite.
    static func write(decimal value: Double, to output: inout [UInt8]) {
        guard value.isFinite else { return output += "null".utf8 }
        let thousandths = Int((min(max(value, 0), 1e12) * 1000).rounded())
        write(thousandths / 1000, to: &output)
        output.append(0x2e)
        write(thousandths % 1000, to: &output, digits: 3)
    }
}

extension Json {
    /// The JSON over several lines, for people; a list or an object that fits stays on one line.
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
    /// This text as a JSON string, with quotes.
    var jsonString: String {
        var output: [UInt8] = []
        writeJson(to: &output)
        return String(decoding: output, as: UTF8.self)
    }

    /// Appends the JSON string in UTF-8.
    func writeJson(to output: inout [UInt8]) {
        var text = self
        text.withUTF8 { JsonString.write($0, to: &output) }
    }
}
