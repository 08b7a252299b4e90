import GatewayConfig
import HttpWare

/// A configuration with what was built for it. Built off the loops, handed to them whole.
struct RunningConfiguration: Sendable {
    let configuration: GatewayConfiguration
    let services: ServiceTable
    /// For each loop, one for each listener, in file order.
    let routers: [[RouteTable]]
    /// What it changed.
    let changes: [ConfigurationDifference.Change]

    /// Builds a configuration for so many loops, with the services of the former one that did not change.
    init(_ configuration: GatewayConfiguration, loops: Int, replacing former: RunningConfiguration? = nil) {
        self.configuration = configuration
        let difference = former.map { ConfigurationDifference(from: $0.configuration, to: configuration) }
        let services = ServiceTable(
            configuration, keeping: former?.services, unchanged: difference?.keptServices ?? [])
        self.services = services
        changes = difference?.changes ?? []
        let tables = configuration.listeners.map { RouteTable($0, services: services.services) }
        routers = (0..<loops).map { _ in tables.map { RouteTable(copying: $0) } }
    }

    /// What it changed, in a line.
    var summary: String {
        let shown = changes.prefix(10).map { "\($0.what) \($0.kind.rawValue)" }.joined(separator: ", ")
        return changes.count > 10 ? "\(shown), and \(changes.count - 10) more" : shown
    }
}
