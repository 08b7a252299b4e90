import Glibc

/// The source of a loop's time: monotonic for its timers, the wall clock for dates.
///
/// Called from the loop's thread and from other threads, so it must guard itself.
public protocol LoopClock: Sendable {
    /// The current instant; never earlier than a previous one.
    func now() -> LoopInstant

    /// The current wall clock time, which an administrator may set forward or back.
    func wallNow() -> WallTime

    /// Whether time passes by itself. A manual clock must wake the registered loops when it is moved.
    var advancesByItself: Bool { get }

    /// Called once by each loop that uses this clock, before it runs. The clock must not retain the loop.
    func register(_ loop: EventLoop)
}

extension LoopClock {
    /// By default, time passes by itself.
    public var advancesByItself: Bool { true }

    /// By default, the clock ignores its loops.
    public func register(_ loop: EventLoop) {}
}

/// The clocks of the operating system: `CLOCK_MONOTONIC` and `CLOCK_REALTIME`.
public struct SystemLoopClock: LoopClock {
    /// Makes the clock; all instances are equal.
    public init() {}

    /// Nanoseconds since the machine started, without the time in sleep.
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
