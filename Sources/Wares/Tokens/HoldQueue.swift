import Credentials
import HttpWare
import Synchronization

/// Requests of all loops that wait for a gate to open, in the order of coming. Guarded by a mutex.
final class HoldQueue: Sendable {
    /// A request's place.
    final class Place: Sendable {
        fileprivate let number: Int
        let bytes: Int
        fileprivate let wait = LoopWait<Bool>()

        fileprivate init(number: Int, bytes: Int) {
            self.number = number
            self.bytes = bytes
        }
    }

    private struct State {
        var isClosed = false
        /// Those that the gate keeps.
        var waiting: [Int: Place] = [:]
        /// All that have a place: these, and those that were let go and wait for their turn.
        var count = 0
        var bytes = 0
        var taken = 0
        /// When the next one may go, where they go at a rate.
        var nextRelease = LoopInstant(nanoseconds: .min)
    }

    private let state = Mutex(State())
    private let limits: HoldLimits
    private let interval: Duration

    init(_ limits: HoldLimits, releaseRate: Rate?) {
        self.limits = limits
        interval = releaseRate.map { .seconds($0.period.seconds) / max(1, $0.count) } ?? .zero
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }
    var count: Int { state.withLock { $0.count } }

    /// Closes the gate, or opens it and lets all go. Answers whether that changed anything.
    @discardableResult
    func setClosed(_ isClosed: Bool) -> Bool {
        let (places, hasChanged) = state.withLock { state -> ([Place], Bool) in
            let hasChanged = state.isClosed != isClosed
            state.isClosed = isClosed
            guard !isClosed else { return ([], hasChanged) }
            let places = state.waiting.values.sorted { $0.number < $1.number }
            state.waiting = [:]
            return (places, hasChanged)
        }
        for place in places { place.wait.resume(returning: true) }
        return hasChanged
    }

    /// What a request finds at the gate.
    enum Entry {
        case open
        case held(Place)
        case overflow
    }

    func enter(bytes: Int) -> Entry {
        state.withLock { state in
            guard state.isClosed else { return .open }
            guard let place = take(&state, bytes: bytes) else { return .overflow }
            state.waiting[place.number] = place
            return .held(place)
        }
    }

    /// A place, if there is room for one.
    private func take(_ state: inout State, bytes: Int) -> Place? {
        guard state.count < limits.max, state.bytes + bytes <= limits.maxBytes.bytes else { return nil }
        state.taken += 1
        state.count += 1
        state.bytes += bytes
        return Place(number: state.taken, bytes: bytes)
    }

    /// Waits until the gate opens, and then for its turn, at most so long for both; whether it came. Throws `CancellationError` when the
    /// client left. The place is free afterwards.
    func wait(_ place: Place, for patience: Duration, in exchange: Exchange) async throws -> Bool {
        let began = exchange.now
        let timer = HandedTimer(EventLoop.current?.schedule(after: patience) { place.wait.resume(returning: false) })
        defer {
            timer.timer?.cancel()
            leave(place)
        }
        guard try await place.wait.value() else { return false }
        return try await waitForTurn(within: patience - (exchange.now - began), in: exchange)
    }

    /// The same for a request that another gate let go.
    func waitForTurn(bytes: Int, for patience: Duration, in exchange: Exchange) async throws -> Bool {
        guard interval > .zero else { return true }
        guard let place = state.withLock({ take(&$0, bytes: bytes) }) else { return false }
        defer { leave(place) }
        return try await waitForTurn(within: patience, in: exchange)
    }

    /// Waits until a request that was let go may go, unless that takes longer; whether it may.
    private func waitForTurn(within patience: Duration, in exchange: Exchange) async throws -> Bool {
        guard interval > .zero else { return true }
        let now = exchange.now
        let turn = state.withLock { state -> Duration? in
            let turn = max(state.nextRelease, now)
            guard turn - now <= patience else { return nil }
            state.nextRelease = turn + interval
            return turn - now
        }
        guard let turn else { return false }
        if turn > .zero { try await exchange.sleep(for: turn) }
        return true
    }

    private func leave(_ place: Place) {
        state.withLock { state in
            state.waiting[place.number] = nil
            state.count -= 1
            state.bytes -= place.bytes
        }
    }
}

/// Carries a timer across a suspension of a task of its loop.
// @unchecked Sendable: touched by that task only, which stays on the loop.
private struct HandedTimer: @unchecked Sendable {
    let timer: LoopTimer?

    init(_ timer: LoopTimer?) { self.timer = timer }
}
