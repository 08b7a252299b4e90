public import HttpWare

/// A server that counts rate limits for all gateways that share it.
public protocol RateServer: AnyObject, Sendable {
    /// A limit on the server. Gateways share it by `name`; `patience` is the maximum delay, in nanoseconds.
    func rate(_ limit: Gcra, name: String, patience: Int64) -> any SharedRate
}

/// A rate limit that gateways share.
public protocol SharedRate: Sendable {
    /// Whether the server is expected to answer: false shortly after a failure.
    var mayAnswer: Bool { get }
    /// Decides about a request with that key, and counts it. Returns `nil` if no valid answer arrives in time.
    func countRequest(of key: Digest256) async -> Gcra.Decision?
}
