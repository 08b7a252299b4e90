extension ConfigNode {
    /// This value as JSON, by YAML 1.2's core schema: unquoted `1`, `true` and `null` are not texts, but `yes` is.
    public var jsonValue: Json {
        switch content {
        case .scalar(let text, let isQuoted):
            if !isQuoted {
                if text.isEmpty || ["null", "Null", "NULL", "~"].contains(text) { return .null }
                if ["true", "True", "TRUE"].contains(text) { return .bool(true) }
                if ["false", "False", "FALSE"].contains(text) { return .bool(false) }
                if text.isJsonNumber { return .digits(text) }
            }
            return .text(text)
        case .list(let members): return .list(members.map(\.jsonValue))
        case .map(let entries): return .object(entries.map { ($0.key, $0.value.jsonValue) })
        }
    }

    /// The JSON as text, on one line.
    public var json: String { jsonValue.text }

    /// The JSON as text over several lines, for people.
    public var prettyJson: String { jsonValue.prettyText }
}

extension String {
    /// Whether it is a JSON number: `-1`, `0.5`, `1e9`, but not `01`, `.5`, `0x1` or `nan` (RFC 8259 §6).
    var isJsonNumber: Bool {
        var rest = utf8[...]
        func digits() -> Int {
            let count = rest.prefix { (0x30...0x39).contains($0) }.count
            rest = rest.dropFirst(count)
            return count
        }
        if rest.first == UInt8(ascii: "-") { rest = rest.dropFirst() }
        let startsWithZero = rest.first == UInt8(ascii: "0")
        let whole = digits()
        if whole == 0 || (startsWithZero && whole > 1) { return false }
        if rest.first == UInt8(ascii: ".") {
            rest = rest.dropFirst()
            if digits() == 0 { return false }
        }
        if rest.first == UInt8(ascii: "e") || rest.first == UInt8(ascii: "E") {
            rest = rest.dropFirst()
            if rest.first == UInt8(ascii: "+") || rest.first == UInt8(ascii: "-") { rest = rest.dropFirst() }
            if digits() == 0 { return false }
        }
        return rest.isEmpty
    }
}
