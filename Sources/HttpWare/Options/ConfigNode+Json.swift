extension ConfigNode {
    /// This value as JSON, as YAML 1.2's core schema reads it: unquoted `1`, `true` and `null` are not texts, `yes` is one.
    public var json: String {
        switch content {
        case .scalar(let text, let isQuoted):
            if !isQuoted {
                if text.isEmpty || ["null", "Null", "NULL", "~"].contains(text) { return "null" }
                if ["true", "True", "TRUE"].contains(text) { return "true" }
                if ["false", "False", "FALSE"].contains(text) { return "false" }
                if text.isJsonNumber { return text }
            }
            return text.jsonString
        case .list(let members):
            return "[" + members.map(\.json).joined(separator: ",") + "]"
        case .map(let entries):
            return "{" + entries.map { $0.key.jsonString + ":" + $0.value.json }.joined(separator: ",") + "}"
        }
    }
}

extension ConfigNode {
    /// The same over several lines, for people; a list or a map that fits stays on one.
    public var prettyJson: String { prettyJson(indent: "", used: 0) }

    private func prettyJson(indent: String, used: Int) -> String {
        let compact = json
        if indent.utf8.count + used + compact.utf8.count <= 100 { return compact }
        let inner = indent + "  "
        let lines: [String]
        let ends: (String, String)
        switch content {
        case .scalar: return compact
        case .list(let members):
            lines = members.map { $0.prettyJson(indent: inner, used: 0) }
            ends = ("[", "]")
        case .map(let entries):
            lines = entries.map { entry in
                let key = entry.key.jsonString + ": "
                return key + entry.value.prettyJson(indent: inner, used: key.utf8.count)
            }
            ends = ("{", "}")
        }
        return ends.0 + "\n" + lines.map { inner + $0 }.joined(separator: ",\n") + "\n" + indent + ends.1
    }
}

extension String {
    /// This text as a JSON string (RFC 8259 §7), quotes included.
    public var jsonString: String {
        var quoted = "\""
        for scalar in unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            case "\r": quoted += "\\r"
            case "\t": quoted += "\\t"
            case _ where scalar.value < 0x20:
                let hex = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }

    /// `-1`, `0.5`, `1e9`, but not `01`, `.5`, `0x1` or `nan` (RFC 8259 §6).
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
