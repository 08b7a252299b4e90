public import HttpWare

/// Compresses what clients take compressed. RFC 9110 §8.4, §12.5.3.
///
/// | option      | type                  | default            | allowed |
/// |-------------|-----------------------|--------------------|---------|
/// | `encodings` | list of `zstd`, `br`, `gzip` | `[zstd, br, gzip]` | |
/// | `minSize`   | byte count            | `1KiB`             | 0B … 1GiB |
/// | `types`     | list of media types   | texts, JSON, XML, scripts, SVG, Wasm, fonts | |
/// | `level`     | whole number          | `4`                | 1 … 9   |
/// | `max`       | whole number          | `256`              | 1 … 100000 |
/// | `skipCrossSite` | boolean           | `false`            |         |
///
/// Contents are compressed as they pass, and memory is bounded: at most `max` contents at once have an encoder.
public struct Compress: Postware, CountingWare {
    /// What it can do, the best first.
    public let encodings: [ContentCoding]
    /// Shorter content goes as it is; one of unknown length does not.
    public let minSize: ByteCount
    public let types: [MediaPattern]
    /// From 1, the fastest, to 9.
    public let level: Int
    /// Requests that pages of other sites send get their responses as they are.
    public let skipCrossSite: Bool
    private let pool: EncoderPool

    public var contentNeed: ContentNeed { .stream }
    public var holdsState: Bool { true }
    public var counter: any WareCounter { pool }

    /// What compresses well. Events (`text/event-stream`) are only meant where they are named by themselves.
    public static let usualTypes = [
        "text/*", "application/json", "application/*+json", "application/xml", "application/*+xml",
        "application/javascript", "application/x-ndjson", "application/wasm", "application/manifest+json",
        "image/svg+xml", "font/ttf", "font/otf",
    ].compactMap { MediaPattern($0) }

    /// No more than `max` contents at once are compressed.
    public init(
        encodings: [ContentCoding] = [.zstd, .br, .gzip], minSize: ByteCount = .kibibytes(1),
        types: [MediaPattern] = usualTypes, level: Int = 4, max: Int = 256, skipCrossSite: Bool = false
    ) {
        self.encodings = encodings
        self.minSize = minSize
        self.types = types
        self.skipCrossSite = skipCrossSite
        self.level = min(9, Swift.max(1, level))
        pool = EncoderPool(level: self.level, most: Swift.max(1, max))
    }

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        let isHead = exchange.request.method == .head
        let isValidation = response.status == .notModified
        let type = response.mediaType
        guard isMeant(response, exchange), isValidation || isMeant(response, type, isHead: isHead) else { return .pass }
        // The same resource is another representation for another client, whoever asks now. §12.5.5.
        response.fields.addVary(.acceptEncoding)
        if skipCrossSite {
            response.fields.addVary(Compress.fetchSite)
            if isCrossSite(exchange.request) { return .pass }
        }
        guard let coding = AcceptEncoding(exchange.request).best(of: encodings) else { return .pass }
        if !isValidation {
            guard let lent = pool.take(coding) else { return .pass }
            exchange.filterResponseContent(
                with: CompressedContent(lent, of: pool, isLive: type == Compress.events))
            try response.fields.set(.contentEncoding, to: coding.rawValue)
            exchange.note(coding.rawValue, asDecision: true)
        }
        try describe(&response)
        return .pass
    }

    /// What is said of the representation is true of the compressed one, or goes. A 304 speaks of the response that is stored. §15.4.5.
    private func describe(_ response: inout HttpResponse) throws {
        for name in Compress.untrue where response.fields.contains(name) { response.fields.remove(name) }
        // Not byte by byte the same: §8.8.1.
        if let tag = response.fields[.etag], tag.hasPrefix("\"") { try response.fields.set(.etag, to: "W/\(tag)") }
    }

    // MARK: Which responses

    private static let fetchSite: FieldName = "Sec-Fetch-Site"

    /// Whether a page of another site sent the request, as its browser said.
    private func isCrossSite(_ request: HttpRequest) -> Bool {
        request.fields.received.values(of: Compress.fetchSite).contains { $0.lowercased() == "cross-site" }
    }

    /// Whether the response may be changed at all.
    private func isMeant(_ response: HttpResponse, _ exchange: Exchange) -> Bool {
        guard response.status.code >= 200, ![204, 205, 206].contains(response.status.code),
            exchange.request.method != .connect, !response.fields.contains(.contentEncoding),
            !response.fields.contains(.contentRange)
        else { return false }
        return !Compress.forbids(response.fields.values(of: .cacheControl))
            && !Compress.forbids(exchange.request.fields.received.values(of: .cacheControl))
    }

    /// `no-transform`, RFC 9111 §5.2.1.6 and §5.2.2.6.
    private static func forbids(_ values: [String]) -> Bool {
        values.contains { value in
            value.split(separator: ",").contains { directive in
                directive.filter { $0 != " " && $0 != "\t" }.lowercased() == "no-transform"
            }
        }
    }

    /// Whether content of that type and length is worth it.
    private func isMeant(_ response: HttpResponse, _ type: String, isHead: Bool) -> Bool {
        guard types.contains(where: { $0.matches(type) && ($0.isExact || type != Compress.events) }) else {
            return false
        }
        if !response.content.isEmpty { return response.content.length.map { $0 >= minSize.bytes } ?? true }
        // RFC 9110 §9.3.2: to HEAD the same fields are sent as to GET.
        guard isHead else { return false }
        return response.fields[.contentLength].map { Int($0).map { $0 >= minSize.bytes } ?? false } ?? true
    }

    private static let events = "text/event-stream"
    /// What holds for other bytes: their number, ranges and digests.
    private static let untrue: [FieldName] = [.contentLength, .acceptRanges] + HttpFields.digests
}

