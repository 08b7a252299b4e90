import HttpWare

/// The generic cell rate algorithm (ITU-T I.371): so many at once, then one in each interval. All that is kept of a key is when it has
/// its whole burst again.
public struct Gcra: Sendable {
    /// What becomes of a request; times in nanoseconds.
    public enum Decision: Equatable, Sendable {
        /// So many more may come now; after so long all of them may.
        case granted(left: Int, fullIn: Int64)
        /// It may go after so long, and is counted.
        case delayed(by: Int64)
        /// One may come after so long; this one is not counted.
        case refused(for: Int64)
    }

    public let interval: Int64
    /// The time of a whole burst.
    public let tolerance: Int64

    /// `burst` at once, then at `rate`.
    init(_ rate: Rate, burst: Int) {
        interval = max(1, Int64(rate.period.seconds) * 1_000_000_000 / Int64(max(1, rate.count)))
        // Far more than a year is as good as a year, and cannot overflow below.
        let (product, overflows) = interval.multipliedReportingOverflow(by: Int64(max(1, burst)))
        tolerance = overflows ? .max / 4 : min(product, .max / 4)
    }

    /// Decides about a request that comes `now`, and counts it in `full`, when the key has its whole burst again. One that is over may be
    /// delayed up to `patience`.
    @inline(__always)
    func countRequest(in full: inout Int64, at now: Int64, patience: Int64) -> Decision {
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
