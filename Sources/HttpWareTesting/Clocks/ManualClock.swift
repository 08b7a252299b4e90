public import HttpWare
import Synchronization

/// A clock that stands still until a test moves it, for the loops' timers and for the wall clock alike.
///
/// Usable from any thread: its state is guarded by a mutex.
public final class ManualClock: LoopClock {
    private struct WeakLoop {
        weak var loop: EventLoop?
    }

    private struct State {
        var now = LoopInstant(nanoseconds: 0)
        var wallNow: WallTime
        var loops: [WeakLoop] = []
    }

    private let state: Mutex<State>

    /// Makes a clock that stands at this wall clock time, by default 2026-01-01T00:00:00Z.
    public init(wallTime: WallTime = WallTime(seconds: 1_767_225_600)) {
        state = Mutex(State(wallNow: wallTime))
    }

    /// The present instant; the origin is the time when the clock was made.
    public func now() -> LoopInstant { state.withLock { $0.now } }

    /// The present wall clock time.
    public func wallNow() -> WallTime { state.withLock { $0.wallNow } }

    /// False, because only a test moves it.
    public var advancesByItself: Bool { false }

    /// Remembers a loop, weakly, to wake it when the clock moves.
    public func register(_ loop: EventLoop) {
        state.withLock { state in
            state.loops.removeAll { $0.loop == nil }
            state.loops.append(WeakLoop(loop: loop))
        }
    }

    /// Moves both clocks forward and wakes the loops, so that due timers fire. Does not wait for them; work that is
    /// later given to a loop's `execute` or `submit` runs after these timers.
    public func advance(by duration: Duration) {
        precondition(duration >= .zero, "a monotonic clock does not go back")
        let loops = state.withLock { state in
            state.now += duration
            state.wallNow = state.wallNow + duration
            return state.loops.compactMap(\.loop)
        }
        for loop in loops { loop.clockMoved() }
    }

    /// Sets the wall clock alone, as an administrator does.
    public func set(wallTime: WallTime) { state.withLock { $0.wallNow = wallTime } }
}
