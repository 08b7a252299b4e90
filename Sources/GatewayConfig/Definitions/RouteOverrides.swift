import HttpWare

/// Applies a route's `with`: replaces options, or drops wares, in the chains of the route and its service.
struct RouteOverrides {
    let route: RouteDefinition
    private(set) var diagnostics = Diagnostics()

    init(of route: RouteDefinition) { self.route = route }

    /// Changes the route's and the services' chains. The listener's chain cannot be changed.
    mutating func apply(
        to chains: inout [ChainTable.Spliced], outOfReach: [ChainTable.Spliced], builder: inout ChainBuilder
    ) {
        for override in route.with {
            let keyPath = "\(route.name).with.\(override.key.shortened)"
            let isLabel = contains(chains) { $0.label == override.key }
            let isOverridden = { (entry: WrittenEntry) in
                isLabel ? entry.label == override.key : entry.name == override.key
            }
            guard contains(chains, isOverridden) else {
                diagnostics.error(at: override.location, keyPath, absent(override.key, chains, outOfReach))
                continue
            }
            let isDrop = override.value.content == .scalar("false", isQuoted: false)
            let options = isDrop ? [] : override.value.entries
            guard let options else {
                diagnostics.error(
                    at: override.value.location, keyPath,
                    "\(override.value.shown) is not a map of options; write {…}, or false to remove the ware")
                continue
            }
            var isGuard = false
            for index in chains.indices {
                for list in WrittenChain.List.allCases {
                    var entries = chains[index][list]
                    if isDrop {
                        isGuard =
                            isGuard
                            || entries.contains { isOverridden($0) && WareRegistry.keepsOut($0) }
                        entries.removeAll { isOverridden($0) }
                    } else {
                        entries = entries.map { written in
                            guard isOverridden(written) else { return written }
                            return builder.rebuild(written, for: route.name, replacing: options)
                        }
                    }
                    chains[index].lists[list] = entries
                }
            }
            if isGuard { diagnostics.warning(at: override.location, keyPath, "removes an access ware") }
        }
    }

    private func contains(_ chains: [ChainTable.Spliced], _ isOverridden: (WrittenEntry) -> Bool) -> Bool {
        chains.contains { chain in chain.lists.values.contains { $0.contains { isOverridden($0) } } }
    }

    private func absent(_ key: String, _ chains: [ChainTable.Spliced], _ outOfReach: [ChainTable.Spliced]) -> String {
        if contains(outOfReach, { $0.label == key || $0.name == key }) {
            return "stands in the chain of a listener, which a route cannot change"
        }
        let entries = chains.flatMap { $0.lists.values.flatMap { $0 } }
        let names = (entries.compactMap(\.label) + entries.map(\.name)).sorted()
        return "no such entry in the chains of the route and its service\(didYouMean(key, among: names))"
    }
}
