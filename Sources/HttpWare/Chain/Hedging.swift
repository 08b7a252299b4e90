/// Lets the gateway ask further endpoints of a service while a request waits for its response. Set by a ware on the way inward.
public struct Hedging {
    /// The wait for each endpoint before the next one is asked; `nil` if no other endpoint is asked.
    public let after: Duration?
    /// The maximum number of further endpoints.
    public let most: Int
    /// Permits each of these attempts, and receives its outcome.
    public let keeper: any HedgeKeeper

    /// The number of further endpoints asked since the request last went upstream.
    public internal(set) var asked = 0
    /// Whether a further endpoint gave the response.
    public internal(set) var isWon = false
    /// The time from sending the request upstream to the response; `nil` before the response.
    public internal(set) var responseTime: Duration?
    /// When the request went upstream, in nanoseconds of the loop's clock; `nil` before that.
    var started: Int64?

    public init(after: Duration?, most: Int, keeper: any HedgeKeeper) {
        self.after = after
        self.most = most
        self.keeper = keeper
    }

    /// Resets the counts: the request goes upstream.
    mutating func begin(at now: Int64) {
        asked = 0
        isWon = false
        responseTime = nil
        started = now
    }
}

/// Controls the hedging of requests for a ware, and receives the outcomes. Called on the loop of the exchange.
public protocol HedgeKeeper: AnyObject, Sendable {
    /// Whether another endpoint may be asked now. Called only when the gateway would ask one.
    func mayHedge(_ exchange: Exchange) -> Bool
    /// A permitted attempt has ended, or its response has begun.
    func hedgeEnded(_ outcome: HedgeOutcome)
}

/// The outcome of a further attempt.
public enum HedgeOutcome: String, Sendable, CaseIterable {
    /// Its response was the first one.
    case won
    /// Another response was the first one, or the exchange ended before any response.
    case lost
    /// It failed, or was answered with 502, 503 or 504, while another attempt was running.
    case failed
}
