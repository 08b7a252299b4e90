public import HttpWare

/// A route: the requests that it matches, and their destination.
public struct RouteDefinition: Sendable {
    /// As written, or `routes[3]`, counted from 0.
    public let name: String
    /// The position among all routes.
    public let index: Int
    /// The place in the file.
    public let location: SourceLocation
    /// The conditions for a request; empty: none.
    public internal(set) var match = RequestMatch()
    /// `nil`: the chain answers, and a request that passes all of it is answered 404.
    public internal(set) var service: ServiceDefinition?

    /// The names of the listeners that it serves; none: all.
    var listeners: [Located<String>] = []
    var serviceName: Located<String>?
    var chainName: Located<String>?
    var with: [ConfigNode.Entry] = []

    private static let matchKeys = [
        "method", "host", "path", "headers", "query", "cookies", "client", "scheme", "not", "any",
    ]

    /// A member of `routes`.
    init(index: Int, options: inout OptionsReader) {
        var name: String?
        options.read("name", into: &name)
        self.name = name ?? "routes[\(index)]"
        self.index = index
        location = options.location
        options.read("listener", into: &listeners)
        options.read("match") { match.read(&$0) }
        for key in Self.matchKeys {
            options.refuse(key, because: "is a condition; write it under match: { \(key): … }")
        }
        options.read("service", into: &serviceName)
        options.read("chain", into: &chainName)
        if let node = options.readNode("with", type: "map of ware to options or false") {
            if let entries = node.entries {
                with = entries
            } else {
                options.fail(at: "with", "\(node.shown) is not a map; write ware: {options}, or ware: false")
            }
        }
        if options.isMap, !options.isGiven("service"), !options.isGiven("chain") {
            options.fail("has neither a service nor a chain; write one of them")
        }
    }
}

/// A route as part of one listener.
public struct ResolvedRoute: Sendable {
    /// The route itself.
    public let route: RouteDefinition
    /// The chains of the listener, the route and its service, joined.
    public let chain: WareChain
}
