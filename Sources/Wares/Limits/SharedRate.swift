public import HttpWare

/// A server that gateways share: it counts rate limits for all of them.
public protocol RateServer: AnyObject, Sendable {
    /// A limit there. `name` is what gateways that share it call it; `patience` is the longest wait, in nanoseconds.
    func rate(_ limit: Gcra, name: String, patience: Int64) -> any SharedRate
}

/// A rate limit that gateways share.
public protocol SharedRate: Sendable {
    /// Whether the server may answer: it did not fail just before.
    var mayAnswer: Bool { get }
    /// Decides about a request of that key, and counts it. `nil` if there is no valid answer in time.
    func countRequest(of key: Digest256) async -> Gcra.Decision?
}
