import HttpWare

/// The chains by name. Inserts the chains that they use, and joins the chains of listener, route and service.
struct ChainTable {
    /// The two lists of one chain, with the entries of all chains that it uses.
    struct Spliced {
        var lists: [WrittenChain.List: [WrittenEntry]] = [:]

        /// The captures of the route's path that placeholders in the entries need.
        var captures: [NeededCapture] { lists.values.flatMap { $0.flatMap(\.captures) } }

        subscript(list: WrittenChain.List) -> [WrittenEntry] { lists[list] ?? [] }
    }

    private var chains: [String: WrittenChain] = [:]
    private var spliced: [String: Spliced] = [:]
    private(set) var used: Set<String> = []
    private(set) var diagnostics = Diagnostics()

    private static let longestList = 1000
    /// The maximum depth of chains that use chains, which bounds the stack.
    private static let deepest = 32

    init(_ chains: [WrittenChain]) {
        self.chains = Dictionary(chains.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        for chain in chains {
            for list in WrittenChain.List.allCases { _ = splice(chain.name, list, open: []) }
        }
    }

    /// The chain that a listener, route or service names; empty if it names no chain, or an unknown one.
    mutating func chain(_ name: Located<String>?, for keyPath: String) -> Spliced {
        guard let name else { return Spliced() }
        guard chains[name.value] != nil else {
            diagnostics.error(at: name.location, keyPath, absent(name.value))
            return Spliced()
        }
        used.insert(name.value)
        return spliced[name.value] ?? Spliced()
    }

    /// Each chain without others joined to it, by name.
    var joined: [String: WareChain] {
        spliced.mapValues { .joining(listener: $0, route: Spliced(), service: Spliced()) }
    }

    private func absent(_ name: String) -> String {
        "there is no chain \(name.quotedForErrors)\(didYouMean(name, among: chains.keys.sorted()))"
    }

    private mutating func splice(_ name: String, _ list: WrittenChain.List, open: [String]) -> [WrittenEntry] {
        if let done = spliced[name]?.lists[list] { return done }
        guard let chain = chains[name] else { return [] }
        let keyPath = "chains.\(name).\(list.rawValue)"
        var result: [WrittenEntry] = []
        for item in chain.items[list] ?? [] {
            switch item {
            case .entry(let entry): result.append(entry)
            case .use(let other):
                let circle = open + [name]
                if chains[other.value] == nil {
                    diagnostics.error(at: other.location, keyPath, absent(other.value))
                } else if let start = circle.firstIndex(of: other.value) {
                    let names = (circle[start...] + [other.value]).joined(separator: " → ")
                    diagnostics.error(
                        at: other.location, keyPath, "chains use each other in a loop: \(names.shortened)")
                } else if circle.count >= Self.deepest {
                    diagnostics.error(at: other.location, keyPath, "chains use each other deeper than \(Self.deepest)")
                } else {
                    used.insert(other.value)
                    result += splice(other.value, list, open: circle)
                }
            }
        }
        if result.count > Self.longestList {
            diagnostics.error(
                at: chain.location, keyPath, "more than \(Self.longestList) entries, with those of the chains it uses")
            result = []
        }
        spliced[name, default: Spliced()].lists[list] = result
        return result
    }
}

extension WareChain {
    /// Joins the middlewares of listener, route and service, and the postwares in reverse order; then sorts by `order`,
    /// stably.
    static func joining(
        listener: ChainTable.Spliced, route: ChainTable.Spliced, service: ChainTable.Spliced
    ) -> WareChain {
        let middlewares = listener[.middlewares] + route[.middlewares] + service[.middlewares]
        let postwares = service[.postwares] + route[.postwares] + listener[.postwares]
        // An entry on the wrong side is in neither list: the builder has reported it as an error.
        return (try? WareChain(middlewares: middlewares.map(\.entry), postwares: postwares.map(\.entry))) ?? .empty
    }
}
