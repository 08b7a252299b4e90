import HttpWare

/// Finds the options in which two values differ, by key path.
struct NodeComparison {
    /// The paths of values that nothing may print; members of lists count as their list.
    let secrets: Set<[String]>
    private(set) var found: [ConfigurationDifference.KeyChange] = []

    init(secrets: Set<[String]>) { self.secrets = secrets }

    /// Both are there, and differ somewhere. No deeper than the reader lets a tree be.
    mutating func compare(_ old: ConfigNode, _ new: ConfigNode, _ path: [String]) {
        if let before = old.entries, let after = new.entries, !(old.isEmpty && new.isEmpty) {
            for entry in after {
                guard let former = before.first(where: { $0.key == entry.key }) else {
                    add(path + [entry.key], nil, entry.value)
                    continue
                }
                compare(former.value, entry.value, path + [entry.key])
            }
            for entry in before where !after.contains(where: { $0.key == entry.key }) {
                add(path + [entry.key], entry.value, nil)
            }
        } else if case .list(let before) = old.content, case .list(let after) = new.content, before.count == after.count
        {
            for (index, pair) in zip(before, after).enumerated() {
                compare(pair.0, pair.1, path.dropLast() + ["\(path.last ?? "")[\(index)]"])
            }
        } else if old.bare(exactly: true) != new.bare(exactly: true) {
            add(path, old, new)
        }
    }

    /// A path without the places of members.
    static func bare(_ path: [String]) -> [String] { path.map { String($0.prefix { $0 != "[" }) } }

    private mutating func add(_ path: [String], _ old: ConfigNode?, _ new: ConfigNode?) {
        let bare = NodeComparison.bare(path)
        let isSecret = secrets.contains { bare.starts(with: $0) }
        found.append(
            ConfigurationDifference.KeyChange(
                key: path.joined(separator: "."), old: old.map { Self.shown($0, isSecret) },
                new: new.map { Self.shown($0, isSecret) },
                location: new?.location ?? old?.location ?? .code))
    }

    /// On one line, shortened; a secret is not shown.
    private static func shown(_ node: ConfigNode, _ isSecret: Bool) -> String {
        let text = flow(node, isSecret)
        return text.unicodeScalars.count > 200 ? String(text.prefix(200)) + "…" : text
    }

    private static func flow(_ node: ConfigNode, _ isSecret: Bool) -> String {
        switch node.content {
        case .scalar where isSecret || node.isSecret: "the secret value"
        case .scalar: node.shown
        case .list(let members): "[" + members.map { flow($0, isSecret) }.joined(separator: ", ") + "]"
        case .map(let entries):
            "{ " + entries.map { "\($0.key.shortened): \(flow($0.value, isSecret))" }.joined(separator: ", ") + " }"
        }
    }
}

/// The nouns of a configuration, with what several files say of one put together.
struct WrittenNouns {
    private let entries: [ConfigNode.Entry]

    init(_ entries: [ConfigNode.Entry]) { self.entries = entries }

    /// The nouns of both, each once, in the order of the new one.
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
