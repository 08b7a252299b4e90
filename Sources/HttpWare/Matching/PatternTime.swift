/// The time that is left to the regular expressions of one exchange.
///
/// Without it, a request could keep its loop busy once for each expression of routes and conditions, each time up to the limit of one
/// match.
public struct PatternTime: Sendable {
    /// In nanoseconds.
    private var left = Pattern.Limits.loop.time.nanoseconds

    /// As much as one match on a loop may take.
    public init() {}

    /// Lets a match take some of what is left. Throws if that is nothing.
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
