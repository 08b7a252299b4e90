package import GatewayConfig
package import HttpWare

/// The listeners of a configuration on a loop that its owner turns by hand: for runs without sockets. Used on the loop's thread only.
package final class TurnedGateway {
    private let transport: LoopTransport
    /// The listeners by name. Nothing listens for them: their owner passes connections to `accept`, or requests to a `LocalCaller`.
    package private(set) var listeners: [String: LoopListener] = [:]
    private(set) var intercepts: [String: InterceptRules] = [:]
    /// The services by name, including `passthrough`.
    package let services: [String: UpstreamService]
    private var monitors: [EndpointMonitor] = []

    /// Makes the listeners. Call this while the loop does not run, or on its thread.
    package init(_ configuration: GatewayConfiguration, on transport: LoopTransport) {
        self.transport = transport
        services = ServiceTable(configuration).services
        for listener in configuration.listeners {
            let table = RouteTable(listener, services: services)
            let intercept = InterceptRules(listener, services: services, table: table)
            let server = LoopListener(
                name: listener.name, transport: transport, settings: ServerSettings(listener),
                forward: ForwardRules(listener), intercept: intercept, trustedProxies: listener.trustedProxies,
                bindAddress: listener.bind, router: table)
            // Exchanges are observed, so that they have records.
            server.records = RecordRing(mostRecords: 16, mostBytes: .mebibytes(16))
            server.placeholders = configuration.placeholders
            listeners[listener.name] = server
            intercepts[listener.name] = intercept
        }
    }

    /// Checks the health of endpoints from now on, and follows their names.
    package func watch() {
        for service in services.values.sorted(by: { $0.name < $1.name }) {
            guard let monitor = EndpointMonitor(service, transport: transport) else { continue }
            monitors.append(monitor)
            monitor.start()
        }
    }

    /// Closes everything now.
    package func close() {
        for server in listeners.values { server.closeAll() }
        for monitor in monitors { monitor.stop() }
        monitors = []
        transport.closeIdle()
    }
}
