/// A ware with two parts: the manager puts the other part directly after it. If a response half asks for a replay, the
/// request is sent again from its place inward. The second part, behind it, can then change the request.
public protocol CompanionWare: Middleware {
    /// The second part.
    var companion: any Middleware { get }
}

extension [any Middleware] {
    /// The wares with their companions.
    var withCompanions: [any Middleware] {
        flatMap { ware -> [any Middleware] in
            let own = (ware as? any GatedWare)?.ware ?? ware
            guard let pair = own as? any CompanionWare else { return [ware] }
            return [ware, pair.companion]
        }
    }
}
