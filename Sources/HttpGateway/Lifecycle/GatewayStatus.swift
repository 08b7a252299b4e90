public import GatewayConfig
public import HttpWare
import Synchronization

/// The state of a running gateway for other threads. One mutex guards it, and readers get a copy.
public final class GatewayStatus: Sendable {
    /// The address of a listener.
    public struct Address: Sendable, Equatable {
        /// The listener's name.
        public let name: String
        /// Whether it is a gateway or a proxy.
        public let mode: ListenerDefinition.Mode
        /// Whether it uses TLS.
        public let isSecure: Bool
        /// Its address; for port 0, the port that the system chose.
        public let address: SocketAddress
    }

    /// The last attempt to load a configuration.
    public struct Reload: Sendable {
        /// When it ended.
        public let time: WallTime
        /// The result.
        public let outcome: ReloadOutcome
    }

    /// The state at one moment.
    public struct Snapshot: Sendable {
        /// The running configuration.
        public internal(set) var configuration: GatewayConfiguration
        /// The running services by name.
        var services: [String: UpstreamService] = [:]
        /// The keeper of found services; `nil` if the configuration looks for none.
        var discovery: Discovery?
        /// The addresses in file order.
        public internal(set) var addresses: [Address] = []
        /// The address of the admin listener, if there is one.
        public internal(set) var adminAddress: SocketAddress?
        /// The last reload; before the first one, the start.
        public internal(set) var lastReload: Reload
        /// The number of reloads, and of failed ones.
        public internal(set) var reloads = 0
        public internal(set) var failedReloads = 0
        /// Whether every loop serves.
        public internal(set) var isServing = false
        /// Whether the gateway is draining, so that no connection is accepted any more.
        public internal(set) var isDraining = false
    }

    private let state: Mutex<Snapshot>

    init(_ configuration: GatewayConfiguration, at time: WallTime) {
        let start = Reload(time: time, outcome: .done(changes: 0, warnings: []))
        state = Mutex(Snapshot(configuration: configuration, lastReload: start))
    }

    /// The current state.
    public var now: Snapshot { state.withLock { $0 } }

    func change(_ body: (inout Snapshot) -> Void) { state.withLock { body(&$0) } }
}
