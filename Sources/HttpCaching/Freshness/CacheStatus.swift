public import HttpWare

/// The handling of a request by a cache, as `Cache-Status` reports it. RFC 9211.
public struct CacheStatus: Sendable, Equatable {
    /// Why a request went on upstream. RFC 9211 §2.2.
    public enum Forward: String, Sendable {
        case bypass, method
        case uriMiss = "uri-miss"
        case varyMiss = "vary-miss"
        case request, stale, partial
    }

    public var isHit = false
    public var forward: Forward?
    /// The status of the origin server's answer, if it differs from the response's. §2.3.
    public var forwardStatus: Int?
    /// Remaining seconds of freshness, negative if stale. §2.4.
    public var ttl: Int64?
    public var isStored = false
    /// Whether the request waited for another request's response. §2.6.
    public var isCollapsed = false
    /// A detail for people, which must be a token. §2.8.
    public var detail: String?

    public init() {}

    /// Adds the field line, a structured list with one item and its parameters.
    public func append(to fields: inout HttpFields) {
        fields.append(.cacheStatus) {
            $0.write("httpware")
            if isHit { $0.write("; hit") }
            if let forward {
                $0.write("; fwd=")
                $0.write(token: forward.rawValue)
            }
            if let forwardStatus {
                $0.write("; fwd-status=")
                $0.write(forwardStatus)
            }
            if let ttl {
                $0.write("; ttl=")
                $0.write(Int(ttl))
            }
            if isStored { $0.write("; stored") }
            if isCollapsed { $0.write("; collapsed") }
            if let detail {
                $0.write("; detail=")
                $0.write(token: detail)
            }
        }
    }
}
