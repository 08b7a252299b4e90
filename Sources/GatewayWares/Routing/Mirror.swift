public import HttpWare

/// Sends copies of requests to another service; their responses are discarded, or compared.
///
/// The exchange never waits for its copy, and never fails because of it.
public struct Mirror: Middleware, Postware, CountingWare {
    /// The rules for comparing responses.
    public struct Comparing: Sendable {
        /// Fields that may differ, in addition to the ones that always differ.
        public var fields: [FieldName]
        /// Places in JSON content that may differ.
        public var pointers: [JsonPointer]

        public init(ignoring fields: [FieldName] = [], _ pointers: [JsonPointer] = []) {
            self.fields = fields
            self.pointers = pointers
        }
    }

    /// The name of the service that gets the copies.
    public let service: String
    /// The share of the requests that are copied.
    public let ratio: Ratio
    /// The maximum content of a request that is copied, and of a response that is compared.
    public let maxBody: ByteCount
    /// The maximum number of concurrent copies.
    public let maxInFlight: Int
    /// The rules for comparing responses; `nil` if responses to copies are discarded.
    public let compare: Comparing?
    /// The field that marks a copy; `nil` for no mark.
    public let header: FieldName?
    private let counts: MirrorCounts

    public var contentNeed: ContentNeed { .kept(upTo: maxBody.bytes) }
    public var failsOpen: Bool { true }
    public var holdsState: Bool { true }
    public var counter: any WareCounter { counts }

    public init(
        service: String, ratio: Ratio = 1.0, maxBody: ByteCount = .mebibytes(1), maxInFlight: Int = 100,
        compare: Comparing? = nil, header: FieldName? = nil
    ) {
        self.service = service
        self.ratio = ratio
        self.maxBody = maxBody
        self.maxInFlight = maxInFlight
        self.compare = compare
        self.header = header
        counts = MirrorCounts(most: maxInFlight)
    }

    /// The time limit of a copy.
    private static let longest = Duration.seconds(60)

    /// The state of the request's copy during the exchange.
    private enum Turn: ExchangeKey {
        enum Value {
            /// The copy is sent when the content is complete.
            case waits(HttpRequest)
            /// The copy was sent.
            case began(MirrorComparison?)
            case over
        }
    }

    // MARK: Requests

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        // Only a copy has the mark: a client's own would make the origin server take the request for a copy.
        if let header { request.fields.remove(header) }
        // A request that is sent again was copied already.
        var random = ReplaceableRandom()
        guard exchange[Turn.self] == nil, !exchange.isDryRun, request.upgrade == nil, request.method != .connect,
            ratio.value >= 1 || Double.random(in: 0..<1, using: &random) < ratio.value
        else { return .pass }
        if request.content.isEmpty || request.content.bytes != nil {
            exchange[Turn.self] = begin(request, exchange)
        } else if exchange.filtersRequestContent || request.content.length ?? 0 > maxBody.bytes {
            exchange[Turn.self] = skip(exchange)
        } else {
            exchange[Turn.self] = .waits(request)
        }
        return .pass
    }

    private func skip(_ exchange: Exchange) -> Turn.Value {
        counts.add(.skipped)
        exchange.note("not mirrored")
        return .over
    }

    private func begin(_ request: HttpRequest, _ exchange: Exchange) -> Turn.Value {
        guard request.content.bytes?.count ?? 0 <= maxBody.bytes else { return skip(exchange) }
        guard counts.take() else {
            exchange.note("not mirrored: \(maxInFlight) copies are under way")
            return .over
        }
        var copy = request
        // Cannot throw: the characters of an id are valid in a field.
        if let header { try? copy.fields.set(header, to: exchange.id) }
        let comparison = compare.map { MirrorComparison($0, upTo: maxBody.bytes, counts) }
        let receiver = MirrorCopy(counts, comparison, upTo: maxBody.bytes)
        guard let call = exchange.startBeside(copy, to: service, within: Mirror.longest, telling: receiver) else {
            return skip(exchange)
        }
        receiver.call = call
        exchange.note("mirrored")
        comparison?.tell = exchange.lateNote
        return .began(comparison)
    }

    // MARK: Responses

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        if case .waits(var request)? = exchange[Turn.self] {
            if let content = exchange.keptContent {
                request.content = .bytes(content)
                exchange[Turn.self] = begin(request, exchange)
            } else {
                exchange[Turn.self] = skip(exchange)
            }
        }
        guard case .began(let comparison?)? = exchange[Turn.self] else { return .pass }
        comparison.begin(response)
        if !response.content.isEmpty { exchange.filterResponseContent(with: MirrorTap(comparison)) }
        exchange.onEnd { exchange in
            let isWhole = exchange.end == .completed
            exchange.afterwards { comparison.ended(isWhole: isWhole) }
        }
        exchange[Turn.self] = .over
        return .pass
    }
}

