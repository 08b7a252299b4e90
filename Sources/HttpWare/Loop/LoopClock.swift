import Glibc

/// Where a loop reads the time: monotonic for its timers, the wall clock for dates.
///
/// Called from the loop's thread, and from any other thread that asks; so it guards itself.
public protocol LoopClock: Sendable {
    /// The present instant; never earlier than one answered before.
    func now() -> LoopInstant

    /// The present wall clock time, which an administrator may set forward or back.
    func wallNow() -> WallTime

    /// Whether time passes by itself. A clock that stands still until it is moved wakes the loops that registered.
    var advancesByItself: Bool { get }

    /// Called once by each loop that uses this clock, before it runs. The clock must not keep the loop alive.
    func register(_ loop: EventLoop)
}

extension LoopClock {
    /// A usual clock's time passes by itself.
    public var advancesByItself: Bool { true }

    /// A usual clock need not know its loops.
    public func register(_ loop: EventLoop) {}
}

/// The clocks of the operating system: `CLOCK_MONOTONIC` and `CLOCK_REALTIME`.
public struct SystemLoopClock: LoopClock {
    /// Makes the clock; all are the same.
    public init() {}

    /// Nanoseconds since the machine started, not counting the time it slept.
    public func now() -> LoopInstant {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return LoopInstant(nanoseconds: Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec))
    }

    /// The wall clock time.
    public func wallNow() -> WallTime {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return WallTime(seconds: Int64(time.tv_sec), nanoseconds: Int32(time.tv_nsec))
    }
}
