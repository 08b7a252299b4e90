public import HttpWare

/// What a stored response says about its own reuse: all that is left of its directives once it is stored.
public struct ReuseRules: Sendable, Equatable {
    /// Seconds that it stays fresh, 0 … `DeltaSeconds.most`.
    public var lifetime: UInt32
    /// Seconds after freshness ended in which it may be used while it is validated; `nil` where it does not say. RFC 5861 §3.
    public var staleWhileRevalidate: UInt32?
    /// Seconds after freshness ended in which it may be used when the origin server fails. RFC 5861 §4.
    public var staleIfError: UInt32?
    /// It may not be used without validation (`no-cache`). RFC 9111 §5.2.2.4.
    public var needsValidation: Bool
    /// It may not be used stale, whatever the request allows. RFC 9111 §4.2.4.
    public var forbidsStale: Bool
    /// Its lifetime was guessed. RFC 9111 §4.2.2.
    public var isHeuristic: Bool

    /// What the directives and the lifetime mean in a cache of that mode.
    public init(_ directives: ResponseDirectives, _ lifetime: FreshnessLifetime, mode: CacheMode) {
        self.lifetime = UInt32(clamping: lifetime.seconds)
        staleWhileRevalidate = directives.staleWhileRevalidate.map { UInt32(clamping: $0) }
        staleIfError = directives.staleIfError.map { UInt32(clamping: $0) }
        needsValidation = directives.noCache == .response
        forbidsStale = directives.forbidsStale(in: mode)
        isHeuristic = lifetime.source == .heuristic
    }
}
