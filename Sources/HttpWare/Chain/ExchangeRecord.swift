/// What happened to an exchange and when: one structure behind the log, the timings and every other view.
///
/// Times are nanoseconds of the loop's clock; 0 means that it did not come to that.
public struct ExchangeRecord: Sendable {
    /// The request's head was read whole.
    public internal(set) var started: Int64 = 0
    /// Wall-clock time of the start, in seconds and nanoseconds since 1970.
    public internal(set) var startedAt = WallTime(seconds: 0, nanoseconds: 0)
    /// The last attempt's steps.
    public internal(set) var resolveStarted: Int64 = 0
    public internal(set) var connectStarted: Int64 = 0
    public internal(set) var connected: Int64 = 0
    /// The TLS handshake was done.
    public internal(set) var secured: Int64 = 0
    public internal(set) var requestSent: Int64 = 0
    public internal(set) var firstByte: Int64 = 0
    public internal(set) var ended: Int64 = 0

    /// How often the request was sent inward again.
    public internal(set) var replays = 0
    /// The request's content grew over what is kept of it, so it could not be sent again.
    public internal(set) var outgrewKept = false
    /// How many connections were tried.
    public internal(set) var attempts = 0
    /// The connection upstream had served another request before.
    public internal(set) var isReused = false
    /// Bytes of content that went upstream and downstream.
    public internal(set) var requestBytes = 0
    public internal(set) var responseBytes = 0
    /// Each ware's part, if the chain holds one that asks for it.
    public internal(set) var wares: [WareStep] = []

    /// What one ware did.
    public struct WareStep: Sendable {
        public let label: String
        public let isResponse: Bool
        public let decision: Decision
        /// In nanoseconds, waits included.
        public let duration: Int64
    }

    /// What a ware decided.
    public enum Decision: String, Sendable { case pass, abort, replace, replay, skipped, failed }

    mutating func reset() {
        let steps = wares
        self = ExchangeRecord()
        wares = steps
        wares.removeAll(keepingCapacity: true)
    }

    /// The whole exchange, so far if it has not ended.
    public func duration(until now: LoopInstant) -> Duration {
        .nanoseconds((ended == 0 ? now.nanoseconds : ended) - started)
    }
}
