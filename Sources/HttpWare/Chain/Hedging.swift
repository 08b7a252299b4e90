/// Lets the gateway ask further endpoints of a service while a request waits for its response. Set by a ware on the way inward.
public struct Hedging {
    /// How long the request waits for each endpoint until the next one is asked; `nil` if no other one is asked.
    public let after: Duration?
    /// The most further endpoints that are asked.
    public let most: Int
    /// Allows each of these attempts, and counts what becomes of them.
    public let keeper: any HedgeKeeper

    /// How many further endpoints were asked, the last time that the request went upstream.
    public internal(set) var asked = 0
    /// Whether one of these gave the response.
    public internal(set) var isWon = false
    /// From when the request went upstream to the response; `nil` before there is one.
    public internal(set) var responseTime: Duration?
    /// When the request went upstream, in nanoseconds of the loop's clock; `nil` before it does.
    var started: Int64?

    public init(after: Duration?, most: Int, keeper: any HedgeKeeper) {
        self.after = after
        self.most = most
        self.keeper = keeper
    }

    /// The request goes upstream.
    mutating func begin(at now: Int64) {
        asked = 0
        isWon = false
        responseTime = nil
        started = now
    }
}

/// What a ware that hedges requests is asked and told. Called on the loop of the exchange.
public protocol HedgeKeeper: AnyObject, Sendable {
    /// Whether another endpoint may be asked now: called when one would be.
    func mayHedge(_ exchange: Exchange) -> Bool
    /// An attempt that was allowed is over, or its response has begun.
    func hedgeEnded(_ outcome: HedgeOutcome)
}

/// What became of a further attempt.
public enum HedgeOutcome: String, Sendable, CaseIterable {
    /// Its response was the first one.
    case won
    /// Another response was the first one, or the exchange ended before there was any.
    case lost
    /// It failed, or was answered with 502, 503 or 504, while another attempt was under way.
    case failed
}
