public import HttpCaching
public import HttpWare

/// Keeps responses that can be validated, and always asks before it answers: what the origin server says to be unchanged needs
/// not be sent again.
///
/// | option      | type                | default  | allowed     |
/// |-------------|---------------------|----------|-------------|
/// | `maxSize`   | byte count          | `64MiB`  | 1MiB … 1TiB |
/// | `maxObject` | byte count          | `8MiB`   | 1KiB … 1TiB |
/// | `mode`      | `shared`, `private` | `shared` |             |
public struct NotModified: Middleware, Postware {
    let cache: HttpCache

    public var failsOpen: Bool { true }
    public var holdsState: Bool { true }

    /// Keeps up to `maxSize` in all, of one response at most `maxObject`.
    public init(
        maxSize: ByteCount = .mebibytes(64), maxObject: ByteCount = .mebibytes(8), mode: CacheMode = .shared
    ) {
        var cache = HttpCache(store: MemoryStore(limit: maxSize), maxObject: maxObject)
        cache.alwaysValidates = true
        cache.collapses = false
        cache.emitsStatus = false
        cache.policy.mode = mode
        self.cache = cache
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        cache.handle(&request, in: exchange)
    }

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        cache.handle(&response, in: exchange)
    }
}

extension NotModified: ConfigurableWare {
    public static let name: WareName = "notModified"
    public static let about = WareAbout(
        "Keeps responses that can be validated, and asks before each answer whether they still hold.",
        source: "RFC 9110 §13, RFC 9111 §4.3",
        example: #"""
            - notModified: { maxSize: 64MiB }
            """#,
        details: #"""
            Each request goes upstream, with `If-None-Match` and `If-Modified-Since` of what is kept; a 304 becomes the stored response,
            and for a client that has it already stays a 304. An origin server's 200 becomes a 304 for a client whose
            `If-None-Match` or `If-Modified-Since` matches it. What may be kept, and who may have it, is decided as by `httpCache`:
            `no-store`, `private`, `Vary` and who asks count. Nothing is ever answered without asking, however fresh it is. What is
            kept is in memory of its own, which `httpware cache` calls as the ware is called.
            """#)

    public init(options: inout OptionsReader) {
        var maxSize = ByteCount.mebibytes(64)
        var maxObject = ByteCount.mebibytes(8)
        var mode = CacheMode.shared
        options.read(
            "maxSize", into: &maxSize, in: .mebibytes(1) ... .gibibytes(1024), doc: "what all responses may take")
        options.read(
            "maxObject", into: &maxObject, in: .kibibytes(1) ... .gibibytes(1024),
            doc: "the most content of a response that is kept")
        options.read("mode", into: &mode, doc: "for whom responses are kept")
        self.init(maxSize: maxSize, maxObject: maxObject, mode: mode)
    }
}
