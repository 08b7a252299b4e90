import HttpWare

/// Values whose order matters, such as routes and the entries of a chain, and their counterparts in another configuration.
struct NodeSequence {
    struct Item {
        /// The name in texts after the noun: `.orders`, `[3]`.
        let name: String
        /// The key that identifies the item in both sequences; `nil` if only its content identifies it.
        let key: String?
        let node: ConfigNode
    }

    private(set) var items: [Item]

    /// Routes are identified by their name, or else by their content.
    static func routes(_ nodes: [ConfigNode]) -> NodeSequence {
        NodeSequence(
            items: nodes.enumerated().map { index, node in
                let name = node["name"]?.text
                return Item(name: name.map { ".\($0.shortened)" } ?? "[\(index)]", key: name, node: node)
            })
    }

    /// Entries are identified by their label, or else by their ware or the chain that they use, together with their number
    /// among equal ones.
    static func entries(_ list: ConfigNode?) -> NodeSequence {
        var counts: [String: Int] = [:]
        return NodeSequence(
            items: (list?.members ?? []).map { node in
                let ware =
                    node.text ?? node.entries?.first { !["if", "filter", "as", "order"].contains($0.key) }?.key ?? ""
                let name = node["as"]?.text ?? (ware == "use" ? "use \(node["use"]?.text ?? "")" : ware)
                let ordinal = counts[name, default: 0]
                counts[name] = ordinal + 1
                let shown = ordinal == 0 ? ".\(name.shortened)" : ".\(name.shortened)[\(ordinal)]"
                // A bare name and a name without options mean the same.
                let whole =
                    node.text == nil
                    ? node
                    : ConfigNode(
                        .map([.init(key: ware, location: node.location, value: ConfigNode(.map([])))]),
                        at: node.location
                    )
                return Item(name: shown, key: "\(ordinal) \(name)", node: whole)
            })
    }

    /// For each item of the new sequence, the index of its counterpart in this one; `nil` if it has none.
    func pairs(with new: NodeSequence) -> [Int?] {
        var pairs = [Int?](repeating: nil, count: new.items.count)
        var free = Set(items.indices)
        func pair(_ identity: (Item) -> ConfigNode?) {
            var waiting: [ConfigNode: [Int]] = [:]
            for index in items.indices.reversed() where free.contains(index) {
                if let key = identity(items[index]) { waiting[key, default: []].append(index) }
            }
            for (index, item) in new.items.enumerated() where pairs[index] == nil {
                guard let key = identity(item), let found = waiting[key]?.popLast() else { continue }
                pairs[index] = found
                free.remove(found)
            }
        }
        pair { $0.key.map { ConfigNode(.scalar($0, isQuoted: true)) } }
        pair { $0.key == nil ? $0.node.bare(exactly: false) : nil }
        pair { $0.key == nil ? ($0.node["match"] ?? ConfigNode(.map([]))).bare(exactly: false) : nil }
        return pairs
    }

    /// The smallest set of items whose move explains the new order.
    static func moved(_ pairs: [Int?]) -> Set<Int> {
        // The longest subsequence that kept its order, by patience sorting: `tails[k]` ends the best one with k + 1 items.
        var tails: [Int] = []
        var before = [Int?](repeating: nil, count: pairs.count)
        for (index, pair) in pairs.enumerated() {
            guard let place = pair else { continue }
            var (low, high) = (0, tails.count)
            while low < high {
                let middle = (low + high) / 2
                if pairs[tails[middle]] ?? 0 < place { low = middle + 1 } else { high = middle }
            }
            before[index] = low > 0 ? tails[low - 1] : nil
            if low == tails.count { tails.append(index) } else { tails[low] = index }
        }
        var moved = Set(pairs.indices.filter { pairs[$0] != nil })
        var next = tails.last
        while let index = next {
            moved.remove(index)
            next = before[index]
        }
        return moved
    }
}
