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
        var waiting: [Int: Place] = [:]
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
    var count: Int { state.withLock { $0.waiting.count } }

    /// Closes the gate, or opens it and lets all go. Answers whether that changed anything.
    @discardableResult
    func setClosed(_ isClosed: Bool) -> Bool {
        let (places, hasChanged) = state.withLock { state -> ([Place], Bool) in
            let hasChanged = state.isClosed != isClosed
            state.isClosed = isClosed
            guard !isClosed else { return ([], hasChanged) }
            let places = state.waiting.values.sorted { $0.number < $1.number }
            state.waiting = [:]
            state.bytes = 0
            return (places, hasChanged)
        }
        for place in places { place.wait.resume(returning: true) }
        return hasChanged
    }

    /// What a request finds at the gate.
    enum Entry {
        case open
        /// It is open, and others go first.
        case wait(Duration)
        case held(Place)
        case overflow
    }

    func enter(bytes: Int, at now: LoopInstant) -> Entry {
        state.withLock { state in
            guard state.isClosed else {
                guard interval > .zero, state.nextRelease > now else { return .open }
                return .wait(HoldQueue.slot(&state, now, interval))
            }
            guard state.waiting.count < limits.max, state.bytes + bytes <= limits.maxBytes.bytes else {
                return .overflow
            }
            state.taken += 1
            let place = Place(number: state.taken, bytes: bytes)
            state.waiting[place.number] = place
            state.bytes += bytes
            return .held(place)
        }
    }

    /// Waits until the gate opens, at most so long; whether it did. Throws `CancellationError` when the client left. The place is
    /// free afterwards.
    func wait(_ place: Place, for patience: Duration) async throws -> Bool {
        let timer = HandedTimer(EventLoop.current?.schedule(after: patience) { place.wait.resume(returning: false) })
        defer {
            timer.timer?.cancel()
            leave(place)
        }
        return try await place.wait.value()
    }

    /// How long a request that was let go waits for its turn.
    func turn(at now: LoopInstant) -> Duration {
        guard interval > .zero else { return .zero }
        return state.withLock { HoldQueue.slot(&$0, now, interval) }
    }

    private static func slot(_ state: inout State, _ now: LoopInstant, _ interval: Duration) -> Duration {
        let turn = max(state.nextRelease, now)
        state.nextRelease = turn + interval
        return turn - now
    }

    private func leave(_ place: Place) {
        state.withLock { state in
            if state.waiting.removeValue(forKey: place.number) != nil { state.bytes -= place.bytes }
        }
    }
}

/// Carries a timer across a suspension of a task of its loop.
// @unchecked Sendable: touched by that task only, which stays on the loop.
private struct HandedTimer: @unchecked Sendable {
    let timer: LoopTimer?

    init(_ timer: LoopTimer?) { self.timer = timer }
}
