import HttpWare

/// The wares that a configuration can name.
struct WareRegistry {
    private let types: [String: any ConfigurableWare.Type]

    /// Whether an entry refuses requests to protect the origin server. A route that drops such an entry gets a warning.
    static func keepsOut(_ entry: WrittenEntry) -> Bool {
        (entry.type as? any AccessRule.Type)?.isAccessControl ?? false
    }

    /// Whether a ware admits only known clients.
    static func isGuard(_ ware: any Ware) -> Bool {
        (ware as? any AccessGuard)?.admitsOnlyKnown ?? false
    }

    /// Whether an entry of a joined chain refuses requests to protect the origin server.
    static func restrictsAccess(_ entry: ChainEntry) -> Bool {
        (entry.ware as? any AccessRule)?.restrictsAccess ?? false
    }

    /// Whether a client must not get past an entry of a joined chain by another form of the path.
    static func mustRunForEveryForm(_ entry: ChainEntry) -> Bool {
        restrictsAccess(entry) || entry.ware is any Safeguard
    }

    init(_ wares: [any ConfigurableWare.Type]) {
        types = Dictionary(wares.map { ("\($0.name)", $0) }, uniquingKeysWith: { first, _ in first })
    }

    subscript(name: String) -> (any ConfigurableWare.Type)? { types[name] }

    enum Side {
        /// Acts on the request. A two-sided ware also acts on the response, and is listed under middlewares.
        case middleware, twoSided
        case postware
        /// Acts on requests or on responses, by the list in which it stands.
        case either
    }

    static func side(_ type: any ConfigurableWare.Type) -> Side {
        guard type is any Postware.Type else { return .middleware }
        if type is any EitherSided.Type { return .either }
        return type is any Middleware.Type ? .twoSided : .postware
    }

    /// The error text for an unknown ware, with the ware that the name could mean.
    func problem(with name: String) -> String {
        "is not a ware" + WareDescription.didYouMean(name, among: Array(types.values), or: "use")
    }
}
