/// A wall clock time, counted from 1970-01-01T00:00:00Z without leap seconds.
public struct WallTime: Comparable, Hashable, Sendable {
    /// Whole seconds since 1970; negative before.
    public var seconds: Int64

    /// The rest of the second, 0 …< 1,000,000,000.
    public var nanoseconds: Int32

    /// Makes a time from whole seconds and the remaining nanoseconds, 0 …< 1,000,000,000.
    public init(seconds: Int64, nanoseconds: Int32 = 0) {
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }

    /// Nanoseconds since 1970, clamped to 64 bits: the years 1678 to 2262.
    public var sinceEpoch: Int64 {
        let (product, isTooLong) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, overflow) = product.addingReportingOverflow(Int64(nanoseconds))
        return isTooLong || overflow ? (seconds < 0 ? .min : .max) : sum
    }

    /// Orders by time.
    public static func < (left: WallTime, right: WallTime) -> Bool {
        (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
    }

    /// The duration from the second time to the first.
    public static func - (left: WallTime, right: WallTime) -> Duration {
        .seconds(left.seconds - right.seconds) + .nanoseconds(Int64(left.nanoseconds) - Int64(right.nanoseconds))
    }

    /// The time a duration later.
    public static func + (time: WallTime, duration: Duration) -> WallTime {
        let sum = duration + .nanoseconds(Int64(time.nanoseconds))
        var (seconds, attoseconds) = sum.components
        if attoseconds < 0 {
            seconds -= 1
            attoseconds += 1_000_000_000_000_000_000
        }
        return WallTime(seconds: time.seconds &+ seconds, nanoseconds: Int32(attoseconds / 1_000_000_000))
    }
}