extension Compress: ConfigurableWare {
    public static let name: WareName = "compress"
    public static let about = WareAbout(
        "Compresses what clients take compressed, while it passes.",
        source: "RFC 9110 §8.4, §12.5.3; RFC 1952, RFC 7932, RFC 8878",
        example: #"""
            - compress: { encodings: [zstd, gzip], minSize: 2KiB }
            """#,
        details: #"""
            Of what `Accept-Encoding` takes, as the client sent it, the most wanted coding is used, and of several the first in `encodings`;
            without the field nothing is compressed. Pieces go on as they come, and what is held back goes when the origin server pauses for 10 ms.
            `level` means the same effort as with gzip.

            Never compressed are responses that are compressed already, parts (206), what `Cache-Control: no-transform` forbids, and types that
            are not listed. `text/event-stream` is only meant where it is listed itself; then each event goes at once. `Vary` names
            `Accept-Encoding`, a strong `ETag` becomes a weak one, also of a 304, and `Accept-Ranges` and digests go, for they speak of other bytes.
            HEAD is answered with the fields of GET.

            A cache of the chain keeps the content as the origin server sent it. More than `max` contents at once are not compressed.

            Where a page holds a secret, such as a token of a form, and also text that the request brought, its compressed length tells how much the two
            have in common. A page of another site that sends many requests can guess the secret so (BREACH, CVE-2013-3587); TLS does not hide lengths.
            `skipCrossSite: true` leaves responses to such requests uncompressed, by `Sec-Fetch-Site: cross-site`, and names that field in `Vary`. Browsers
            that do not send the field are not covered. `if` can leave out the paths of such pages altogether, and secrets that change with each response
            cannot be guessed.
            """#)

    public init(options: inout OptionsReader) {
        var encodings: [ContentCoding] = [.zstd, .br, .gzip]
        var minSize = ByteCount.kibibytes(1)
        var types = Compress.usualTypes
        var level = 4
        var max = 256
        options.read("encodings", into: &encodings, doc: "what it can do, the best first")
        options.read("minSize", into: &minSize, in: .bytes(0) ... .gibibytes(1), doc: "shorter content goes as it is")
        options.read("types", into: &types, doc: "which media types")
        options.read("level", into: &level, in: 1...9, doc: "from 1, the fastest, to 9")
        options.read("max", into: &max, in: 1...100_000, doc: "how many contents are compressed at once")
        var skipCrossSite = false
        options.read(
            "skipCrossSite", into: &skipCrossSite,
            doc: "leaves responses to requests from pages of other sites uncompressed, against BREACH")
        if options.isGiven("encodings"), encodings.isEmpty, !options.hasErrors {
            options.fail(at: "encodings", "names none; write one such as gzip, or leave the ware out")
        }
        self.init(
            encodings: encodings, minSize: minSize, types: types, level: level, max: max, skipCrossSite: skipCrossSite)
    }
}
