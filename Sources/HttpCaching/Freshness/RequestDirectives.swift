public import HttpWare

/// The cache directives of a request. RFC 9111 §5.2.1.
public struct RequestDirectives: Sendable, Equatable {
    /// Seconds; an invalid value counts as 0, which asks for the freshest response.
    public var maxAge: Int64?
    /// Seconds that the response must still be fresh; an invalid value is ignored.
    public var minFresh: Int64?
    /// Seconds that the response may be stale. Without an argument any staleness is accepted, which is
    /// `DeltaSeconds.most`.
    public var maxStale: Int64?
    public var noCache = false
    public var noStore = false
    public var onlyIfCached = false
    public var noTransform = false
    /// Seconds after freshness ended in which the client accepts a stale response if the origin server fails. RFC 5861 §4.
    public var staleIfError: Int64?

    /// No directives.
    public init() {}

    /// Reads the `Cache-Control` lines, or without any, `Pragma: no-cache`. RFC 9111 §5.4.
    public init(_ fields: borrowing HttpFields) {
        guard fields.mayContain(RequestDirectives.sources) else { return }
        guard fields.contains(.cacheControl) else {
            if fields.contains(.pragma) {
                noCache = fields.listMembers(of: .pragma).contains { $0.lowercased() == "no-cache" }
            }
            return
        }
        for directive in CacheDirective.list(fields.values(of: .cacheControl)) {
            switch directive.name {
            case "max-age": ResponseDirectives.setFirst(&maxAge, directive)
            case "min-fresh": minFresh = minFresh ?? directive.argument.flatMap { DeltaSeconds.read($0) }
            case "max-stale": if maxStale == nil { maxStale = RequestDirectives.maxStale(directive) }
            case "no-cache": noCache = true
            case "no-store": noStore = true
            case "only-if-cached": onlyIfCached = true
            case "no-transform": noTransform = true
            case "stale-if-error": staleIfError = staleIfError ?? directive.argument.flatMap { DeltaSeconds.read($0) }
            default: break
            }
        }
    }

    private static let sources = KnownFields(.cacheControl, .pragma)

    private static func maxStale(_ directive: CacheDirective) -> Int64? {
        guard directive.isWellFormed else { return nil }
        guard let argument = directive.argument else { return DeltaSeconds.most }
        return DeltaSeconds.read(argument)
    }
}
