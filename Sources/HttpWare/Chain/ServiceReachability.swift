import Synchronization

/// Whether any endpoint of a service can be reached, and is well: for wares that wait until it is. Shared by all loops.
///
/// From any thread. To ask costs one atomic; a mutex guards changes and those who want to know of them.
public final class ServiceReachability: Sendable {
    fileprivate struct State {
        var isUnreachable = false
        var isUnhealthy = false
        var watchers: [Int: @Sendable (Bool) -> Void] = [:]
        var taken = 0
    }

    fileprivate let state = ThreadLock(State())
    /// What the state says, to be asked without its mutex.
    private let isOut = Atomic(false)

    public init() {}

    /// No connection can be made to any of its endpoints, or all of them failed their health checks.
    public var isDown: Bool { isOut.load(ordering: .relaxed) }

    /// Calls `changed` with whether it is down: now, and whenever that changes, until the watch goes. Under a mutex: it must neither
    /// block nor ask back.
    public func watch(_ changed: @escaping @Sendable (_ isDown: Bool) -> Void) -> Watch {
        let number = state.withLock { state in
            state.taken += 1
            state.watchers[state.taken] = changed
            changed(state.isUnreachable || state.isUnhealthy)
            return state.taken
        }
        return Watch(self, number)
    }

    /// Somebody who wants to know; goes with this object.
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
                // Nobody finds out any more when that is over.
                if state.watchers.isEmpty { reachability.change(&state) { $0.isUnreachable = false } }
            }
        }
    }

    /// Somebody wants to know.
    var isWatched: Bool { state.withLock { !$0.watchers.isEmpty } }

    /// No endpoint could be connected to. Answers whether that is news to somebody, who then wants to be told when it is over.
    func failed() -> Bool {
        state.withLock { state in
            guard !state.watchers.isEmpty, !state.isUnreachable else { return false }
            change(&state) { $0.isUnreachable = true }
            return true
        }
    }

    /// A connection was made, or a response came.
    func reached() {
        guard isDown else { return }
        state.withLock { state in change(&state) { $0.isUnreachable = false } }
    }

    /// All endpoints fail their health checks, or no longer.
    func setUnhealthy(_ isUnhealthy: Bool) {
        state.withLock { state in change(&state) { $0.isUnhealthy = isUnhealthy } }
    }

    /// Whether no connection could be made, and none was since.
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
    /// Nobody is there: what a restart looks like from outside.
    public var isUnreachable: Bool {
        switch self {
        case .dnsError, .dnsTimeout, .destinationUnavailable, .connectionRefused, .connectionTimeout: true
        default: false
        }
    }
}