extension Mirror: ConfigurableWare {
    public static let name: WareName = "mirror"
    public static let about = WareAbout(
        "Sends copies of requests to another service; their responses are discarded, or compared.",
        source: "Envoy request_mirror_policies, Gateway API RequestMirror",
        example: #"""
            - mirror: { service: shadow, ratio: 10%, header: X-Mirrored }
            - mirror: { service: shadow, compare: { ignore: [Server, /time, /items/*/etag] } }
            """#,
        details: #"""
            A copy has the method, path, query, fields and content that the request has at this place of the chain. It is
            sent to `service` without passing any ware. The exchange never waits for it, and never fails with it. A request without content
            is copied at once; another one when its response begins, if its content is whole by then and at most `maxBody`. A request
            that is sent again, by `retry` for example, is copied once. WebSockets and other upgrades are not copied.

            With `header`, a copy has that field, and the request itself never has it: a client's own field of that name is removed.

            Over `maxInFlight` copies, further requests are not copied. A copy is given up after one minute, or when its
            response is longer than `maxBody`. A copy carries the credentials that the request carries at this place, the client's own
            included. List `mirror` before `tokenInject` if the service must not get that token. On a route with the service
            `passthrough`, a request with such a token is never copied.

            With `compare`, both responses are compared when they are whole: status, fields and content. The record of the
            exchange names what differs. `Date`, `Age`, `Via`, `Server-Timing` and `Content-Length` always may differ. Of JSON content the values
            count, not the order of members; in `ignore`, a text that begins with `/` is a JSON pointer, in which `*` stands for each
            member or element. `compare: {}` compares everything else. Content over `maxBody` is not compared.
            """#,
        otherNames: ["requestMirror", "shadow", "trafficMirror", "proxyMirror", "tee"])

    public init(options: inout OptionsReader) {
        var service: String?
        var ratio: Ratio = 1.0
        var maxBody = ByteCount.mebibytes(1)
        var maxInFlight = 100
        var header: FieldName?
        options.readName("service", into: &service, of: "services", doc: "service that gets the copies")
        options.require("service")
        options.read("ratio", into: &ratio, doc: "share of the requests that are copied")
        options.read(
            "maxBody", into: &maxBody, in: .bytes(0) ... .mebibytes(16),
            doc: "maximum content of a request that is copied, and of a response that is compared")
        options.read(
            "maxInFlight", into: &maxInFlight, in: 1...10_000,
            doc: "maximum number of copies that are under way at the same time")
        var compare: Comparing?
        options.read("compare", doc: "compares the responses; without it those to copies are discarded") { options in
            var ignore: [String] = []
            options.read("ignore", into: &ignore, doc: "fields and JSON pointers that may differ")
            for text in ignore where text.hasPrefix("/") ? JsonPointer(text) == nil : FieldName(text) == nil {
                options.fail(
                    at: "ignore",
                    "\(text.quotedForErrors) is neither a field name nor a JSON pointer; write one such as Server or /time"
                )
            }
            guard options.isWritten else { return }
            compare = Comparing(
                ignoring: ignore.compactMap { $0.hasPrefix("/") ? nil : FieldName($0) },
                ignore.compactMap { $0.hasPrefix("/") ? JsonPointer($0) : nil })
        }
        options.read(
            "header", into: &header, doc: "field that is added to each copy; its value is the id of the exchange")
        if let name = header, name.isGatewayOwned || name == .host {
            options.fail(at: "header", "\(name) frames the message or concerns one connection; write another field")
        }
        self.init(
            service: service ?? "", ratio: ratio, maxBody: maxBody, maxInFlight: maxInFlight, compare: compare,
            header: header)
    }
}
