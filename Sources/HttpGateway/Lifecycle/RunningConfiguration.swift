import GatewayConfig
import HttpWare

/// A configuration with the objects that were built for it. It is built outside the loops, and passed to them as a
/// whole.
struct RunningConfiguration: Sendable {
    private(set) var configuration: GatewayConfiguration
    let services: ServiceTable
    /// For each loop, one router for each listener, in file order.
    let routers: [[RouteTable]]
    /// The rules of interception for each listener; `nil` for a listener that reads no tunnels.
    let intercepts: [InterceptRules?]
    /// The changes from the previous configuration.
    let changes: [ConfigurationDifference.Change]

    /// Builds a configuration for that number of loops, with the unchanged services of the previous one.
    init(_ configuration: GatewayConfiguration, loops: Int, replacing former: RunningConfiguration? = nil) {
        self.configuration = configuration
        let difference = former.map { ConfigurationDifference(from: $0.configuration, to: configuration) }
        let services = ServiceTable(
            configuration, keeping: former?.services, unchanged: difference?.keptServices ?? [])
        self.services = services
        changes = difference?.changes ?? []
        let tables = configuration.listeners.map { RouteTable($0, services: services.services) }
        intercepts = zip(configuration.listeners, tables).map { listener, table in
            InterceptRules(listener, services: services.services, table: table)
        }
        routers = (0..<loops).map { _ in tables.map { RouteTable(copying: $0) } }
        useFound()
    }

    /// Uses what was found now: the same configuration, whose services have other endpoints.
    mutating func use(found configuration: GatewayConfiguration) {
        self.configuration = configuration
        useFound()
    }

    /// Sends the requests of found services to their current endpoints. Usable from any thread.
    func useFound() {
        let now = SystemLoopClock().now()
        for definition in configuration.services {
            guard let name = definition.discovered?.value else { continue }
            services.services[definition.name]?.use(found: configuration.found.addresses[name] ?? [], at: now)
        }
    }

    /// The changes from the previous configuration, in one line.
    var summary: String {
        let shown = changes.prefix(10).map { "\($0.what) \($0.kind.rawValue)" }.joined(separator: ", ")
        return changes.count > 10 ? "\(shown), and \(changes.count - 10) more" : shown
    }
}
