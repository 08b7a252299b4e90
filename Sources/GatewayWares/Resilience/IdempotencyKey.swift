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

    /// Keeps responses in `store`, or in `server` if gateways share one.
    public init(store: any CacheStore, server: (any IdempotencyServer)? = nil) {
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
        let values = request.fields.values(of: header)
        guard let value = values.first else {
            guard required else { return .pass }
            exchange.note("rejected: no \(header)", asDecision: true)
            return .abort(with: .problem(.badRequest, "the request needs the field \(header)"))
        }
        guard values.count == 1, !value.isEmpty, value.utf8.count <= IdempotencyKey.longest else {
            exchange.note("rejected: \(header) is invalid", asDecision: true)
            return .abort(
                with: .problem(
                    .badRequest,
                    "\(header) must be one value of 1 to \(IdempotencyKey.longest) bytes"))
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
            if idempotency.store.isReady { return claim(key, content, idempotency, exchange) }
            return .wait { request, exchange in
                let end = exchange.now + IdempotencyKey.patience
                while !idempotency.store.isReady {
                    guard exchange.now < end else { return self.refuseForStore(exchange) }
                    try await exchange.sleep(for: IdempotencyKey.pause)
                }
                return self.claim(key, content, idempotency, exchange)
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
                return self.decide(answer, lease, content, exchange)
            }
        }
    }

    /// The key together with the target's authority and the client's identity, so that clients cannot use each other's
    /// keys.
    private static func key(_ value: String, _ request: borrowing HttpRequest, in exchange: Exchange) -> Digest256 {
        let share = exchange.isShare ? exchange.service ?? "" : ""
        let place = Digest256(of: [
            "\(request.scheme)", request.authority?.description.lowercased() ?? "", share, value,
        ])
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

    // MARK: Keys of this gateway

    private func claim(
        _ key: Digest256, _ content: Digest256, _ idempotency: LocalIdempotency, _ exchange: Exchange
    ) -> Verdict {
        switch idempotency.claim(key, content, at: exchange.now) {
        case .held(let other, let time): return refuse(other == content, for: time, exchange)
        case .answered(let stored): return answer(stored, content, exchange)
        case .full: return refuseForStore(exchange)
        case .taken: break
        }
        let turn = begin(.local(idempotency, key), content, exchange)
        let now = exchange.wallNow
        switch idempotency.store.find(LocalIdempotency.key(key), where: { _ in true }) {
        case .none: return .pass
        case .response(let stored):
            guard IdempotencyKey.isValid(stored, at: now) else { return .pass }
            turn.fail(in: exchange)
            return answer(stored, content, exchange)
        case .mustWait:
            return .wait { _, exchange in
                let found = await idempotency.store.load(LocalIdempotency.key(key))
                guard !turn.isOver else { return .pass }
                // A response is stored but cannot be read, so it is not known whether the request was processed.
                guard let stored = found.first else {
                    turn.fail(in: exchange)
                    return self.refuseForStore(exchange)
                }
                guard IdempotencyKey.isValid(stored, at: exchange.wallNow) else { return .pass }
                turn.fail(in: exchange)
                return self.answer(stored, content, exchange)
            }
        }
    }

    private static func isValid(_ stored: StoredResponse, at now: WallTime) -> Bool {
        stored.age(at: now) / 1_000_000_000 < Int64(stored.rules.lifetime)
    }

    private func begin(
        _ place: IdempotencyTurn.Place, _ content: Digest256, _ exchange: Exchange
    ) -> IdempotencyTurn {
        let turn = IdempotencyTurn(place, content, rules, counts, beside: exchange.sharer)
        exchange[Turn.self] = turn
        exchange.sharer = turn
        exchange.onEnd { turn.fail(in: $0) }
        return turn
    }

    // MARK: Keys that gateways share

    private func decide(
        _ claim: IdempotencyClaim?, _ lease: SharedLease, _ content: Digest256, _ exchange: Exchange
    ) -> Verdict {
        switch claim {
        case .taken:
            lease.begin()
            _ = begin(.shared(lease), content, exchange)
            return .pass
        case .held(let other, let time): return refuse(other == content, for: time, exchange)
        case .answered(let other, let bytes):
            guard other == content else { return refuse(false, for: nil, exchange) }
            if bytes.isEmpty { return refuseUnstored(exchange) }
            guard let record = IdempotencyRecord(bytes) else { return refuseForStore(exchange) }
            return answer(StoredResponse(record.head, content: .bytes(record.content)), content, exchange)
        case nil:
            // The key may have been taken, with the answer arriving too late.
            lease.free()
            return refuseForStore(exchange)
        }
    }

    // MARK: Answers

    private func answer(_ stored: StoredResponse, _ content: Digest256, _ exchange: Exchange) -> Verdict {
        let tags = stored.tags
        guard tags.first == content.hex else { return refuse(false, for: nil, exchange) }
        if tags.contains(IdempotencyTurn.marker) { return refuseUnstored(exchange) }
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
        exchange.note("rejected: the response was too large to be stored", asDecision: true)
        return .abort(
            with: .problem(
                .conflict, "a request with this \(header) was answered, and its response was too large to be stored"))
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
            A client that does not know whether its request arrived sends it again with the same `Idempotency-Key`. The first
            request goes upstream; later ones get its response, with `Idempotency-Replayed: true`, for as long as `ttl`. Every
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

            `store` names a store in memory, on disk or in Redis. Use one of its own, so that cached responses do not displace
            these: a response that was displaced, or lost at a restart, is not known any more, and its request is sent again.
            With Redis, all gateways that name the store share the keys. If the store does not answer, requests with a key are
            answered with 503. At most 10,000 requests with a key are under way in one gateway without Redis. The metric
            `httpware_idempotent_requests_total` counts requests by result.
            """#,
        otherNames: ["idempotency", "idempotent", "idempotencyKeys"])

    public init(options: inout OptionsReader) {
        var store: NamedStore?
        options.readStore("store", into: &store, doc: "store of the responses: memory, or the name of one")
        // Without a configuration, no store can be found. That is reported as an error already.
        let found = store ?? NamedStore(.builtin)
        self.init(store: found.store, server: found.server as? any IdempotencyServer)
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
