public import HttpWare
import Synchronization

/// The circuit of a service: the outcomes of its recent requests, and whether further requests pass. One circuit for all loops and all
/// entries of `circuitBreaker`.
///
/// Safe to use from any thread. While the circuit is closed, only a failure takes a lock; otherwise a mutex guards the state.
public final class Circuit: ServiceNote {
    /// The state and the counts of the circuit, for people.
    public struct Report: Sendable, Equatable {
        /// Whether requests pass, are refused, or test the service.
        public enum State: String, Sendable { case closed, open, halfOpen }

        /// The state at the time of the report.
        public let state: State
        /// How long the circuit stays open; `nil` unless it is open.
        public let openFor: Duration?
        /// The number of times that the circuit opened.
        public let opened: Int
        /// The number of refused requests.
        public let refused: Int
    }

    private let isAside = Atomic(false)
    private let counts = SecondCounts()
    private let state = Mutex(CircuitState())
    private let opened = Atomic(0)
    private let refused = Atomic(0)
    private let openedBy = Mutex<GatewayError?>(nil)

    public init() {}

    /// The failure that opened the circuit last; `nil` if that was a status.
    var cause: GatewayError? { openedBy.withLock { $0 } }

    /// Whether requests pass, and are counted.
    @inline(__always)
    var isClosed: Bool { !isAside.load(ordering: .relaxed) }

    /// Admits a request while the circuit is not closed, or was not closed a moment ago.
    func admitRequest(probes: Int, at now: LoopInstant) -> CircuitState.Entry {
        let entry = state.withLock { $0.admitRequest(probes: probes, at: now) }
        if case .refused = entry { refused.add(1, ordering: .relaxed) }
        return entry
    }

    /// Counts a request that passed the closed circuit and succeeded.
    @inline(__always)
    func passed(at now: LoopInstant) { counts.add(all: true, marked: false, at: now) }

    /// Counts a request that passed the closed circuit and failed, by `failure` or by a status. If this opens the circuit, returns the
    /// counts that opened it.
    func failed(_ rules: CircuitBreaker, by failure: GatewayError? = nil, at now: LoopInstant) -> SecondCounts.Sum? {
        counts.add(all: true, marked: true, at: now)
        let sum = counts.sum(last: rules.windowSeconds, at: now)
        guard sum.all >= rules.minRequests, Double(sum.marked) >= rules.failureRatio.value * Double(sum.all),
            state.withLock({ $0.trip(until: now + rules.openFor) })
        else { return nil }
        noteOpened(by: failure)
        return sum
    }

    /// Ends a probe.
    func ended(
        _ probe: Int, hasFailed: Bool, _ rules: CircuitBreaker, by failure: GatewayError? = nil, at now: LoopInstant
    ) -> CircuitState.Change? {
        let change = state.withLock { state in
            let change = state.ended(
                probe, hasFailed: hasFailed, probes: rules.halfOpen, reopensUntil: now + rules.openFor)
            if change == .closed {
                // Earlier results say nothing about the current state.
                counts.clear()
                isAside.store(false, ordering: .relaxed)
            }
            return change
        }
        if change == .opened { noteOpened(by: failure) }
        return change
    }

    func gaveUp(_ probe: Int) { state.withLock { $0.gaveUp(probe) } }

    private func noteOpened(by failure: GatewayError?) {
        openedBy.withLock { $0 = failure }
        opened.add(1, ordering: .relaxed)
        // If the circuit has closed again meanwhile, `isAside` stays false, because it is derived from the state.
        state.withLock { isAside.store($0.phase != .closed, ordering: .relaxed) }
    }

    /// The state and the counts at this time of the loops' clock.
    public func report(at now: LoopInstant) -> Report {
        let phase = state.withLock { $0.phase }
        var openFor: Duration?
        let shown: Report.State
        switch phase {
        case .closed: shown = .closed
        case .halfOpen: shown = .halfOpen
        case .open(let until):
            shown = .open
            openFor = max(.zero, until - now)
        }
        return Report(
            state: shown, openFor: openFor, opened: opened.load(ordering: .relaxed),
            refused: refused.load(ordering: .relaxed))
    }
}
