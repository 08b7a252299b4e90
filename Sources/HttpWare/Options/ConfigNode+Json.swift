extension ConfigNode {
    /// This value as JSON, by YAML 1.2's core schema: unquoted `1`, `true` and `null` are not texts, but `yes` is.
    public var jsonValue: Json {
        switch content {
        case .scalar(let text, let isQuoted):
            if !isQuoted {
                if text.isEmpty || ["null", "Null", "NULL", "~"].contains(text) { return .null }
                if ["true", "True", "TRUE"].contains(text) { return .bool(true) }
                if ["false", "False", "FALSE"].contains(text) { return .bool(false) }
                if JsonScanner.isNumber(text) { return .digits(text) }
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
