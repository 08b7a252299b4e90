import HttpWare

/// The generic cell rate algorithm (ITU-T I.371): a burst at once, then one request in each interval. The only state of a key is
/// the time at which its whole burst is available again.
public struct Gcra: Sendable {
    /// The decision about a request; times in nanoseconds.
    public enum Decision: Equatable, Sendable {
        /// The request passes. `left` more can come now; after `fullIn` the whole burst is available.
        case granted(left: Int, fullIn: Int64)
        /// The request is counted, and may pass after this time.
        case delayed(by: Int64)
        /// The request is refused and not counted; another one can come after this time.
        case refused(for: Int64)
    }

    public let interval: Int64
    /// The time in which the whole burst becomes available, in nanoseconds.
    public let tolerance: Int64

    /// Allows `burst` requests at once, then `rate`.
    init(_ rate: Rate, burst: Int) {
        interval = max(1, Int64(rate.period.seconds) * 1_000_000_000 / Int64(max(1, rate.count)))
        // Limited, so that the sums below cannot overflow. The limit is far more than a year.
        let (product, overflows) = interval.multipliedReportingOverflow(by: Int64(max(1, burst)))
        tolerance = overflows ? .max / 4 : min(product, .max / 4)
    }

    /// Decides about a request that comes at `now`. `full` is the time at which the key has its whole burst again; a request that
    /// is not refused is counted in it. A request over the limit is delayed by at most `patience`.
    @inline(__always)
    package func countRequest(in full: inout Int64, at now: Int64, patience: Int64) -> Decision {
        let next = max(full, now) + interval
        let wait = next - tolerance - now
        if wait <= 0 {
            full = next
            return .granted(left: Int((tolerance - (next - now)) / interval), fullIn: next - now)
        }
        guard wait <= patience else { return .refused(for: wait) }
        full = next
        return .delayed(by: wait)
    }
}
