import HttpWare

/// The lines of `header`, `request_header`, `header_up` and `header_down`, as the options of `requestHeaders` or `responseHeaders`.
struct CaddyFields {
    private var set: [(String, String)] = []
    private var absent: [(String, String)] = []
    private var added: [(name: String, values: [String])] = []
    private var removed: [String] = []
    private var replaced: [ConfigNode] = []
    /// Further placeholders, with the text that takes their place.
    var extra: [String: String] = [:]
    /// The statuses of the responses whose fields are edited; empty for all.
    var statuses: [String] = []
    /// Whether the fields are those of responses, in which parts can be replaced.
    var isResponse = true

    /// Takes the words of a line; returns why it cannot be said here.
    mutating func take(_ words: [String]) -> String? {
        guard var name = words.first, !name.isEmpty else { return "a field is missing" }
        let sign = name.first.map { "+-?>".contains($0) ? $0 : " " } ?? " "
        if sign != " " { name.removeFirst() }
        if name.hasSuffix(":") { name.removeLast() }
        guard FieldText.isName(name) || sign == "-" else { return "the name of the field is invalid" }
        if sign == "-" {
            guard FieldText.isName(name) else { return "fields are removed by whole names here" }
            removed.append(name)
            return nil
        }
        if words.count == 3 {
            guard isResponse, !words[1].contains("{"), !words[2].contains("{") else {
                return "a part of a field cannot be replaced here"
            }
            replaced.append(.map(["name": .text(name), "regex": .text(words[1]), "to": .text(words[2])]))
            return nil
        }
        guard words.count == 2, let value = CaddyPlaceholders.template(words[1], extra: extra) else {
            return words.count == 2 ? "a placeholder has no counterpart" : "the line has no value"
        }
        guard FieldText.isValue(value) else { return "the value of the field is invalid" }
        switch sign {
        case "+":
            if let index = added.firstIndex(where: { $0.name.lowercased() == name.lowercased() }) {
                added[index].values.append(value)
            } else {
                added.append((name, [value]))
            }
        case "?": absent = absent.filter { $0.0.lowercased() != name.lowercased() } + [(name, value)]
        default: set = set.filter { $0.0.lowercased() != name.lowercased() } + [(name, value)]
        }
        return nil
    }

    /// The options; `nil` without any.
    var options: ConfigNode? {
        guard !(set.isEmpty && absent.isEmpty && added.isEmpty && removed.isEmpty && replaced.isEmpty) else {
            return nil
        }
        return .map([
            "remove": removed.isEmpty ? nil : .list(removed), "set": set.isEmpty ? nil : .map(set),
            "setIfAbsent": absent.isEmpty ? nil : .map(absent),
            "append": added.isEmpty
                ? nil
                : ConfigNode(
                    .map(added.map { ConfigNode.Entry(key: $0.name, location: .code, value: .list($0.values)) })),
            "statuses": statuses.isEmpty ? nil : .list(statuses),
            "replace": replaced.isEmpty ? nil : ConfigNode(.list(replaced)),
        ])
    }
}
