public import HttpCaching
public import HttpWare
import Wares

/// Sends a request with an idempotency key upstream once, and answers its repetitions with the stored response.
public struct IdempotencyKey: Middleware, Postware, ContentEditor, CountingWare {
    /// The rules by which keys and responses are kept.
    struct Rules: Sendable {
        var ttl = Duration.seconds(86400)
        var maxBody = ByteCount.mebibytes(1)
        var lock = Duration.seconds(60)
    }

    /// The field with the key.
    public var header: FieldName = "Idempotency-Key"
    /// The methods of requests that can have a key.
    public var methods: [HttpMethod] = [.post, .patch]
    /// Whether a request with such a method is refused if it has no key.
    public var required = false
    var rules = Rules()
    private let place: Place
    private let counts = IdempotencyCounts()

    private enum Place: Sendable {
        case local(LocalIdempotency)
        case shared(any IdempotencyServer)
    }

    public var holdsState: Bool { true }
    public var counter: any WareCounter { counts }

    /// Keeps receipts in `store`, or in `server` if gateways share one.
    public init(store: any RecordStore, server: (any IdempotencyServer)? = nil) {
        place = server.map { .shared($0) } ?? .local(.of(store))
    }

    /// The maximum length of a key, in bytes.
    private static let longest = 255
    /// How long to wait for a store to open, and the pause between two checks.
    private static let patience = Duration.seconds(2)
    private static let pause = Duration.milliseconds(10)

    private enum Turn: ExchangeKey { typealias Value = IdempotencyTurn }

    // MARK: Requests

    private func concerns(_ request: borrowing HttpRequest) -> Bool {
        methods.contains(request.method) && request.upgrade == nil && request.hasPath
    }

    public func contentLimit(of request: HttpRequest, in exchange: Exchange) -> Int? {
        concerns(request) && request.fields.contains(header) && exchange[Turn.self] == nil ? rules.maxBody.bytes : nil
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        // A request that is sent again holds its key already.
        guard concerns(request), exchange[Turn.self] == nil else { return .pass }
        let values = request.fields.rawValues(of: header)
        guard let value = values.first else {
            guard required else { return .pass }
            exchange.note("rejected: no \(header)", asDecision: true)
            return .abort(with: .problem(.badRequest, "the request needs the field \(header)"))
        }
        guard values.count == 1, IdempotencyKey.isValid(value) else {
            exchange.note("rejected: \(header) is invalid", asDecision: true)
            return .abort(
                with: .problem(
                    .badRequest,
                    "\(header) must be one value of 1 to \(IdempotencyKey.longest) bytes, as a quoted string or without quotes and commas"
                ))
        }
        guard request.content.isEmpty || request.content.bytes != nil else {
            exchange.note("rejected: the content is larger than \(rules.maxBody)", asDecision: true)
            return .abort(
                with: .problem(
                    .contentTooLarge, "content of a request with \(header) is at most \(rules.maxBody)"))
        }
        if exchange.isDryRun { return .pass }
        let key = IdempotencyKey.key(value, request, in: exchange)
        let content = IdempotencyKey.digest(of: request)
        switch place {
        case .local(let idempotency):
            return .wait { _, exchange in
                let end = exchange.now + IdempotencyKey.patience
                while !idempotency.records.isReady {
                    guard exchange.now < end else { return self.refuseForStore(exchange) }
                    try await exchange.sleep(for: IdempotencyKey.pause)
                }
                let claim = await idempotency.claim(key, content, for: self.rules.ttl, in: exchange)
                if Task.isCancelled {
                    // The client has left: nothing goes upstream.
                    if case .taken = claim { idempotency.free(key) }
                    return .pass
                }
                return self.decide(claim, content, exchange) { .local(idempotency, key) }
            }
        case .shared(let server):
            return .wait { _, exchange in
                let claim = SharedClaim(key: key, content: content)
                let lease = SharedLease(server, claim, self.rules.lock)
                let answer = await server.claim(claim, for: self.rules.lock)
                if Task.isCancelled {
                    // The client has left: nothing goes upstream.
                    switch answer {
                    case .taken, nil: lease.free()
                    case .held, .answered: break
                    }
                    return .pass
                }
                // The key may have been taken, with the answer arriving too late.
                if answer == nil { lease.free() }
                return self.decide(answer, content, exchange) {
                    lease.begin()
                    return .shared(lease)
                }
            }
        }
    }

