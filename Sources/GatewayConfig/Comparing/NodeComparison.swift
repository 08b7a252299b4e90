import HttpWare

/// Finds the options in which two values differ, by key path.
struct NodeComparison {
    /// The paths of values that must never be printed. Members of lists have the path of their list, and `*` is any
    /// key.
    let secrets: Set<[String]>
    /// The places of such values in the files. An alias has the place of its anchor.
    let places: Set<SourceLocation>
    private(set) var found: [ConfigurationDifference.KeyChange] = []

    init(secrets: Set<[String]>, at places: Set<SourceLocation> = []) {
        self.secrets = secrets
        self.places = places
    }

    /// Compares two existing values. The depth of the recursion is bounded by the reader's limit.
    mutating func compare(_ old: ConfigNode, _ new: ConfigNode, _ path: [String]) {
        if let before = old.entries, let after = new.entries, !(old.isEmpty && new.isEmpty) {
            let former = Dictionary(before.map { ($0.key, $0.value) }, uniquingKeysWith: { first, _ in first })
            for entry in after {
                if let value = former[entry.key] {
                    compare(value, entry.value, path + [entry.key])
                } else {
                    add(path + [entry.key], nil, entry.value)
                }
            }
            let keys = Set(after.map(\.key))
            for entry in before where !keys.contains(entry.key) { add(path + [entry.key], entry.value, nil) }
        } else if case .list(let before) = old.content, case .list(let after) = new.content, before.count == after.count
        {
            for (index, pair) in zip(before, after).enumerated() {
                compare(pair.0, pair.1, path.dropLast() + ["\(path.last ?? "")[\(index)]"])
            }
        } else if old.bare(exactly: true) != new.bare(exactly: true) {
            add(path, old, new)
        }
    }

    private mutating func add(_ path: [String], _ old: ConfigNode?, _ new: ConfigNode?) {
        found.append(
            ConfigurationDifference.KeyChange(
                key: Redaction.text(path.joined(separator: ".")), old: old.map { shown($0, path) },
                new: new.map { shown($0, path) },
                location: new?.location ?? old?.location ?? .code))
    }

    /// The value on one line, shortened; secrets are masked.
    private func shown(_ node: ConfigNode, _ path: [String]) -> String {
        let text = flow(node, NodeComparison.bare(path))
        return text.unicodeScalars.count > 200 ? String(text.prefix(200)) + "…" : text
    }

    private func flow(_ node: ConfigNode, _ path: [String]) -> String {
        if isSecret(path) || places.contains(node.location) { return "the secret value" }
        return switch node.content {
        case .scalar: node.shown
        case .list(let members): "[" + members.map { flow($0, path) }.joined(separator: ", ") + "]"
        case .map(let entries):
            "{ "
                + entries.map { "\(Redaction.text($0.key).shortened): \(flow($0.value, path + [$0.key]))" }.joined(
                    separator: ", ")
                + " }"
        }
    }

    private func isSecret(_ path: [String]) -> Bool {
        secrets.contains { secret in
            secret.count <= path.count && zip(secret, path).allSatisfy { $0 == "*" || $0 == $1 }
        }
    }

    /// A path without the indices of members.
    static func bare(_ path: [String]) -> [String] { path.map { String($0.prefix { $0 != "[" }) } }
}

/// The nouns of a configuration, joined from all files.
struct WrittenNouns {
    private let entries: [ConfigNode.Entry]

    init(_ entries: [ConfigNode.Entry]) { self.entries = entries }

    /// The nouns of both configurations without duplicates, in the order of the new one.
    static func names(_ old: WrittenNouns, _ new: WrittenNouns) -> [String] {
        var seen: Set<String> = []
        return (new.entries + old.entries).map(\.key).filter { seen.insert($0).inserted }
    }

    func named(_ noun: String) -> [ConfigNode.Entry] {
        entries.filter { $0.key == noun }.flatMap { $0.value.entries ?? [] }
    }

    func single(_ noun: String) -> ConfigNode? { entries.first { $0.key == noun }?.value }

    var routes: [ConfigNode] { entries.filter { $0.key == "routes" }.flatMap(\.value.members) }
}
