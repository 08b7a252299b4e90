import Synchronization

/// Whether any endpoint of a service is reachable and healthy: for wares that wait for that. Shared by all loops.
///
/// Safe to use from any thread. A query costs one atomic read; a mutex guards changes and the watchers.
public final class ServiceReachability: Sendable {
    fileprivate struct State {
        var isUnreachable = false
        var isUnhealthy = false
        var watchers: [Int: @Sendable (Bool) -> Void] = [:]
        var taken = 0
    }

    fileprivate let state = ThreadLock(State())
    /// Caches whether the service is down, for reading without the mutex.
    private let isOut = Atomic(false)

    public init() {}

    /// Whether no endpoint accepts connections, or all of them failed their health checks.
    public var isDown: Bool { isOut.load(ordering: .relaxed) }

    /// Calls `changed` with the current state now and after every change, until the watch is released. The calls hold a mutex:
    /// `changed` must neither block nor call back.
    public func watch(_ changed: @escaping @Sendable (_ isDown: Bool) -> Void) -> Watch {
        let number = state.withLock { state in
            state.taken += 1
            state.watchers[state.taken] = changed
            changed(state.isUnreachable || state.isUnhealthy)
            return state.taken
        }
        return Watch(self, number)
    }

    /// A watcher's registration; releasing this object ends it.
    public final class Watch: Sendable {
        private let reachability: ServiceReachability
        private let number: Int

        fileprivate init(_ reachability: ServiceReachability, _ number: Int) {
            self.reachability = reachability
            self.number = number
        }

        deinit {
            reachability.state.withLock { state in
                state.watchers[number] = nil
                // Without watchers, the driver no longer checks whether the endpoints are reachable again.
                if state.watchers.isEmpty { reachability.change(&state) { $0.isUnreachable = false } }
            }
        }
    }

    /// Whether there are watchers.
    var isWatched: Bool { state.withLock { !$0.watchers.isEmpty } }

    /// No endpoint accepted a connection. Returns true if watchers were told so; the caller must then check for the recovery.
    func failed() -> Bool {
        state.withLock { state in
            guard !state.watchers.isEmpty, !state.isUnreachable else { return false }
            change(&state) { $0.isUnreachable = true }
            return true
        }
    }

    /// A connection was made, or a response arrived.
    func reached() {
        guard isDown else { return }
        state.withLock { state in change(&state) { $0.isUnreachable = false } }
    }

    /// Sets whether all endpoints fail their health checks.
    func setUnhealthy(_ isUnhealthy: Bool) {
        state.withLock { state in change(&state) { $0.isUnhealthy = isUnhealthy } }
    }

    /// Whether the last attempt to connect failed at every endpoint.
    var isUnreachable: Bool { isDown && state.withLock { $0.isUnreachable } }

    fileprivate func change(_ state: inout State, _ body: (inout State) -> Void) {
        let before = state.isUnreachable || state.isUnhealthy
        body(&state)
        let isDown = state.isUnreachable || state.isUnhealthy
        guard isDown != before else { return }
        isOut.store(isDown, ordering: .relaxed)
        for changed in state.watchers.values { changed(isDown) }
    }
}

extension GatewayError.Fault {
    /// Whether no server answers the connection: a restarting server looks like this.
    public var isUnreachable: Bool {
        switch self {
        case .dnsError, .dnsTimeout, .destinationUnavailable, .noEndpoint, .proxyRefused, .connectionRefused,
            .connectionTimeout:
            true
        default: false
        }
    }
}
