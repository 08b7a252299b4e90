import HttpWare

/// The rules for the reuse of a stored response: the part of its directives that matters after storing.
public struct ReuseRules: Sendable, Equatable {
    /// Seconds that it stays fresh, 0 … `DeltaSeconds.most`.
    public var lifetime: UInt32
    /// Seconds after freshness ended in which it may be used while it is validated; `nil` if the response does not say.
    /// RFC 5861 §3.
    public var staleWhileRevalidate: UInt32?
    /// Seconds after freshness ended in which it may be used when the origin server fails. RFC 5861 §4.
    public var staleIfError: UInt32?
    /// Whether it must be validated before each use (`no-cache`). RFC 9111 §5.2.2.4.
    public var needsValidation: Bool
    /// Whether it must never be used stale, whatever the request allows. RFC 9111 §4.2.4.
    public var forbidsStale: Bool
    /// Whether its lifetime is heuristic. RFC 9111 §4.2.2.
    public var isHeuristic: Bool

    /// The meaning of the directives and the lifetime in a cache of that mode.
    public init(_ directives: ResponseDirectives, _ lifetime: FreshnessLifetime, mode: CacheMode) {
        self.lifetime = UInt32(clamping: lifetime.seconds)
        staleWhileRevalidate = directives.staleWhileRevalidate.map { UInt32(clamping: $0) }
        staleIfError = directives.staleIfError.map { UInt32(clamping: $0) }
        needsValidation = directives.noCache == .response
        forbidsStale = directives.forbidsStale(in: mode)
        isHeuristic = lifetime.source == .heuristic
    }

    /// The rules as they were stored.
    init(
        lifetime: UInt32, staleWhileRevalidate: UInt32?, staleIfError: UInt32?, needsValidation: Bool,
        forbidsStale: Bool, isHeuristic: Bool
    ) {
        self.lifetime = lifetime
        self.staleWhileRevalidate = staleWhileRevalidate
        self.staleIfError = staleIfError
        self.needsValidation = needsValidation
        self.forbidsStale = forbidsStale
        self.isHeuristic = isHeuristic
    }
}
