/// The remaining time for the regular expressions of one exchange.
///
/// Without this limit, each expression of routes and conditions could keep the loop busy up to the limit of one match.
public struct PatternTime: Sendable {
    /// `nil` before the first match: most exchanges have no regular expression.
    private var left: TimeBound.Rest?

    /// Begins with the time limit of one match on a loop.
    public init() {}

    /// Runs a match within the remaining time, and subtracts its duration. Throws if no time remains.
    mutating func spend<Value>(
        _ match: (inout TimeBound) throws(Pattern.LimitReached) -> Value
    ) throws(Pattern.LimitReached) -> Value {
        let rest = left ?? TimeBound.Rest(Pattern.Limits.loop.time)
        guard !rest.isOver else { throw Pattern.LimitReached() }
        var bound = TimeBound(rest)
        defer { left = bound.left }
        return try match(&bound)
    }
}
