/// What a cache did with a request, as it is counted and shown.
public enum CacheResult: UInt8, Sendable, CaseIterable {
    /// Answered with a stored response that is fresh.
    case hit
    /// Answered with a stored response that is not: the request or the response allows it, or the origin server failed.
    case stale
    /// Answered with the response that another request was waiting for.
    case collapsed
    /// Answered with a stored response that the origin server says still holds.
    case validated
    /// Not answered by what is stored: sent upstream, or refused where nothing but the store was asked.
    case miss
    /// Not for the cache: its method, its content, or what it asks.
    case bypass

    /// The word in metrics and records.
    public var name: String { "\(self)" }

    /// Whether the origin server was not asked.
    public var isHit: Bool {
        switch self {
        case .hit, .stale, .collapsed: true
        case .validated, .miss, .bypass: false
        }
    }
}
