import HttpWare

/// How long a server that failed is left alone: from a tenth of a second, twice as long each time, up to five seconds; of that
/// at least the half, so that gateways do not come back together.
struct RedisBackoff {
    /// Failures since it answered last.
    private(set) var failures = 0

    static let first = Duration.milliseconds(100)
    static let longest = Duration.seconds(5)

    /// It failed again: how long to leave it alone. `share` is by chance, from 0 to 1.
    mutating func fail(share: Double = .random(in: 0...1)) -> Duration {
        failures += 1
        let whole = min(RedisBackoff.first * (1 << min(failures - 1, 10)), RedisBackoff.longest)
        return whole / 2 + .nanoseconds(Int64(Double((whole / 2).nanoseconds) * share))
    }

    /// It answers.
    mutating func succeed() { failures = 0 }
}
