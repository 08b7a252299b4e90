/// A destination of requests: the endpoints of one service and their settings. Shared by all loops.
public final class UpstreamService: Sendable {
    /// The value for the `Host` field. RFC 9110 §7.2.
    public enum HostPolicy: Sendable, Equatable {
        /// The endpoint's authority.
        case upstream
        /// The authority that the client named.
        case preserve
        case value(String)
    }

    /// The time limits of the steps.
    public struct Timeouts: Sendable, Equatable {
        public var connect: Duration = .seconds(5)
        public var response: Duration = .seconds(30)
        public var idle: Duration = .seconds(60)
        /// Without bytes in a tunnel: a WebSocket, another upgraded connection, or a CONNECT.
        public var tunnelIdle: Duration = .seconds(3600)
        public var total: Duration?

        public init(
            connect: Duration = .seconds(5), response: Duration = .seconds(30), idle: Duration = .seconds(60),
            tunnelIdle: Duration = .seconds(3600), total: Duration? = nil
        ) {
            self.connect = connect
            self.response = response
            self.idle = idle
            self.tunnelIdle = tunnelIdle
            self.total = total
        }
    }

    /// The connection settings for origins that clients choose.
    public struct Passing: Sendable {
        /// TLS with the origins; `nil` verifies their certificates by the system's trust.
        public var tls: TlsContext?
        public var limits = Endpoint.PoolLimits()

        public init() {}
    }

    /// The name in the configuration.
    public let name: String
    /// The endpoints: at least one, unless the service is `passthrough`. If they are found, one that names them all.
    public let endpoints: [Endpoint]
    /// Whether the client chooses the origin.
    public let isPassthrough: Bool
    public let host: HostPolicy
    public let timeouts: Timeouts
    /// The connection settings for origins that clients choose; for `passthrough` only.
    public let passing: Passing
    /// Fields that are added if the request lacks them.
    public let defaults: [FieldLine]
    /// The rewriting of references to the origin server in responses.
    public let references: OriginReferences

    /// Keeps each client with one endpoint; `nil` if each request is distributed independently.
    public let sticky: StickyEndpoints?

    /// The values that wares keep for the service.
    public let notes: ServiceNotes

    /// Chooses among several endpoints; `nil` if there is only one and no addresses to follow.
    let balancer: Balancer?
    let connectTimeout: Duration
    let responseNanoseconds: Int64
    let idleNanoseconds: Int64
    let tunnelIdleNanoseconds: Int64

    public init(
        name: String, endpoints: [Endpoint], isPassthrough: Bool = false, host: HostPolicy = .upstream,
        timeouts: Timeouts = Timeouts(), defaults: [FieldLine] = [],
        passing: Passing = Passing(), balancing: Balancing = Balancing(),
        references: OriginReferences = OriginReferences(), sticky: StickyEndpoints? = nil
    ) {
        self.name = name
        self.sticky = sticky
        notes = ServiceNotes(
            name: name, isPassthrough: isPassthrough,
            origin: isPassthrough ? nil : UpstreamService.names(of: endpoints, host))
        self.endpoints = endpoints
        self.isPassthrough = isPassthrough
        self.host = host
        self.timeouts = timeouts
        self.defaults = defaults
        self.passing = passing
        self.references = references
        let isChoice = endpoints.count > 1 || balancing.resolvesNames && endpoints.contains(where: \.isNamed)
        balancer =
            !endpoints.isEmpty && (isChoice || balancing.healthCheck != nil || balancing.findsEndpoints)
            ? Balancer(endpoints, balancing, reachability: notes.reachability) : nil
        connectTimeout = timeouts.connect
        responseNanoseconds = timeouts.response.nanoseconds
        idleNanoseconds = timeouts.idle.nanoseconds
        tunnelIdleNanoseconds = timeouts.tunnelIdle.nanoseconds
    }

    /// The current destinations of requests: the configured endpoints, or the addresses of a name.
    public var reachable: [Endpoint] { balancer?.endpoints ?? endpoints }

    /// Whether the endpoints are found while the gateway runs, and there may be none.
    var findsEndpoints: Bool { balancer?.rules.findsEndpoints ?? false }

    /// Sends requests to these addresses from now on, and to no others; unchanged ones keep their state. Only for a service whose
    /// endpoints are found (`Balancing.findsEndpoints`). Usable from any thread; `now` is of the loops' clock.
    public func use(found addresses: [SocketAddress], at now: LoopInstant) {
        guard findsEndpoints else { return }
        balancer?.found(0, addresses, at: now)
    }

    /// The state of each endpoint at this time of the loops' clock; empty without a balancer.
    public func reports(at now: LoopInstant) -> [EndpointReport] { balancer?.reports(at: now) ?? [] }
}

extension UpstreamService {
    /// The names of the service's origin server in requests.
    private static func names(of endpoints: [Endpoint], _ policy: HostPolicy) -> OriginNames? {
        guard let first = endpoints.first else { return nil }
        var names = OriginNames(fallback: first.authority, isSecure: first.tls != nil)
        // A request to an upstream proxy carries the whole URI in place of the path.
        if first.basePath.hasPrefix("/") { names.basePath = first.basePath }
        switch policy {
        case .upstream:
            names.host = first.authority
            names.isSeveral = endpoints.contains { $0.authority != first.authority }
        case .value(let value): names.host = value
        case .preserve: break
        }
        return names
    }
}
