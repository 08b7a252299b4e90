import GatewayConfig
import HttpWare

/// A configuration with what was built for it. Built off the loops, handed to them whole.
struct RunningConfiguration: Sendable {
    let configuration: GatewayConfiguration
    let services: ServiceTable
    /// For each loop, one for each listener, in file order.
    let routers: [[RouteTable]]
    /// One for each listener; `nil` where it reads no tunnels.
    let intercepts: [InterceptRules?]
    /// The changes that it made.
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
    }

    /// The changes that it made, in one line.
    var summary: String {
        let shown = changes.prefix(10).map { "\($0.what) \($0.kind.rawValue)" }.joined(separator: ", ")
        return changes.count > 10 ? "\(shown), and \(changes.count - 10) more" : shown
    }
}
