/// The remaining time for the regular expressions of one exchange.
///
/// Without this limit, each expression of routes and conditions could keep the loop busy up to the limit of one match.
public struct PatternTime: Sendable {
    /// The remaining time in nanoseconds.
    private var left = Pattern.Limits.loop.time.nanoseconds

    /// Begins with the time limit of one match on a loop.
    public init() {}

    /// Runs a match within the remaining time, and subtracts its duration. Throws if no time remains.
    mutating func spend<Value>(
        _ match: (Duration) throws(Pattern.LimitReached) -> Value
    ) throws(Pattern.LimitReached) -> Value {
        guard left > 0 else { throw Pattern.LimitReached() }
        let clock = SystemLoopClock()
        let began = clock.now()
        defer { left -= (clock.now() - began).nanoseconds }
        return try match(.nanoseconds(left))
    }
}
