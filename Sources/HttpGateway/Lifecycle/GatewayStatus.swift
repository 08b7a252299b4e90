public import GatewayConfig
public import HttpWare
import Synchronization

/// What others may know of a running gateway, from any thread. One mutex guards it; what is read is a copy.
public final class GatewayStatus: Sendable {
    /// Where a listener listens.
    public struct Address: Sendable, Equatable {
        /// The listener's name.
        public let name: String
        /// Whether it is a gateway or a proxy.
        public let mode: ListenerDefinition.Mode
        /// Whether it speaks TLS.
        public let isSecure: Bool
        /// Its address; the port is the one that was given for port 0.
        public let address: SocketAddress
    }

    /// The last time that a configuration was to be taken.
    public struct Reload: Sendable {
        /// When it ended.
        public let time: WallTime
        /// What came of it.
        public let outcome: ReloadOutcome
    }

    /// A moment's state.
    public struct Snapshot: Sendable {
        /// What runs.
        public internal(set) var configuration: GatewayConfiguration
        /// Each service that runs, by its name.
        var services: [String: UpstreamService] = [:]
        /// In file order.
        public internal(set) var addresses: [Address] = []
        /// Where the admin listener listens, if there is one.
        public internal(set) var adminAddress: SocketAddress?
        /// The last reload; the start, where there was none.
        public internal(set) var lastReload: Reload
        /// How many reloads there were, and how many of them failed.
        public internal(set) var reloads = 0
        public internal(set) var failedReloads = 0
        /// Every loop serves.
        public internal(set) var isServing = false
        /// Nothing is accepted any more.
        public internal(set) var isDraining = false
    }

    private let state: Mutex<Snapshot>

    init(_ configuration: GatewayConfiguration, at time: WallTime) {
        let start = Reload(time: time, outcome: .done(changes: 0, warnings: []))
        state = Mutex(Snapshot(configuration: configuration, lastReload: start))
    }

    /// The present state.
    public var now: Snapshot { state.withLock { $0 } }

    func change(_ body: (inout Snapshot) -> Void) { state.withLock { body(&$0) } }
}
