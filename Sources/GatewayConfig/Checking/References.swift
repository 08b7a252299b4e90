import HttpWare

/// What entries of chains refer to by name, and whether it is there: wares as responders, and captures of routes.
struct References {
    private(set) var diagnostics = Diagnostics()
    /// Each capture that is needed somewhere, and whether a route has it where it is needed.
    private var captures: [NeededCapture: Bool] = [:]
    /// What the routes that need a capture have.
    private var offered: Set<String> = []

    /// Every name in an `if: { responder: … }` is that of a ware somewhere, or a word for what is no ware.
    mutating func checkResponders(of builder: ChainBuilder) {
        let words = [Responder.upstream, .gateway, .cache].map(\.name)
        for (keyPath, node) in builder.responders {
            guard let name = node.text, !words.contains(name), !builder.labels.contains(name) else { continue }
            let shown = node.shown
            guard builder.relabelled[name] == nil else {
                let label = builder.relabelled[name, default: ""].quotedForErrors
                diagnostics.error(at: node.location, keyPath, "\(shown) has a label here; write \(label)")
                continue
            }
            let near = didYouMean(name, among: words + builder.labels.sorted())
            let hint = near.isEmpty ? "; write the label or name of a ware, or upstream, gateway or cache" : near
            diagnostics.error(at: node.location, keyPath, "there is no ware \(shown) in any chain\(hint)")
        }
    }

    /// What is needed by entries that run for requests whose path matched one of these patterns.
    mutating func note(_ needed: [NeededCapture], for paths: [PathPattern]) {
        guard !needed.isEmpty else { return }
        let captured = Set(paths.flatMap(\.captures))
        offered.formUnion(captured)
        for one in needed { captures[one] = captures[one] ?? false || captured.contains(one.name) }
    }

    /// A capture that no route has where it is needed is empty for every request: nobody means that.
    mutating func checkCaptures() {
        for (needed, isThere) in captures where !isThere {
            let near = didYouMean(needed.name, among: offered.sorted())
            let hint = near.isEmpty ? "; write {\(needed.name)} as a segment of a route's path" : near
            diagnostics.error(
                at: needed.location, needed.keyPath,
                "no route with this ware has \("{\(needed.name)}".shortened.quotedForErrors) in its path\(hint)")
        }
    }
}
