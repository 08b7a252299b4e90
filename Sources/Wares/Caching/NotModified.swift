public import HttpCaching
public import HttpWare

/// Stores responses and revalidates them with the origin server before each use, so that unchanged content is not sent
/// again.
public struct NotModified: Middleware, Postware {
    /// The maximum size of all stored responses together.
    public let maxSize: ByteCount
    private(set) var cache: HttpCache

    public var failsOpen: Bool { true }
    public var holdsState: Bool { true }

    /// The content of a response larger than `maxObject` is not stored.
    public init(
        maxSize: ByteCount = .mebibytes(64), maxObject: ByteCount = .mebibytes(8), mode: CacheMode = .shared
    ) {
        self.maxSize = maxSize
        var cache = HttpCache(store: MemoryStore(limit: maxSize), maxObject: maxObject)
        cache.alwaysValidates = true
        cache.collapses = false
        cache.emitsStatus = false
        cache.policy.mode = mode
        self.cache = cache
    }

    /// A copy that keeps the stored responses of different clients apart, with the same store.
    public var keptApart: NotModified {
        var copy = self
        copy.cache.policy.mode = .private
        return copy
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
    public static let chainPlace: ChainPlace? = .caching
    public static let orderRisks = [OrderRisk].ofSharedResponses
    public static let about = WareAbout(
        "Stores responses and revalidates them with the origin server before each use, so that unchanged content is not sent again.",
        source: "RFC 9110 §13, RFC 9111 §4.3",
        example: #"""
            - notModified: { maxSize: 64MiB }
            """#,
        details: #"""
            Each request goes upstream with the `If-None-Match` and `If-Modified-Since` of the stored response. If the
            origin server answers 304, the client gets the stored response, or a 304 if it has that response already. If
            the origin server answers 200, a client whose `If-None-Match` or `If-Modified-Since` matches gets a 304.
            `httpCache` describes which responses are stored and for whom: `no-store`, `private`, `Vary` and the sender
            of the request count. No stored response is used without asking the origin server, even if it is fresh. The
            responses are stored in memory of this ware, which `\#(ProgramName.text) cache` lists under the ware's label.
            """#,
        otherNames: ["etag", "etags", "conditional", "revalidate"])

    public init(options: inout OptionsReader) {
        let usual = NotModified()
        var maxSize = usual.maxSize
        var maxObject = usual.cache.maxObject
        var mode = usual.cache.policy.mode
        options.read(
            "maxSize", into: &maxSize, in: .mebibytes(1) ... .gibibytes(1024),
            doc: "maximum size of all stored responses together")
        options.read(
            "maxObject", into: &maxObject, in: .kibibytes(1) ... .gibibytes(1024),
            doc: "maximum size of a response that is stored")
        options.read(
            "mode", into: &mode,
            doc: "shared stores responses for all clients, private keeps those of different clients apart")
        self.init(maxSize: maxSize, maxObject: maxObject, mode: mode)
    }
}
