public import HttpWare

/// A route: the requests that it matches, and their destination.
public struct RouteDefinition: Sendable {
    /// The name in the file, or `routes[3]`, counted from 0.
    public let name: String
    /// The position among all routes.
    public let index: Int
    /// The place in the file.
    public let location: SourceLocation
    /// The conditions for a request; empty for no conditions.
    public internal(set) var match = RequestMatch()
    /// The service; `nil` if several services share the requests, or if the chain answers. In the latter case, a request that
    /// passes the whole chain is answered 404.
    public internal(set) var service: ConfiguredService?
    /// The services that share the requests; empty without `split`.
    public internal(set) var shares: [RouteShare] = []
    /// How clients stay with their share; `nil` if each request is distributed independently.
    public internal(set) var sticky: RouteSticky?
    /// The services that the requests may go to.
    public var services: [ConfiguredService] { service.map { [$0] } ?? shares.compactMap(\.service) }

    /// The names of the listeners that the route serves; empty for all listeners.
    var listeners: [Located<String>] = []
    var serviceName: Located<String>?
    var chainName: Located<String>?
    var with: [ConfigNode.Entry] = []

    private static let matchKeys = [
        "method", "host", "path", "headers", "query", "cookies", "client", "scheme", "not", "any",
    ]

    /// Reads a member of `routes`.
    init(index: Int, options: inout OptionsReader) {
        var name: String?
        options.read("name", into: &name, doc: "the name in logs and on the page")
        self.name = name ?? "routes[\(index)]"
        self.index = index
        location = options.location
        options.recognize([
            "location": "match", "rule": "match", "matches": "match", "backend": "service", "backends": "service",
            "upstream": "service", "cluster": "service", "proxy_pass": "service", "reverse_proxy": "service",
            "middlewares": "chain", "filters": "chain", "plugins": "chain", "handlers": "chain",
            "entrypoints": "listener",
        ])
        options.read("listener", into: &listeners, doc: "the listeners that have the route; all without it")
        options.read("match", doc: "the requests that take the route; all without it") { match.read(&$0) }
        for key in Self.matchKeys {
            options.refuse(key, because: "is a condition; write it under match: { \(key): … }")
        }
        if options.isList("service") {
            options.refuse(
                "service", because: "takes one name; write split: [{ service: NAME }, …] for several services")
        } else {
            options.read("service", into: &serviceName, doc: "the service that answers")
        }
        shares = Self.readShares(&options)
        options.read("sticky", doc: "keeps a client at its share of split") { sticky = RouteSticky(&$0) }
        options.exclusive("service", "split")
        options.only("sticky", with: "split")
        if options.isList("chain") {
            options.refuse(
                "chain", because: "takes a name; write chains: { NAME: { middlewares: … } }, and chain: NAME")
        } else {
            options.read("chain", into: &chainName, doc: "the wares for these requests")
        }
        if let node = options.readNode("with", type: "map of ware to options or false") {
            if let entries = node.entries {
                with = entries
            } else {
                options.fail(at: "with", "\(node.shown) is not a map; write ware: {options}, or ware: false")
            }
        }
        options.require(anyOf: ["service", "split", "chain"])
    }
}

/// A route as part of one listener.
public struct ResolvedRoute: Sendable {
    /// The route itself.
    public let route: RouteDefinition
    /// The joined chains of the listener, the route and its service; if there are several services, the first one.
    public var chain: WareChain { chains[0] }
    /// The joined chains for each share of the route, in order; a single chain without shares.
    public let chains: [WareChain]
}
