/// The minimum rate of a client's content. The rate is measured from the content's start, after a grace period.
struct MinimumRate {
    /// The start of the measurement, in nanoseconds of the loop's clock.
    private var started: Int64 = 0
    private var bytes = 0

    /// The grace period, in which content may be slower.
    static let graceNanoseconds: Int64 = 5_000_000_000

    /// Starts the measurement, when the content starts.
    @inline(__always)
    mutating func start(at now: LoopInstant) {
        started = now.nanoseconds
        bytes = 0
    }

    /// Counts a piece of content. Returns true if the content came at less than `rate` bytes a second since the start.
    ///
    /// - Parameter resumed: when the loop ran again after its last gap. The measurement starts again there: a rate over a gap
    ///   means nothing.
    @inline(__always)
    mutating func isTooSlow(_ count: Int, rate: Int, now: LoopInstant, resumed: LoopInstant) -> Bool {
        if resumed.nanoseconds > started { start(at: now) }
        bytes += count
        let elapsed = now.nanoseconds - started
        return elapsed > MinimumRate.graceNanoseconds && Double(bytes) * 1e9 / Double(elapsed) < Double(rate)
    }

    /// The fault that ends such a request.
    static var fault: GatewayError {
        GatewayError(.downstream, .requestTimeout, "the request's content comes too slowly")
    }
}
