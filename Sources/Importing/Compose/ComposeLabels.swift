import HttpWare

/// Turns labels with dots into a tree: `traefik.http.routers.app.rule=…` becomes nested maps.
struct LabelTree {
    /// The maximum number of parts of one label.
    private static let deepest = 16

    private final class Branch {
        var value: (text: String, location: SourceLocation)?
        var names: [String] = []
        var branches: [String: Branch] = [:]
        let location: SourceLocation

        init(at location: SourceLocation) { self.location = location }
    }

    private let root: Branch

    /// Begins an empty tree.
    init(at location: SourceLocation) { root = Branch(at: location) }

    /// Adds a label; `name[0].part` is a member of a list. `false` if it has too many parts.
    func add(_ label: String, _ text: String, at location: SourceLocation) -> Bool {
        var parts: [String] = []
        for part in label.split(separator: ".", omittingEmptySubsequences: true) {
            if part.hasSuffix("]"), let open = part.firstIndex(of: "["), open != part.startIndex {
                parts += [String(part[..<open]), String(part[open...])]
            } else {
                parts.append(String(part))
            }
        }
        guard !parts.isEmpty, parts.count <= Self.deepest else { return false }
        var branch = root
        for part in parts {
            let key = part.lowercased()
            if let next = branch.branches[key] {
                branch = next
            } else {
                let made = Branch(at: location)
                branch.branches[key] = made
                branch.names.append(part)
                branch = made
            }
        }
        branch.value = (text, location)
        return true
    }

    /// The tree; a name with members `[0]`, `[1]` … is a list.
    var node: ConfigNode { Self.node(of: root) }

    private static func node(of branch: Branch) -> ConfigNode {
        if branch.names.isEmpty {
            let value = branch.value
            return ConfigNode(.scalar(value?.text ?? "", isQuoted: true), at: value?.location ?? branch.location)
        }
        let isList = branch.names.allSatisfy { $0.hasPrefix("[") }
        let entries = branch.names.compactMap { name -> ConfigNode.Entry? in
            branch.branches[name.lowercased()].map {
                ConfigNode.Entry(key: name, location: $0.location, value: node(of: $0))
            }
        }
        if isList { return ConfigNode(.list(entries.map(\.value)), at: branch.location) }
        return ConfigNode(.map(entries), at: branch.location)
    }
}
