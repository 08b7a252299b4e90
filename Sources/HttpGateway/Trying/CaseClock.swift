import HttpWare
import Synchronization

/// The clock of a case: it stands still until the case moves it. The case turns its loop itself, so that no loop has to be woken.
final class CaseClock: LoopClock {
    private struct State {
        var now = LoopInstant(nanoseconds: 0)
        var wallNow: WallTime
    }

    private let state: Mutex<State>

    init(at wallTime: WallTime) { state = Mutex(State(wallNow: wallTime)) }

    func now() -> LoopInstant { state.withLock { $0.now } }
    func wallNow() -> WallTime { state.withLock { $0.wallNow } }
    var advancesByItself: Bool { false }

    /// Moves both clocks to this instant, unless it has passed.
    func move(to instant: LoopInstant) {
        state.withLock { state in
            guard instant > state.now else { return }
            state.wallNow = state.wallNow + (instant - state.now)
            state.now = instant
        }
    }
}
