public import HttpWare

/// What a cache was told about its own ways: the part of its configuration that decides about storing and reuse.
public struct CachePolicy: Sendable, Equatable {
    public var mode = CacheMode.shared
    /// The part of the time since `Last-Modified` that a response without a lifetime stays fresh: 0 … 1. RFC 9111 §4.2.2.
    public var heuristicRatio = 0.1
    /// The longest lifetime that is guessed so, in seconds.
    public var heuristicLimit: Int64 = 86_400
    /// Fields that speak to this cache alone, in the order they are looked for. RFC 9213 §2.2.
    public var targeted: [FieldName] = ["CDN-Cache-Control"]
    /// Seconds that count where a response says none of its own; `nil` is none. RFC 5861.
    public var staleWhileRevalidate: Int64?
    public var staleIfError: Int64?
    /// A stale response of any age is used when the origin server cannot be reached, unless the response forbids that. RFC 9111
    /// §4.2.4.
    public var staleOnDisconnect = false
    /// What becomes of responses that set cookies. RFC 9111 §7.3 leaves that to the cache.
    public var setCookie = SetCookieRule.strip

    public init() {}

    /// The directives that hold for a response: those of the first targeted field that is valid and not empty, else
    /// `Cache-Control`'s. RFC 9213 §2.1.
    public func directives(of fields: HttpFields) -> (directives: ResponseDirectives, isTargeted: Bool) {
        for name in targeted where fields.contains(name) {
            if let directives = ResponseDirectives(targeted: fields.values(of: name)) { return (directives, true) }
        }
        return (ResponseDirectives(of: fields), false)
    }
}

/// What becomes of a response with `Set-Cookie`. One that does not say how long it stays fresh is never stored.
public enum SetCookieRule: String, OptionWord, Sendable {
    /// It is stored without that field, but for a response that a private cache stores for one person alone.
    case strip
    /// It is passed on and not stored.
    case pass
    /// It is stored as it is: each client that it answers is sent the cookie of the first.
    case store
}
