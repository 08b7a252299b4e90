/// The result of a cache lookup, as it is counted and shown.
public enum CacheResult: UInt8, Sendable, CaseIterable {
    /// Answered with a fresh stored response.
    case hit
    /// Answered with a stale stored response: the request or the response allows it, or the origin server failed.
    case stale
    /// Answered with the response that another request was waiting for.
    case collapsed
    /// Answered with a stored response that the origin server confirmed.
    case validated
    /// No stored response was usable: the request was sent upstream, or refused if only the store may answer.
    case miss
    /// The cache does not handle the request, because of its method, its content, or its cache directives.
    case bypass

    /// The name in metrics and records.
    public var name: String { "\(self)" }

    /// Whether the response came without asking the origin server.
    public var isHit: Bool {
        switch self {
        case .hit, .stale, .collapsed: true
        case .validated, .miss, .bypass: false
        }
    }
}
