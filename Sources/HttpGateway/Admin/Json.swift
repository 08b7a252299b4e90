import HttpWare

/// A value that becomes JSON (RFC 8259).
indirect enum Json: Sendable {
    case null
    case bool(Bool)
    case number(Int)
    case real(Double)
    case text(String)
    case list([Json])
    /// In this order.
    case object([(String, Json)])

    /// A text, or null.
    static func optional(_ text: String?) -> Json { text.map { .text($0) } ?? .null }

    var text: String {
        var output = ""
        write(to: &output)
        return output
    }

    private func write(to output: inout String) {
        switch self {
        case .null: output += "null"
        case .bool(let value): output += value ? "true" : "false"
        case .number(let value): output += String(value)
        case .real(let value): output += value.isFinite ? "\(value)" : "null"
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
}

extension Json: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral {
    init(stringLiteral value: String) { self = .text(value) }
    init(integerLiteral value: Int) { self = .number(value) }
    init(booleanLiteral value: Bool) { self = .bool(value) }
}
