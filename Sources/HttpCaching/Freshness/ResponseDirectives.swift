import HttpWare

/// What a response's cache directives say. RFC 9111 §5.2.2, RFC 5861, RFC 8246.
public struct ResponseDirectives: Sendable, Equatable {
    /// Seconds, at most `DeltaSeconds.most`. One that cannot be read counts as 0: stale. §4.2.1.
    public var maxAge: Int64?
    public var sharedMaxAge: Int64?
    public var isPublic = false
    public var isPrivate = FieldScope.nothing
    public var noCache = FieldScope.nothing
    public var noStore = false
    public var noTransform = false
    public var mustRevalidate = false
    public var proxyRevalidate = false
    public var mustUnderstand = false
    public var isImmutable = false
    /// Seconds after freshness ended in which a stale response may be used while it is validated. RFC 5861 §3.
    public var staleWhileRevalidate: Int64?
    /// Seconds after freshness ended in which a stale response may be used when the origin server fails. RFC 5861 §4.
    public var staleIfError: Int64?

    /// No directives.
    public init() {}

    /// What the `Cache-Control` lines say. Of a directive with several values the first counts. RFC 9111 §4.2.1.
    public init(_ lines: [String]) {
        for directive in CacheDirective.list(lines) { take(directive) }
    }

    mutating func take(_ directive: CacheDirective) {
        let isPlain = directive.isWellFormed
        switch directive.name {
        case "max-age": ResponseDirectives.setFirst(&maxAge, directive)
        case "s-maxage": ResponseDirectives.setFirst(&sharedMaxAge, directive)
        case "public": if isPlain { isPublic = true }
        case "private": isPrivate.add(directive)
        case "no-cache": noCache.add(directive)
        case "no-store": noStore = true
        case "no-transform": noTransform = true
        case "must-revalidate": mustRevalidate = true
        case "proxy-revalidate": proxyRevalidate = true
        case "must-understand": if isPlain { mustUnderstand = true }
        case "immutable": if isPlain { isImmutable = true }
        case "stale-while-revalidate": ResponseDirectives.setFirst(&staleWhileRevalidate, directive)
        case "stale-if-error": ResponseDirectives.setFirst(&staleIfError, directive)
        default: break  // §5.2.3: what a cache does not know it ignores
        }
    }

    static func setFirst(_ value: inout Int64?, _ directive: CacheDirective) {
        guard value == nil else { return }
        value = (directive.isWellFormed ? directive.argument.flatMap { DeltaSeconds.read($0) } : nil) ?? 0
    }

    /// Whether `no-cache` or `private` is about some fields only.
    public var namesFields: Bool {
        if case .fields = noCache { return true }
        if case .fields = isPrivate { return true }
        return false
    }

    /// Whether a stale response may not be used without validation, whatever the request allows: in a shared cache
    /// `s-maxage` and `proxy-revalidate` say so too. RFC 9111 §4.2.4, §5.2.2.
    public func forbidsStale(in mode: CacheMode) -> Bool {
        mustRevalidate || noCache == .response || mode == .shared && (proxyRevalidate || sharedMaxAge != nil)
    }
}