    /// Whether the value is one key: a string in quotes (RFC 9651 §3.3.3) that is not blank, or a text without quotes and
    /// commas. A comma separates values, like a second line. RFC 9110 §5.2.
    static func isValid(_ value: [UInt8]) -> Bool {
        guard !value.isEmpty, value.count <= longest else { return false }
        guard value.first == UInt8(ascii: "\"") else {
            return value.allSatisfy { $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: ",") }
        }
        guard case .string(let key)? = (try? StructuredReader.item(value))?.item else { return false }
        return key.contains { $0 != " " }
    }

    /// The key together with the target's authority and the client's identity, so that clients cannot use each other's
    /// keys. The share of a route with `split` does not belong to it: whichever service a repetition would be given to, the
    /// work is done once.
    private static func key(_ value: [UInt8], _ request: borrowing HttpRequest, in exchange: Exchange) -> Digest256 {
        // The empty text was the share, in receipts of earlier versions.
        let target = Digest256(of: ["\(request.scheme)", request.authority?.description.lowercased() ?? "", ""])
        let place = value.withUnsafeBytes { target.followed(by: $0) }
        guard let identity = CacheIdentity.digest(request, in: exchange) else { return place }
        return identity.withBytes { place.followed(by: $0, kind: 1) }
    }

    /// A digest of what the request asks for: its method, target, content type and content.
    private static func digest(of request: borrowing HttpRequest) -> Digest256 {
        var digest = Digest256(of: [request.method.name, request.fields[.contentType] ?? ""])
        digest = request.targetUri(asSent: true).withUnsafeBytes { digest.followed(by: $0, kind: 1) }
        let bytes = request.content.bytes ?? []
        return bytes.withUnsafeBytes { digest.followed(by: $0, kind: 2) }
    }

    // MARK: Claims

    private func begin(
        _ place: IdempotencyTurn.Place, _ content: Digest256, _ exchange: Exchange
    ) {
        let turn = IdempotencyTurn(place, content, rules, counts, beside: exchange.sharer)
        exchange[Turn.self] = turn
        exchange.sharer = turn
        exchange.onEnd { turn.fail(in: $0) }
    }

    /// Decides by the answer to a claim; `nil` says that there was no answer. `take` makes the place of a key that was taken.
    private func decide(
        _ claim: IdempotencyClaim?, _ content: Digest256, _ exchange: Exchange, _ take: () -> IdempotencyTurn.Place
    ) -> Verdict {
        switch claim {
        case .taken:
            begin(take(), content, exchange)
            return .pass
        case .held(let other, let time): return refuse(other == content, for: time, exchange)
        case .answered(let other, let bytes):
            guard other == content else { return refuse(false, for: nil, exchange) }
            if bytes.isEmpty { return refuseUnstored(exchange) }
            guard let record = IdempotencyRecord(bytes) else { return refuseForStore(exchange) }
            return answer(StoredResponse(record.head, content: .bytes(record.content)), content, exchange)
        case nil: return refuseForStore(exchange)
        }
    }

    // MARK: Answers

    private func answer(_ stored: StoredResponse, _ content: Digest256, _ exchange: Exchange) -> Verdict {
        guard stored.tags.first == content.hex else { return refuse(false, for: nil, exchange) }
        counts.add(.replayed)
        exchange.note("replayed", asDecision: true)
        var response = StoredAnswer.repeated(stored)
        response.fields.append(IdempotencyKey.replayed)
        return .abort(with: response)
    }

    private static let replayed = FieldLine(literal: "Idempotency-Replayed", "true")

    private func refuse(_ isSame: Bool, for time: Duration?, _ exchange: Exchange) -> Verdict {
        guard isSame else {
            counts.add(.mismatch)
            exchange.note("rejected: the key was used for another request", asDecision: true)
            return .abort(
                with: .problem(.unprocessableContent, "this \(header) was used for another request"))
        }
        counts.add(.conflict)
        exchange.note("rejected: a request with the key is under way", asDecision: true)
        let detail =
            time == nil
            ? "a request with this \(header) is under way"
            : "a request with this \(header) was sent, and its response is not known"
        var response = HttpResponse.problem(.conflict, detail)
        response.fields.set(.retryAfter, to: RetryAfter.seconds(time ?? .seconds(1)))
        return .abort(with: response)
    }

    private func refuseUnstored(_ exchange: Exchange) -> Verdict {
        counts.add(.conflict)
        exchange.note("rejected: the response is not stored", asDecision: true)
        return .abort(
            with: .problem(
                .conflict,
                "a request with this \(header) was sent, and its response is not stored: it was too large, or was lost")
        )
    }

    private func refuseForStore(_ exchange: Exchange) -> Verdict {
        counts.add(.unavailable)
        exchange.note("rejected: the store does not answer", asDecision: true)
        var response = HttpResponse.problem(.serviceUnavailable, "idempotency keys cannot be checked at the moment")
        response.fields.set(.retryAfter, to: 1)
        return .abort(with: response)
    }

    // MARK: Responses

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        guard let turn = exchange[Turn.self], !turn.isOver else { return .pass }
        if exchange.isForItsClientAlone,
            response.status == .unauthorized || response.status == .proxyAuthenticationRequired
        {
            // A step of the authentication of a connection: the request was not processed, and comes again.
            turn.free()
            exchange[Turn.self] = nil
        } else if exchange.responder == .upstream {
            turn.begin(response, in: exchange)
        } else {
            turn.fail(in: exchange)
            // If a ware further out sends the request again, the request has to take its key again.
            exchange[Turn.self] = nil
        }
        return .pass
    }
}

