public import HttpWare

extension CaptureFilter {
    /// The equivalent `if` of a configuration file; `nil` if it is always met. Throws at the first operator that an `if` cannot
    /// express exactly.
    public func condition(isPostware: Bool) throws(FilterFault) -> ConfigNode? {
        var writer = ConditionWriter(isPostware: isPostware)
        try writer.add(root)
        return writer.node
    }
}

/// Converts a filter to an `if`: keys for conditions that must all hold, lists for alternatives.
private struct ConditionWriter {
    let isPostware: Bool
    private var entries: [(key: String, value: ConfigNode)] = []

    init(isPostware: Bool) { self.isPostware = isPostware }

    var node: ConfigNode? {
        if entries.isEmpty { return nil }
        return ConfigNode(.map(entries.map { ConfigNode.Entry(key: $0.key, location: .code, value: $0.value) }))
    }

    mutating func add(_ node: FilterNode) throws(FilterFault) {
        switch node {
        case .all(let nodes): for node in nodes { try add(node) }
        case .test(.always(true), _): break
        case .test(let test, let column): try add(try part(test, column), column)
        case .any(let nodes):
            // Alternatives of one key are a list.
            var key: String?
            var members: [ConfigNode] = []
            for node in nodes {
                guard case .test(let test, let column) = node else { throw fault(node) }
                let part = try part(test, column)
                guard key ?? part.key == part.key, part.key == "host" || part.key == "method" || part.key == "status"
                else {
                    throw fault(column)
                }
                key = part.key
                members += part.value.members
            }
            if let key { try add((key, ConfigNode(.list(members))), column(node)) }
        case .not: throw fault(node)
        }
    }

    private mutating func add(_ part: (key: String, value: ConfigNode), _ column: Int) throws(FilterFault) {
        if let place = entries.firstIndex(where: { $0.key == part.key }) {
            // Fields with different names can share a key; with other keys, the values would be alternatives.
            guard let former = entries[place].value.entries, let more = part.value.entries,
                !former.contains(where: { one in more.contains { $0.key.lowercased() == one.key.lowercased() } })
            else { throw fault(column) }
            entries[place].value = ConfigNode(.map(former + more))
        } else {
            entries.append(part)
        }
    }

    private func part(_ test: FilterTest, _ column: Int) throws(FilterFault) -> (key: String, value: ConfigNode) {
        switch test {
        case .domain(let pattern):
            guard let hosts = ConditionWriter.literals(pattern.source), hosts.allSatisfy(ConditionWriter.isHost) else {
                throw fault(column)
            }
            return ("host", list(hosts.map { $0.lowercased() }))
        case .method(let pattern):
            guard let methods = ConditionWriter.literals(pattern.source), methods.allSatisfy({ HttpMethod($0) != nil })
            else { throw fault(column) }
            return ("method", list(methods))
        case .status(let status):
            guard isPostware, let text = ConditionWriter.statuses(status) else { throw fault(column) }
            return ("status", ConfigNode(.list([ConfigNode(.scalar(text, isQuoted: false))])))
        case .fields(let side, let pattern):
            guard side == .request || side == .response && isPostware,
                let (name, value) = ConditionWriter.field(pattern.source)
            else { throw fault(column) }
            let entry = ConfigNode.Entry(
                key: name, location: .code, value: ConfigNode(.scalar("~(?i)^\(value)$", isQuoted: true)))
            return (side == .request ? "headers" : "responseHeaders", ConfigNode(.map([entry])))
        default: throw fault(column)
        }
    }

    private func list(_ texts: [String]) -> ConfigNode {
        ConfigNode(.list(texts.map { ConfigNode(.scalar($0, isQuoted: true)) }))
    }

    /// Statuses as a file writes them: `404`, `5xx` or `400-499`; `nil` for statuses of no final response.
    private static func statuses(_ range: NumberRange) -> String? {
        let high = min(range.high, 599)
        guard range.low >= 200, range.low <= high else { return nil }
        if range.low == high { return String(high) }
        if range.low % 100 == 0, high == range.low + 99 { return "\(range.low / 100)xx" }
        return "\(range.low)-\(high)"
    }

    // MARK: Patterns

    /// The texts of `^a\.b$` or `^(a|b)$`; `nil` for other patterns.
    static func literals(_ source: String) -> [String]? {
        guard source.hasPrefix("^"), source.hasSuffix("$") else { return nil }
        var body = source.dropFirst().dropLast()
        if body.hasPrefix("("), body.hasSuffix(")") {
            body = body.dropFirst().dropLast()
        } else if body.contains("|") {
            return nil
        }
        if body.hasPrefix("?:") { body = body.dropFirst(2) }
        var texts = [""]
        var isEscaped = false
        for character in body {
            if isEscaped {
                guard ".-".contains(character) else { return nil }
                texts[texts.count - 1].append(character)
                isEscaped = false
            } else if character == "\\" {
                isEscaped = true
            } else if character == "|" {
                texts.append("")
            } else if character.isASCII, character.isLetter || character.isNumber || character == "-" {
                texts[texts.count - 1].append(character)
            } else {
                return nil
            }
        }
        return isEscaped || texts.contains("") ? nil : texts
    }

    private static func isHost(_ text: String) -> Bool { !text.isEmpty && !text.contains("*") }

    /// The name and the value's expression in `^name: value$`; `nil` for other patterns, and for masked fields.
    private static func field(_ source: String) -> (name: String, value: String)? {
        guard source.hasPrefix("^"), source.hasSuffix("$"), let colon = source.range(of: ": ") else { return nil }
        let name = String(source[source.index(after: source.startIndex)..<colon.lowerBound])
        let value = String(source[colon.upperBound...].dropLast())
        guard name.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }), FieldName(name) != nil,
            !Redaction.fields.contains(where: { $0.text.lowercased() == name.lowercased() }), !value.isEmpty,
            !value.contains("|"), !value.hasSuffix("\\")
        else { return nil }
        return (name, value)
    }

    // MARK: Faults

    private func column(_ node: FilterNode) -> Int {
        switch node {
        case .test(_, let column): column
        case .not(let node): column(node)
        case .all(let nodes), .any(let nodes): nodes.first.map(column) ?? 1
        }
    }

    private func fault(_ node: FilterNode) -> FilterFault { fault(column(node)) }

    private func fault(_ column: Int) -> FilterFault {
        FilterFault(
            column: column,
            "no if says this exactly; write hosts as ~d ^api\\.example\\.com$, methods as ~m \"^(GET|POST)$\", fields as "
                + "~hq \"^name: value$\"" + (isPostware ? ", statuses as ~c 404" : ""))
    }
}

extension String {
    fileprivate func range(of text: String) -> Range<Index>? {
        var place = startIndex
        while place < endIndex {
            if self[place...].hasPrefix(text) { return place..<index(place, offsetBy: text.count) }
            place = index(after: place)
        }
        return nil
    }
}
