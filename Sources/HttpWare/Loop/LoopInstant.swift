/// A moment of a loop's clock, in nanoseconds since an origin that is specific to that clock.
///
/// Instants of different clocks are not comparable. Arithmetic saturates at the ends of the range instead of trapping, so that a
/// deadline "for ever" can be written as a very long duration.
public struct LoopInstant: Comparable, Hashable, Sendable {
    /// Nanoseconds since the clock's origin.
    public let nanoseconds: Int64

    /// Makes the instant that many nanoseconds after the clock's origin.
    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// The latest instant, which is never reached.
    public static let distantFuture = LoopInstant(nanoseconds: .max)

    /// Orders two instants of one clock.
    public static func < (left: LoopInstant, right: LoopInstant) -> Bool { left.nanoseconds < right.nanoseconds }

    /// The instant that lies a duration later.
    public static func + (instant: LoopInstant, duration: Duration) -> LoopInstant {
        instant.advanced(byNanoseconds: duration.nanoseconds)
    }

    /// The instant that lies a duration earlier.
    public static func - (instant: LoopInstant, duration: Duration) -> LoopInstant {
        instant.advanced(byNanoseconds: 0 &- Swift.max(duration.nanoseconds, -.max))
    }

    /// The duration from the right instant to the left one; negative if the left one is earlier.
    public static func - (left: LoopInstant, right: LoopInstant) -> Duration {
        .nanoseconds(left.nanosecondsSince(right))
    }

    /// Moves an instant by a duration.
    public static func += (instant: inout LoopInstant, duration: Duration) { instant = instant + duration }

    /// The instant that many nanoseconds later: cheaper than a `Duration`, which counts in 128 bits.
    func advanced(byNanoseconds count: Int64) -> LoopInstant {
        let (sum, overflow) = nanoseconds.addingReportingOverflow(count)
        return LoopInstant(nanoseconds: overflow ? (count < 0 ? .min : .max) : sum)
    }

    /// Nanoseconds since an earlier instant; negative if that one is later.
    func nanosecondsSince(_ earlier: LoopInstant) -> Int64 {
        let (difference, overflow) = nanoseconds.subtractingReportingOverflow(earlier.nanoseconds)
        return overflow ? (nanoseconds < 0 ? .min : .max) : difference
    }
}

extension Duration {
    /// This duration in nanoseconds, clamped to 64 bits: ±292 years.
    public var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, tooLong) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, overflow) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
        return tooLong || overflow ? (seconds < 0 ? .min : .max) : sum
    }
}
