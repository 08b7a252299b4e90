/// Where requests go: the endpoints of one service and how they are spoken to. Shared by all loops.
public final class UpstreamService: Sendable {
    /// What goes into the `Host` field. RFC 9110 §7.2.
    public enum HostPolicy: Sendable, Equatable {
        /// The endpoint's authority.
        case upstream
        /// The one that the client named.
        case preserve
        case value(String)
    }

    /// How long each step may take.
    public struct Timeouts: Sendable, Equatable {
        public var connect: Duration = .seconds(5)
        public var response: Duration = .seconds(30)
        public var idle: Duration = .seconds(60)
        /// Without bytes in a tunnel: a WebSocket, another upgraded connection, or a CONNECT.
        public var tunnelIdle: Duration = .seconds(3600)
        public var total: Duration?

        public init() {}
    }

    /// How the origins that clients choose are connected to.
    public struct Passing: Sendable {
        /// TLS with the origins; `nil`: their certificates are verified by what the system trusts.
        public var tls: TlsContext?
        public var limits = Endpoint.PoolLimits()

        public init() {}
    }

    /// The name in the configuration.
    public let name: String
    /// At least one, unless the service is `passthrough`.
    public let endpoints: [Endpoint]
    /// The origin is the one that the client asked for.
    public let isPassthrough: Bool
    public let host: HostPolicy
    public let timeouts: Timeouts
    /// The trust and the connections of the origins that clients choose; for `passthrough` only.
    public let passing: Passing
    /// Fields that are added when the request lacks them.
    public let defaults: [FieldLine]
    /// What becomes of references to its own place in responses.
    public let references: OriginReferences

    /// What wares remember of it.
    public let notes: ServiceNotes

    /// Who of several endpoints gets a request; `nil` where there is nothing to choose and nothing to follow.
    let balancer: Balancer?
    let connectTimeout: Duration
    let responseNanoseconds: Int64
    let idleNanoseconds: Int64
    let tunnelIdleNanoseconds: Int64

    public init(
        name: String, endpoints: [Endpoint], isPassthrough: Bool = false, host: HostPolicy = .upstream,
        timeouts: Timeouts = Timeouts(), defaults: [FieldLine] = [],
        passing: Passing = Passing(), balancing: Balancing = Balancing(),
        references: OriginReferences = OriginReferences()
    ) {
        self.name = name
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
            !endpoints.isEmpty && (isChoice || balancing.healthCheck != nil)
            ? Balancer(endpoints, balancing, reachability: notes.reachability) : nil
        connectTimeout = timeouts.connect
        responseNanoseconds = timeouts.response.nanoseconds
        idleNanoseconds = timeouts.idle.nanoseconds
        tunnelIdleNanoseconds = timeouts.tunnelIdle.nanoseconds
    }

    /// Where requests may go at the moment: an endpoint of the configuration, or the addresses of its name.
    public var reachable: [Endpoint] { balancer?.endpoints ?? endpoints }

    /// How each endpoint is at this time of the loops' clock; empty where there is nothing to choose and nothing to follow.
    public func reports(at now: LoopInstant) -> [EndpointReport] { balancer?.reports(at: now) ?? [] }
}

extension UpstreamService {
    /// What requests to the service call its origin server.
    private static func names(of endpoints: [Endpoint], _ policy: HostPolicy) -> OriginNames? {
        guard let first = endpoints.first else { return nil }
        var names = OriginNames(fallback: first.authority, isSecure: first.tls != nil)
        // A request to another proxy has its whole URI there.
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
