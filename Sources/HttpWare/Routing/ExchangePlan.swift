/// What happens to the requests of one route on one listener: settled when the configuration is loaded.
public final class ExchangePlan: Sendable {
    /// The joined chain of listener, route and service.
    public let chain: WareChain
    /// Where the request goes; `nil` where no route matched.
    public let service: UpstreamService?
    /// The route's name.
    public let route: String?

    /// The service is one of several that share the route's requests.
    let isShare: Bool
    /// The gateway answers by itself, and no wares are put before those of the chain while it runs.
    let isOwn: Bool
    /// The same with the service that gets the request while this one is down; `nil`: none does.
    let fallback: ExchangePlan?
    private let diversions = ThreadLock<[ObjectIdentifier: ExchangePlan]>([:])

    /// Makes a plan. Each service of `fallbacks` takes the place of the one before it while that is down.
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
    }

    /// The same for requests that a ware sends to another service. Made once for each, as exchanges are counted by their plan.
    func diverted(to other: UpstreamService) -> ExchangePlan {
        diversions.withLock { diversions in
            if let found = diversions[ObjectIdentifier(other)] { return found }
            let made = ExchangePlan(chain: chain, service: other, route: route, isShare: isShare)
            diversions[ObjectIdentifier(other)] = made
            return made
        }
    }

    /// The same with another chain, or as an object of its own.
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
    /// The plan of the first route that matches, of its first share where it has several, and what its path pattern captured; the
    /// listener's own plan, which has no service, when none does. Throws when a pattern runs into its limit before that is known.
    func plan(
        for request: borrowing HttpRequest, captures: inout [(name: String, value: String)]
    ) throws(Pattern.LimitReached) -> ExchangePlan
    /// The listener's own chain, for requests that could not be read.
    var listenerPlan: ExchangePlan { get }
    /// The plan of the exchange's request; what was captured is kept in the exchange.
    func plan(for exchange: Exchange) throws(Pattern.LimitReached) -> ExchangePlan
    /// The service of that name, for requests that wares send beside the exchange; `nil` if there is none.
    func service(named name: String) -> UpstreamService?
}

extension ExchangeRouter {
    public func service(named name: String) -> UpstreamService? { nil }

    /// Costs a copy of the request, for it is stored in a class.
    public func plan(for exchange: Exchange) throws(Pattern.LimitReached) -> ExchangePlan {
        try plan(for: exchange.heldRequest, captures: &exchange.captures)
    }
}

/// What a forward proxy lets its clients reach.
public struct ForwardRules: Sendable, Equatable {
    /// The ports that CONNECT may name.
    public var connectPorts: [UInt16] = [443]
    /// Loopback, private, link-local and metadata addresses are refused, judged after resolution.
    public var deniesPrivate = true
    /// The hosts whose tunnels may pass unread; `nil`: all. Ports are part of it where patterns name them.
    public var unreadHosts: InterceptRules.Hosts?
    /// The metadata addresses of clouds are refused, judged after resolution; the other private addresses only by `deniesPrivate`.
    public var deniesMetadata = false
    /// Another proxy, by which origin servers are reached; `nil`: none.
    public var upstreamProxy: UpstreamProxy?

    public init() {}
}
