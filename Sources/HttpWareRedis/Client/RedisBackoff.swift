import HttpWare

/// How long a failed server is left alone: first 100 ms, then twice as long each time, up to five seconds. Up to half of that
/// is taken off at random, so that gateways do not return together.
struct RedisBackoff {
    /// The number of failures since the server last answered.
    private(set) var failures = 0

    static let first = Duration.milliseconds(100)
    static let longest = Duration.seconds(5)

    /// Counts a failure, and returns how long to leave the server alone. `share` is random, from 0 to 1.
    mutating func fail(share: Double = .random(in: 0...1)) -> Duration {
        failures += 1
        let whole = min(RedisBackoff.first * (1 << min(failures - 1, 10)), RedisBackoff.longest)
        return whole / 2 + .nanoseconds(Int64(Double((whole / 2).nanoseconds) * share))
    }

    /// Notes that the server answered.
    mutating func succeed() { failures = 0 }
}
