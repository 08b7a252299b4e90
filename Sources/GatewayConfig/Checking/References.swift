import HttpWare

/// Checks that the objects exist that chain entries refer to by name: wares as responders, and captures of routes.
struct References {
    private(set) var diagnostics = Diagnostics()
    /// The captures that entries need, each with whether a route provides it for that entry.
    private var captures: [NeededCapture: Bool] = [:]
    /// The captures of routes whose entries need one.
    private var offered: Set<String> = []

    /// Checks that every name in an `if: { responder: … }` belongs to a ware or is the word for another responder.
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

    /// Notes the captures that entries need, for requests whose path matched one of these patterns.
    mutating func note(_ needed: [NeededCapture], for paths: [PathPattern]) {
        guard !needed.isEmpty else { return }
        let captured = Set(paths.flatMap(\.captures))
        offered.formUnion(captured)
        for one in needed { captures[one] = captures[one] ?? false || captured.contains(one.name) }
    }

    /// Reports captures that no route has: such a capture is empty for every request.
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
