import HttpCaching
public import HttpWare

/// Compresses response content with gzip, Brotli or Zstandard, if the client accepts it. RFC 9110 §8.4, §12.5.3.
public struct Compress: Postware, CountingWare {
    /// The content codings to use, the preferred one first.
    public let encodings: [ContentCoding]
    /// The minimum size of content of known length.
    public let minSize: ByteCount
    /// The media types to compress.
    public let types: [MediaPattern]
    /// The effort, from 1 (fastest) to 9 (smallest).
    public let level: Int
    /// The maximum number of responses that are compressed at the same time.
    public let max: Int
    /// Whether responses to requests from pages of other sites stay uncompressed.
    public let skipCrossSite: Bool
    private let pool: EncoderPool

    public var holdsState: Bool { true }
    public var counter: any WareCounter { pool }

    /// Media types that compress well. Events (`text/event-stream`) are compressed only if they are listed by name.
    public static let usualTypes = [
        "text/*", "application/json", "application/*+json", "application/xml", "application/*+xml",
        "application/javascript", "application/x-ndjson", "application/wasm", "application/manifest+json",
        "image/svg+xml", "font/ttf", "font/otf",
    ].compactMap { MediaPattern($0) }

    /// At most `max` responses are compressed at the same time.
    public init(
        encodings: [ContentCoding] = [.zstd, .br, .gzip], minSize: ByteCount = .kibibytes(1),
        types: [MediaPattern] = usualTypes, level: Int = 4, max: Int = 256, skipCrossSite: Bool = false
    ) {
        self.encodings = encodings
        self.minSize = minSize
        self.types = types
        self.skipCrossSite = skipCrossSite
        self.level = min(9, Swift.max(1, level))
        self.max = Swift.max(1, max)
        pool = EncoderPool(level: self.level, most: self.max)
    }

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        guard let request = exchange.request else { return .pass }
        let isHead = request.method == .head
        let isValidation = response.status == .notModified
        let type = response.mediaType
        let isPart = response.status == .partialContent
        guard mayCompress(response, request),
            isValidation || isPart && mayCompressWhole(of: response, type)
                || !isPart && isWorthwhile(response, type, isHead: isHead)
        else { return .pass }
        // Another client may get another representation of the resource, so `Vary` is added for every client. §12.5.5.
        response.fields.addVary(.acceptEncoding)
        if skipCrossSite { response.fields.addVary(Compress.fetchSite) }
        // A part keeps its bytes, but has the `Vary` of the whole. RFC 9110 §15.3.7.
        if isPart || skipCrossSite && isCrossSite(request) { return .pass }
        guard let coding = AcceptEncoding(request).best(of: encodings) else { return .pass }
        if !isValidation {
            guard let lent = pool.takeEncoder(coding) else { return .pass }
            exchange.filterResponseContent(
                with: CompressedContent(lent, of: pool, isLive: type == Compress.events))
            try response.fields.set(.contentEncoding, to: coding.rawValue)
            exchange.note(coding.rawValue, asDecision: true)
        }
        try describe(&response)
        return .pass
    }

    /// Removes or changes the fields that are wrong for compressed content. The fields of a 304 describe the stored response.
    /// §15.4.5.
    private func describe(_ response: inout HttpResponse) throws {
        for name in Compress.untrue where response.fields.contains(name) { response.fields.remove(name) }
        // The content is not the same byte for byte, so the validator becomes weak: §8.8.1.
        if let tag = response.fields[.etag], tag.hasPrefix("\"") { try response.fields.set(.etag, to: "W/\(tag)") }
    }

    // MARK: Selecting responses

    private static let fetchSite: FieldName = "Sec-Fetch-Site"

    /// Whether a page of another site sent the request, according to the browser.
    private func isCrossSite(_ request: HttpRequest) -> Bool {
        request.fields.received.values(of: Compress.fetchSite).contains { $0.lowercased() == "cross-site" }
    }

    /// Whether the response, or the whole of which it is a part, may be compressed at all.
    private func mayCompress(_ response: HttpResponse, _ request: HttpRequest) -> Bool {
        guard response.status.code >= 200, ![204, 205].contains(response.status.code),
            request.method != .connect, !response.fields.contains(.contentEncoding),
            response.status == .partialContent || !response.fields.contains(.contentRange)
        else { return false }
        return !response.fields.forbidsTransform && !request.fields.received.forbidsTransform
    }

    /// Whether it is worthwhile to compress content of that type and length.
    private func isWorthwhile(_ response: HttpResponse, _ type: String, isHead: Bool) -> Bool {
        guard isCompressible(type) else { return false }
        if !response.content.isEmpty { return response.content.length.map { $0 >= minSize.bytes } ?? true }
        // RFC 9110 §9.3.2: a response to HEAD has the same fields as one to GET.
        guard isHead else { return false }
        return response.fields[.contentLength].map { Int($0).map { $0 >= minSize.bytes } ?? false } ?? true
    }

    /// Whether the representation of which the response is a part would be compressed, as far as the part tells. The type of
    /// several parts is inside the content, and a part need not repeat its type, so either may be compressible.
    private func mayCompressWhole(of part: HttpResponse, _ type: String) -> Bool {
        let isTypeKnown = !type.isEmpty && type != "multipart/byteranges"
        guard !isTypeKnown || isCompressible(type) else { return false }
        let complete = part.fields[.contentRange].flatMap { ContentRange(reading: $0)?.complete }
        return complete.map { $0 >= minSize.bytes } ?? true
    }

    private func isCompressible(_ type: String) -> Bool {
        types.contains { $0.matches(type) && ($0.isExact || type != Compress.events) }
    }

    private static let events = "text/event-stream"
    /// Fields that are wrong for compressed content: its length, ranges and digests.
    private static let untrue: [FieldName] = [.contentLength, .acceptRanges] + HttpFields.digests
}

