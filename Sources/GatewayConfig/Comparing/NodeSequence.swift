import HttpWare

/// Values whose order matters – routes, the entries of a chain – and how those of two configurations belong together.
struct NodeSequence {
    struct Item {
        /// Its name in texts, behind its noun: `.orders`, `[3]`.
        let name: String
        /// Tells it apart from the others, and finds it in another sequence; `nil`: only what it says does.
        let key: String?
        let node: ConfigNode
    }

    private(set) var items: [Item]

    /// Routes go by their name, else by what they say.
    static func routes(_ nodes: [ConfigNode]) -> NodeSequence {
        NodeSequence(
            items: nodes.enumerated().map { index, node in
                let name = node["name"]?.text
                return Item(name: name.map { ".\($0.shortened)" } ?? "[\(index)]", key: name, node: node)
            })
    }

    /// Entries go by label, else by ware or the chain they use, and by which of those they are.
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
                // A bare name and a name without options say the same.
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

    /// For each item of the new sequence the place of the one in this that it was.
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

    /// The items of the new sequence that changed their place against most of the others: the fewest that explain the order.
    static func moved(_ pairs: [Int?]) -> Set<Int> {
        // The longest run that kept its order, by patience: `tails[k]` ends the best run of k + 1.
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