extension IdempotencyKey: Safeguard {}

extension IdempotencyKey: ConfigurableWare {
    public static let name: WareName = "idempotencyKey"
    public static let chainPlace: ChainPlace? = .idempotency
    public static let orderRisks = [OrderRisk].ofSharedResponses
    public static let about = WareAbout(
        "Sends a request with an idempotency key upstream once, and answers its repetitions with the stored response.",
        source: "draft-ietf-httpapi-idempotency-key-header-07, Stripe",
        example: #"""
            - idempotencyKey
            - idempotencyKey: { required: true, ttl: 48h, maxBody: 256KiB }
            """#,
        details: #"""
            A client that does not know whether its request arrived sends it again with the same `Idempotency-Key`: a string in
            quotes that is not blank, or a text without quotes and commas, of at most 255 bytes. Any other value, such as `""`, is
            refused with 400. The first request goes upstream; later ones get its response, with `Idempotency-Replayed: true`, for as long as `ttl`. Every
            final response of the origin server is stored, 500 and 503 too, because the work may have been done. A request with
            the same key and another method, path, query, content type or content is answered with 422. While the first request
            is under way, a repetition is answered with 409 and `Retry-After`.

            A key belongs to the host of the request and to its sender, as with `httpCache`: to the credentials, cookies and
            principals of the request. List this ware after authentication. The key is 1 to 255 bytes long.

            The content of a request with a key is read as a whole before anything is sent; more than `maxBody` is answered
            with 413. If the client leaves, the request is carried out without it. A response larger than `maxBody` is passed on,
            but not stored; repetitions are answered with 409.

            If the request fails before anything was sent upstream, the key is free again. If it fails later, whether the work
            was done is not known: repetitions are answered with 409 for as long as `lock`.

            `store` names a store in memory, on disk or in Redis, which keeps a receipt of each request for `ttl`. Receipts are
            not cached responses: they have a room of their own (`maxRecords`), none is removed before its time to make room
            for another, and no purge of a cache removes them. A request whose receipt has no room is not sent: it is answered
            with 503, as it is if the store does not answer. If there is room for a short receipt only, the response is not
            stored, and repetitions are answered with 409. In memory, receipts are lost at a restart; on disk they are not, and
            a request that was under way then is answered with 409. With Redis, all gateways that name the store share the
            keys. At most 10,000 requests with a key are under way in one gateway without Redis. The metric
            `httpware_idempotent_requests_total` counts requests by result.
            """#,
        otherNames: ["idempotency", "idempotent", "idempotencyKeys"])

    public init(options: inout OptionsReader) {
        var store: NamedStore?
        options.readStore("store", into: &store, doc: "store of the receipts: memory, or the name of one")
        // Without a configuration, no store can be found. That is reported as an error already.
        let found = store ?? NamedStore(.builtin)
        self.init(store: found.records, server: found.server as? any IdempotencyServer)
        options.read("header", into: &header, doc: "request field with the key")
        if header.isGatewayOwned || header == .host {
            options.fail(at: "header", "\(header) frames the message or concerns one connection; write another field")
        }
        var listed = methods.map { Located($0, at: options.location) }
        options.read("methods", into: &listed, doc: "methods whose requests are concerned")
        methods = listed.map(\.value)
        for method in listed where method.value.isSafe {
            options.fail(
                at: "methods", in: method.location,
                "\"\(method.value)\" is safe to repeat and needs no key (RFC 9110 §9.2.1)")
        }
        options.read("required", into: &required, doc: "answers such requests without a key with 400")
        options.read(
            "ttl", into: &rules.ttl, in: .seconds(1) ... .seconds(30 * 86400),
            doc: "how long a response answers repetitions")
        options.read(
            "maxBody", into: &rules.maxBody, in: .bytes(1) ... .mebibytes(4),
            doc: "maximum content of a request with a key, and of a response that is stored")
        options.read(
            "lock", into: &rules.lock, in: .seconds(1) ... .seconds(3600),
            doc: "how long a key stays taken if a request that was sent has no response")
    }
}
