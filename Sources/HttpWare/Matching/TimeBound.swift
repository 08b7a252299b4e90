import Glibc

/// A limit for the time of a computation: half of it by the clock, and then the other half by the time that the thread itself has had the
/// CPU. The clock costs almost nothing, but on a busy machine another program may have had the CPU meanwhile. So the computation gets at
/// least a half of the limit, and at most all of it.
struct TimeBound {
    /// The rest of the limit, in nanoseconds.
    struct Rest: Sendable {
        var byClock: Int64
        var byThread: Int64

        init(_ limit: Duration) {
            byClock = limit.nanoseconds / 2
            byThread = limit.nanoseconds - byClock
        }

        var isOver: Bool { byClock <= 0 && byThread <= 0 }
    }

    private let rest: Rest
    private var began: ContinuousClock.Instant?
    /// The thread's time when the half by the clock ended.
    private var worked: Int64?

    /// Begins with the first question, since most computations end before it.
    init(_ limit: Duration) { rest = Rest(limit) }

    /// Begins now.
    init(_ rest: Rest) {
        self.rest = rest
        began = .now
        if rest.byClock <= 0 { worked = TimeBound.threadTime() }
    }

    /// Whether the time has passed.
    mutating func isOver(at now: ContinuousClock.Instant = .now) -> Bool {
        if let worked { return TimeBound.threadTime() - worked > rest.byThread }
        guard let began else {
            self.began = now
            return false
        }
        if began.duration(to: now).nanoseconds > rest.byClock { worked = TimeBound.threadTime() }
        return false
    }

    /// The rest of the limit after the computation.
    var left: Rest {
        var left = rest
        if let began { left.byClock -= began.duration(to: .now).nanoseconds }
        if let worked { left.byThread -= TimeBound.threadTime() - worked }
        return left
    }

    /// The time that the thread has had the CPU, in nanoseconds.
    static func threadTime() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
