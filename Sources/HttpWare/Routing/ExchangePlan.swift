/// The handling of one route's requests on one listener, determined when the configuration is loaded.
public final class ExchangePlan: Sendable {
    /// The joined chain of listener, route and service.
    public let chain: WareChain
    /// The destination of the requests; `nil` if no route matched.
    public let service: UpstreamService?
    /// The route's name.
    public let route: String?

    /// Whether the service is one of several that share the route's requests.
    let isShare: Bool
    /// Whether the gateway answers by itself, without wares that are added while it runs.
    let isOwn: Bool
    /// Whether the service keeps each client with one endpoint.
    let keepsClients: Bool
    /// The plan with the service that replaces this one while it is down; `nil` without one.
    let fallback: ExchangePlan?
    private let diversions = ThreadLock<[ObjectIdentifier: ExchangePlan]>([:])

    /// Makes a plan. Each service of `fallbacks` replaces the one before it while that is down.
    public init(
        chain: WareChain, service: UpstreamService?, route: String?, isShare: Bool = false, isOwn: Bool = false,
        fallbacks: [UpstreamService] = []
    ) {
        fallback = fallbacks.first.map {
            ExchangePlan(
                chain: chain, service: $0, route: route, isShare: isShare, fallbacks: Array(fallbacks.dropFirst()))
        }
        self.chain = chain
        self.service = service
        self.route = route
        self.isShare = isShare
        self.isOwn = isOwn
        keepsClients = service?.sticky != nil
    }

    /// The same plan for requests that a ware sends to another service. Made once per service, because exchanges are counted by plan.
    func diverted(to other: UpstreamService) -> ExchangePlan {
        diversions.withLock { diversions in
            if let found = diversions[ObjectIdentifier(other)] { return found }
            let made = ExchangePlan(chain: chain, service: other, route: route, isShare: isShare)
            diversions[ObjectIdentifier(other)] = made
            return made
        }
    }

    /// A copy with another chain, or only as a separate object.
    func copy(with chain: WareChain? = nil) -> ExchangePlan {
        ExchangePlan(
            chain: chain ?? self.chain, service: service, route: route, isShare: isShare, isOwn: isOwn,
            fallbacks: fallbacks)
    }

    private var fallbacks: [UpstreamService] {
        guard let fallback, let service = fallback.service else { return [] }
        return [service] + fallback.fallbacks
    }
}

/// Chooses the plan of a request. One instance serves all loops.
public protocol ExchangeRouter: Sendable {
    /// The plan of the first route that matches; if the route has several shares, that of the first. `captures` gets the captures of
    /// its path pattern. Without a match, the listener's own plan, which has no service. Throws if a pattern reaches its match limit before
    /// the route is known.
    func plan(
        for request: borrowing HttpRequest, captures: inout [(name: String, value: String)]
    ) throws(Pattern.LimitReached) -> ExchangePlan
    /// The plan with the listener's own chain, for requests that could not be read.
    var listenerPlan: ExchangePlan { get }
    /// The plan for the exchange's request; captures are stored in the exchange.
    func plan(for exchange: Exchange) throws(Pattern.LimitReached) -> ExchangePlan
    /// The service with that name, for requests that wares send in addition to the exchange; `nil` if there is none.
    func service(named name: String) -> UpstreamService?
}

extension ExchangeRouter {
    public func service(named name: String) -> UpstreamService? { nil }

    /// Costs a copy of the request, because it is stored in a class.
    public func plan(for exchange: Exchange) throws(Pattern.LimitReached) -> ExchangePlan {
        try plan(for: exchange.heldRequest, captures: &exchange.captures)
    }
}

/// The rules of a forward proxy for its clients' destinations.
public struct ForwardRules: Sendable, Equatable {
    /// The ports that CONNECT may name.
    public var connectPorts: [UInt16] = [443]
    /// Whether loopback, private, link-local and metadata addresses are refused, judged after resolution.
    public var deniesPrivate = true
    /// The hosts whose tunnels may pass unread, with ports if the patterns name them; `nil` allows all.
    public var unreadHosts: HostList?
    /// Whether metadata addresses of clouds are refused, judged after resolution; `deniesPrivate` refuses all private addresses.
    public var deniesMetadata = false
    /// The upstream proxy for origin servers; `nil` without one.
    public var upstreamProxy: UpstreamProxy?

    public init() {}
}
