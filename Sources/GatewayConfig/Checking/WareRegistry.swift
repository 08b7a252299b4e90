import HttpWare

/// The wares that a configuration can name.
struct WareRegistry {
    private let types: [String: any ConfigurableWare.Type]

    /// Those that keep strangers out: a forward listener open to the network needs one, and dropping one is worth a warning.
    static let guards: Set<String> = ["ipRule", "basicAuth", "apiKey", "jwt", "introspect", "extAuthz", "oidcLogin"]

    /// Whether an entry refuses requests for the sake of security, so that a route should not drop it without a word.
    static func keepsOut(_ entry: WrittenEntry) -> Bool {
        guards.contains(entry.name) || entry.name == "hostRule" || entry.type is any AccessGuard.Type
    }

    static func isGuard(_ ware: any Ware) -> Bool {
        (ware as? any AccessGuard)?.admitsOnlyKnown ?? false
    }

    /// Whether an entry of a joined chain refuses requests for the sake of security.
    static func restrictsAccess(_ entry: ChainEntry) -> Bool {
        if let name = entry.ware.configuredName, guards.contains(name) || name == "hostRule" { return true }
        return (entry.ware as? any AccessRule)?.restrictsAccess ?? false
    }

    init(_ wares: [any ConfigurableWare.Type]) {
        types = Dictionary(wares.map { ("\($0.name)", $0) }, uniquingKeysWith: { first, _ in first })
    }

    subscript(name: String) -> (any ConfigurableWare.Type)? { types[name] }

    enum Side {
        /// Works on the request; a two-sided ware does both, and is listed there.
        case middleware, twoSided
        case postware
    }

    static func side(_ type: any ConfigurableWare.Type) -> Side {
        guard type is any Postware.Type else { return .middleware }
        return type is any Middleware.Type ? .twoSided : .postware
    }

    /// Why a name is not that of a ware, with the ware that it could mean.
    func problem(with name: String) -> String {
        "is not a ware" + WareDescription.didYouMean(name, among: Array(types.values), or: "use")
    }
}
