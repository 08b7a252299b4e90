public import HttpWare

/// The configuration of a cache that decides about storing and reuse.
public struct CachePolicy: Sendable, Equatable {
    public var mode = CacheMode.shared
    /// The share of the time since `Last-Modified` for which a response without a lifetime stays fresh: 0 … 1. RFC 9111
    /// §4.2.2.
    public var heuristicRatio = 0.1
    /// The maximum heuristic lifetime, in seconds.
    public var heuristicLimit: Int64 = 86_400
    /// The lifetime, in seconds, of responses that do not state one, in place of the heuristic; `nil` uses the
    /// heuristic.
    public var defaultLifetime: Int64?
    /// Fields with directives for this cache only, in order of precedence. RFC 9213 §2.2.
    public var targeted: [FieldName] = ["CDN-Cache-Control"]
    /// The default time in seconds, for responses that do not state one; `nil` for no time. RFC 5861.
    public var staleWhileRevalidate: Int64?
    public var staleIfError: Int64?
    /// Whether a stale response of any age is used if the origin server is unreachable, unless the response forbids
    /// that. RFC 9111 §4.2.4.
    public var staleOnDisconnect = false
    /// The handling of responses that set cookies. RFC 9111 §7.3 leaves that to the cache.
    public var setCookie = SetCookieRule.strip

    public init() {}

    /// The directives that apply to a response: those of the first targeted field that is valid and not empty, else
    /// those of `Cache-Control`. RFC 9213 §2.1.
    public func directives(of fields: HttpFields) -> (directives: ResponseDirectives, isTargeted: Bool) {
        for name in targeted where fields.contains(name) {
            if let directives = ResponseDirectives(targeted: fields.values(of: name)) { return (directives, true) }
        }
        return (ResponseDirectives(of: fields), false)
    }
}

/// The handling of responses with `Set-Cookie`. Without an explicit lifetime, such a response is never stored.
public enum SetCookieRule: String, OptionWord, Sendable {
    /// The response is stored without that field, except a response that a private cache stores for one person alone.
    case strip
    /// The response is passed on and not stored.
    case pass
    /// The response is stored unchanged: each client that it answers gets the first client's cookie.
    case store
}
