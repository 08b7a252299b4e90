import GatewayConfig
import HttpWare

/// The running services of a configuration.
struct ServiceTable: Sendable {
    /// The services by name, including `passthrough`.
    let services: [String: UpstreamService]

    /// Makes the services. Unchanged ones are taken from the previous table.
    init(_ configuration: GatewayConfiguration, keeping former: ServiceTable? = nil, unchanged: Set<String> = []) {
        var services: [String: UpstreamService] = [:]
        for definition in configuration.services {
            let kept = unchanged.contains(definition.name) ? former?.services[definition.name] : nil
            services[definition.name] = kept ?? ServiceTable.make(definition)
        }
        let name = ConfiguredService.passthroughName
        let kept = unchanged.contains(name) ? former?.services[name] : nil
        services[name] = kept ?? ServiceTable.makePassthrough(configuration.passthrough)
        self.services = services
    }

    private static func limits(_ definition: ConfiguredService) -> Endpoint.PoolLimits {
        var limits = Endpoint.PoolLimits()
        limits.maxIdle = definition.pool.maxIdle
        limits.maxPerEndpoint = definition.pool.maxPerEndpoint
        limits.idleTimeout = definition.timeouts.idle
        limits.response.head = definition.limits.head.bytes
        limits.response.fieldLines = definition.limits.fieldLines
        return limits
    }

    private static func timeouts(_ definition: ConfiguredService) -> UpstreamService.Timeouts {
        var timeouts = UpstreamService.Timeouts()
        timeouts.connect = definition.timeouts.connect
        timeouts.response = definition.timeouts.response
        timeouts.idle = definition.timeouts.idle
        timeouts.tunnelIdle = definition.timeouts.tunnelIdle
        timeouts.total = definition.timeouts.total
        return timeouts
    }

    /// The service whose origins the clients choose.
    private static func makePassthrough(_ definition: ConfiguredService) -> UpstreamService {
        var passing = UpstreamService.Passing()
        passing.tls = definition.tls?.context
        passing.limits = limits(definition)
        return UpstreamService(
            name: definition.name, endpoints: [], isPassthrough: true, host: .preserve,
            timeouts: timeouts(definition), passing: passing)
    }

    private static func make(_ definition: ConfiguredService) -> UpstreamService {
        let limits = limits(definition)
        let version: Endpoint.Version =
            switch definition.wireProtocol {
            // A connection with the PROXY protocol is for one client only.
            case .auto where definition.proxyProtocol != nil: .h1
            case .auto: .auto
            case .h1: .h1
            case .h2: .h2
            }
        let host: UpstreamService.HostPolicy =
            switch definition.host {
            case .upstream: .upstream
            case .preserve: .preserve
            case .fixed(let value): .value(value)
            }
        return UpstreamService(
            name: definition.name,
            endpoints: definition.endpoints.map { endpoint in
                // An endpoint with https but without TLS is an error of the configuration, so it never uses clear text
                // here.
                precondition(!endpoint.isSecure || definition.tls != nil)
                return Endpoint(
                    host: endpoint.host, port: endpoint.port, basePath: endpoint.basePath, weight: endpoint.weight,
                    limits: limits, speaks: version, tls: endpoint.isSecure ? definition.tls?.context : nil,
                    serverName: definition.tls?.serverName, proxyProtocol: definition.proxyProtocol,
                    isBackup: endpoint.isBackup)
            },
            host: host, timeouts: timeouts(definition),
            // The reader has checked the values; an invalid one would be left out here.
            defaults: definition.headers.compactMap { try? FieldLine($0.key, $0.value.text) },
            balancing: balancing(definition), references: definition.references,
            sticky: definition.sticky.map { sticky in
                StickyEndpoints(
                    sticky.cookie, keys: SealingKey.ofSticky(sticky.keys), service: definition.name)
            })
    }

    private static func balancing(_ definition: ConfiguredService) -> Balancing {
        var balancing = Balancing()
        switch definition.balance {
        case .roundRobin: balancing.rule = .roundRobin
        case .leastRequests: balancing.rule = .leastRequests
        case .random2: balancing.rule = .random2
        // A missing key is an error of the configuration, so there is one here.
        case .hash: balancing.rule = .hash(definition.hashKey ?? .ip)
        }
        balancing.boundsLoad = definition.hashBound
        balancing.slowStart = definition.slowStart
        balancing.ejection = definition.ejection
        balancing.healthCheck = definition.healthCheck
        balancing.resolvesNames = definition.discovered == nil
        balancing.findsEndpoints = definition.discovered != nil
        return balancing
    }
}

extension SealingKey {
    /// The keys of cookies and fields that keep clients. Without secrets, the process's secret is used.
    static func ofSticky(_ secrets: [Secret]) -> [SealingKey] {
        let keys = secrets.map { SealingKey(Array($0.revealed.utf8), for: "sticky") }
        return keys.isEmpty ? [SealingKey(ProcessSecret.bytes, for: "sticky")] : keys
    }
}
