/// The remaining time for the regular expressions of one exchange.
///
/// Without this limit, each expression of routes and conditions could keep the loop busy up to the limit of one match.
public struct PatternTime: Sendable {
    /// The remaining time in nanoseconds: of the clock, and after that once more of the thread. Another program may have had the CPU.
    private var left = Pattern.Limits.loop.time.nanoseconds
    private var leftOfThread = Pattern.Limits.loop.time.nanoseconds

    /// Begins with the time limit of one match on a loop.
    public init() {}

    /// Runs a match within the remaining time, and subtracts its duration. Throws if no time remains.
    mutating func spend<Value>(
        _ match: (Duration) throws(Pattern.LimitReached) -> Value
    ) throws(Pattern.LimitReached) -> Value {
        guard left > 0 else {
            guard leftOfThread > 0 else { throw Pattern.LimitReached() }
            let began = TimeBound.threadTime()
            defer { leftOfThread -= TimeBound.threadTime() - began }
            return try match(.nanoseconds(leftOfThread))
        }
        let clock = SystemLoopClock()
        let began = clock.now()
        do throws(Pattern.LimitReached) {
            let value = try match(.nanoseconds(left))
            left -= (clock.now() - began).nanoseconds
            return value
        } catch {
            left -= (clock.now() - began).nanoseconds
            // A match that fails beyond the limit has used the time of the thread as well.
            if left <= 0 { leftOfThread = 0 }
            throw error
        }
    }
}