extension Compress: ConfigurableWare {
    public static let name: WareName = "compress"
    public static let chainPlace: ChainPlace? = .compression
    public static let orderRisks: [OrderRisk] = [
        .before(.contentEditing, consequence: "the later ware would get compressed content; put compress after it")
    ]
    public static let about = WareAbout(
        "Compresses response content with gzip, Brotli or Zstandard, if the client accepts it.",
        source: "RFC 9110 §8.4, §12.5.3; RFC 1952, RFC 7932, RFC 8878",
        example: #"""
            - compress: { encodings: [zstd, gzip], minSize: 2KiB }
            """#,
        details: #"""
            The coding with the highest preference in the client's `Accept-Encoding` is used, and among equals the first
            in `encodings`. Without this field nothing is compressed. Content is compressed as it streams. Buffered
            output is sent when the origin server pauses for 10 ms. `level` means the same effort for each coding as for
            gzip.

            These responses are never compressed: responses that already have a content coding, partial content (206),
            responses with `Cache-Control: no-transform`, and types that are not listed. `text/event-stream` is
            compressed only if it is listed by name; each event is then sent at once. The ware adds `Accept-Encoding` to
            `Vary`, makes a strong `ETag` weak (also in a 304), and removes `Accept-Ranges` and digests, because they
            describe the uncompressed bytes. HEAD is answered with the fields of GET.

            A cache in the chain keeps the content uncompressed. If `max` responses are being compressed already,
            further ones are sent uncompressed.

            If a page contains both a secret, such as a form token, and text from the request, its compressed length
            reveals how much the two have in common. By sending many requests, a page of another site can then guess the
            secret (BREACH, CVE-2013-3587); TLS does not hide lengths. `skipCrossSite: true` leaves responses to such
            requests uncompressed. It recognises them by `Sec-Fetch-Site: cross-site`, and adds that field to `Vary`.
            Browsers that do not send the field are not covered. An `if` can exclude the paths of such pages altogether.
            Secrets that change with each response cannot be guessed.
            """#,
        otherNames: ["gzip", "brotli", "br", "zstd", "deflate", "encode", "compression", "compressor"])

    public init(options: inout OptionsReader) {
        let usual = Compress()
        var encodings = usual.encodings
        var minSize = usual.minSize
        var types = usual.types
        var level = usual.level
        var max = usual.max
        var skipCrossSite = usual.skipCrossSite
        options.read("encodings", into: &encodings, doc: "content codings to use, the preferred one first")
        options.read(
            "minSize", into: &minSize, in: .bytes(0) ... .gibibytes(1),
            doc: "minimum size of content to compress; content of unknown length is always compressed")
        options.read(
            "types", into: &types, doc: "media types to compress; text/* and application/*+json match groups of types")
        options.read("level", into: &level, in: 1...9, doc: "compression effort: 1 is fastest, 9 compresses most")
        options.read(
            "max", into: &max, in: 1...100_000, doc: "maximum number of responses that are compressed at the same time")
        options.read(
            "skipCrossSite", into: &skipCrossSite,
            doc: "leaves responses to requests from pages of other sites uncompressed, against the BREACH attack")
        options.refuseEmpty("encodings", "write a coding such as gzip, or remove the ware")
        self.init(
            encodings: encodings, minSize: minSize, types: types, level: level, max: max, skipCrossSite: skipCrossSite)
    }
}
