import HttpWare

/// A map of a file of others, whose keys are taken one by one, so that those that remain can be named.
struct ForeignMap {
    /// The entries that were not taken yet, in file order.
    private(set) var rest: [ConfigNode.Entry]
    /// The place of the map.
    let location: SourceLocation

    /// The map of a node; empty for another value.
    init(_ node: ConfigNode?) {
        rest = node?.entries ?? []
        location = node?.location ?? .code
    }

    /// Takes the value of a key, whose letter case does not count.
    mutating func take(_ key: String) -> ConfigNode? {
        guard let index = rest.firstIndex(where: { $0.key.lowercased() == key.lowercased() }) else { return nil }
        return rest.remove(at: index).value
    }

    /// Takes the text of a key; `nil` if it has none.
    mutating func text(_ key: String) -> String? { take(key)?.text }

    /// Takes the texts of a list, or of a text with commas.
    mutating func texts(_ key: String) -> [String] {
        guard let node = take(key) else { return [] }
        if let text = node.text { return text.split(separator: ",").map { $0.trimmed } }
        return node.members.compactMap(\.text)
    }

    /// Takes a boolean; `nil` if the key is missing.
    mutating func flag(_ key: String) -> Bool? {
        guard let text = text(key) else { return nil }
        return text.lowercased() == "true" || text == "1"
    }

    /// Names the entries that were not taken.
    func note(_ reason: String, in draft: inout GatewayDraft, prefix: String = "") {
        for entry in rest {
            let shown = entry.value.text.map { "\(entry.key): \($0)" } ?? entry.key
            draft.note(entry.location, prefix.isEmpty ? shown : "\(prefix).\(shown)", reason)
        }
    }
}

extension Substring {
    /// The text without spaces at its ends.
    var trimmed: String { String(self).trimmed }
}

extension String {
    /// The text without spaces, tabs and line ends at its ends.
    var trimmed: String {
        let isBlank = { (scalar: Unicode.Scalar) in scalar == " " || scalar == "\t" || scalar == "\n" || scalar == "\r"
        }
        let start = unicodeScalars.drop(while: isBlank)
        guard let last = start.lastIndex(where: { !isBlank($0) }) else { return "" }
        return String(start[...last])
    }
}
