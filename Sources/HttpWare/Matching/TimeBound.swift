import Glibc

/// A limit for the time that a computation takes. The clock is asked first. If the time has passed by the clock, the thread itself must
/// have worked as long: on a busy machine another program may have had the CPU. So the computation ends after twice the limit at most.
struct TimeBound {
    private let limit: Duration
    private let began = ContinuousClock.now
    private var worked: Int64?

    init(_ limit: Duration) { self.limit = limit }

    /// Whether the time has passed.
    mutating func isOver(at now: ContinuousClock.Instant = .now) -> Bool {
        guard began.duration(to: now) > limit else { return false }
        let time = TimeBound.threadTime()
        guard let worked else {
            worked = time
            return false
        }
        return time - worked > limit.nanoseconds
    }

    /// The time that the thread has had the CPU, in nanoseconds.
    static func threadTime() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
