/// What a cache did with a request, as it tells others. RFC 9211.
public struct CacheStatus: Sendable, Equatable {
    /// Why a request went on upstream. RFC 9211 §2.2.
    public enum Forward: String, Sendable {
        case bypass, method
        case uriMiss = "uri-miss"
        case varyMiss = "vary-miss"
        case request, stale, partial
    }

    /// The cache's name, a token.
    public var cache = "httpware"
    public var isHit = false
    public var forward: Forward?
    /// The status of the origin server's answer, where it is not that of the response. §2.3.
    public var forwardStatus: Int?
    /// Seconds of freshness left, negative when stale. §2.4.
    public var ttl: Int64?
    public var isStored = false
    /// The request waited for another one's response. §2.6.
    public var isCollapsed = false
    /// For people; a token. §2.8.
    public var detail: String?

    public init() {}

    /// The member of `Cache-Status` that says this: a structured list's item with parameters.
    public var text: String {
        var text = cache
        if isHit { text += "; hit" }
        if let forward { text += "; fwd=\(forward.rawValue)" }
        if let forwardStatus { text += "; fwd-status=\(forwardStatus)" }
        if let ttl { text += "; ttl=\(ttl)" }
        if isStored { text += "; stored" }
        if isCollapsed { text += "; collapsed" }
        if let detail { text += "; detail=\(detail)" }
        return text
    }
}
