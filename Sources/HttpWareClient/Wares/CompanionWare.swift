/// A ware of two parts: the manager puts the other one right behind it.
///
/// A response half that asks for a replay has the request sent again from its own place inward: what is to be different then is
/// for the part behind it.
public protocol CompanionWare: Middleware {
    /// The part that stands behind.
    var companion: any Middleware { get }
}

extension [any Middleware] {
    /// The wares with their companions.
    var withCompanions: [any Middleware] {
        flatMap { ware -> [any Middleware] in
            guard let pair = ware as? any CompanionWare else { return [ware] }
            return [ware, pair.companion]
        }
    }
}
