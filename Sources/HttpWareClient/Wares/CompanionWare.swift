/// A ware with two parts. The manager puts the second part directly after the first one. If a response half asks for a
/// replay, the request is sent again from its place inward, and the second part can then change the request.
public protocol CompanionWare: Middleware {
    /// The second part.
    var companion: any Middleware { get }
}

extension [any Middleware] {
    /// The wares, each followed by its companion.
    var withCompanions: [any Middleware] {
        flatMap { ware -> [any Middleware] in
            let own = (ware as? any GatedWare)?.ware ?? ware
            guard let pair = own as? any CompanionWare else { return [ware] }
            return [ware, pair.companion]
        }
    }
}
