import HttpCaching
public import HttpWare

/// Sends only one of several identical concurrent requests upstream, and shares its response among them.
public struct Coalesce: Middleware, Postware {
    /// The methods whose requests wait for each other.
    public var methods: [HttpMethod]
    /// The maximum wait for the response of another request, before a request goes upstream itself.
    public var timeout: Duration
    /// The maximum number of requests that wait behind one request.
    public let maxWaiters: Int
    /// The maximum content that is buffered for clients that read more slowly; a client further behind is disconnected.
    public let maxBody: ByteCount
    private let requests: CollapsedRequests
    private let varying = KnownVary()

    public var failsOpen: Bool { true }
    public var holdsState: Bool { true }

    /// Makes the ware, with a table of shared requests of its own.
    public init(
        methods: [HttpMethod] = [.get, .head], timeout: Duration = .seconds(5), maxWaiters: Int = 1000,
        maxBody: ByteCount = .mebibytes(8)
    ) {
        self.methods = methods
        self.timeout = timeout
        self.maxWaiters = maxWaiters
        self.maxBody = maxBody
        requests = CollapsedRequests(mostFollowers: maxWaiters, window: maxBody.bytes)
    }

    // MARK: Requests

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        guard methods.contains(request.method), request.content.isEmpty, request.upgrade == nil,
            // A cache further out leads the request already.
            exchange.sharer == nil, Coalesce.isPlain(request.fields), !exchange.isForItsClientAlone(request),
            let target = Coalesce.keyRule.key(for: request, share: CacheIdentity.share(in: exchange))
        else { return .pass }
        var key = CacheIdentity.key(target, for: request, in: exchange)
        let names = varying.names(of: target)
        let method = request.method
        let claims = UrlClaims.bytes(of: request, in: exchange)
        if !names.isEmpty || method != .get || claims != nil {
            var variant = ByteWriter()
            variant.add(Array(method.name.utf8))
            for name in names {
                let values = request.fields.rawValues(of: name)
                variant.add(Array(name.lowercased.utf8))
                variant.add(UInt32(clamping: values.count))
                for value in values { variant.add(value) }
            }
            // No name is empty.
            if let claims {
                variant.add([])
                variant.add(claims)
            }
            key = key.of(variant: variant.bytes)
        }
        switch requests.join(key, exchange, waiting: timeout) {
        case .alone: return .pass
        case .lead: return lead(CollapsedLead(requests, key), target, request, exchange)
        case .follow(let follower):
            return .wait(for: follower) { request, exchange in
                switch follower.leave() {
                case .begins(let head):
                    guard let answer = follower.take(head, for: request.fields) else { return .pass }
                    exchange.note("coalesced", asDecision: true)
                    return .abort(with: answer)
                case .lead:
                    return self.lead(follower.lead(), target, request, exchange)
                case .goAlone, .stored: return .pass
                }
            }
        }
    }

    /// The target goes upstream as it was received, so only requests with the same bytes are equal.
    private static let keyRule = CacheKeyRule(path: .received)

    /// Whether another request's response can answer this one: the request has no range and no conditions of its own.
    private static func isPlain(_ fields: HttpFields) -> Bool {
        !Preconditions.areConditional(fields) && !Preconditions.areForOrigin(fields) && !fields.contains(.range)
            && RequestDirectives(fields) == RequestDirectives()
    }

    private func lead(
        _ lead: CollapsedLead, _ target: CacheKey, _ request: HttpRequest, _ exchange: Exchange
    ) -> Verdict {
        lead.lead(exchange)
        exchange[Turn.self] = Turn.Value(lead: lead, target: target, fields: request.fields)
        return .pass
    }

    private enum Turn: ExchangeKey {
        struct Value {
            let lead: CollapsedLead
            let target: CacheKey
            let fields: HttpFields
        }
    }

    // MARK: Responses

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        guard let turn = exchange[Turn.self].take() else { return .pass }
        let lead = turn.lead
        let isFailure = exchange.responder == .gateway || response.status.code >= 500
        if isFailure, lead.passOn() { return .pass }
        let vary = VaryKey(response.fields, of: turn.fields)
        guard let vary, isFailure || Coalesce.isForAll(response), !exchange.isForItsClientAlone else {
            lead.refuse(at: exchange.now)
            return .pass
        }
        varying.note(vary.names, of: turn.target)
        guard !lead.isOver else { return .pass }
        var shared = response
        if exchange.request?.method == .head { shared.content = .none }
        lead.beginResponse(CollapsedResponse.Head(shared, vary: vary, isFailure: isFailure))
        if shared.content.isEmpty {
            lead.finish(isWhole: true)
        } else {
            exchange.filterResponseContent(with: CollapsedFilter(lead))
            exchange.onEnd { _ in lead.finish(isWhole: false) }
        }
        return .pass
    }

    /// Whether the response is not meant for one client alone.
    private static func isForAll(_ response: HttpResponse) -> Bool {
        let directives = ResponseDirectives(response.fields.values(of: .cacheControl))
        return !directives.noStore && directives.isPrivate == .nothing && !response.fields.contains(.setCookie)
            && ![.notModified, .partialContent, .upgradeRequired].contains(response.status)
    }
}

/// Which request fields the responses of a target were found to vary by. From any thread: guarded by a lock.
private final class KnownVary: Sendable {
    private let names = ThreadLock<[CacheKey: [FieldName]]>([:])
    /// If more targets than this are known, all are forgotten and learned again.
    private static let most = 10_000

    func names(of target: CacheKey) -> [FieldName] { names.withLock { $0.isEmpty ? [] : $0[target] ?? [] } }

    func note(_ found: [FieldName], of target: CacheKey) {
        names.withLock { names in
            if found.isEmpty {
                if !names.isEmpty { names[target] = nil }
            } else {
                if names.count >= KnownVary.most { names.removeAll() }
                names[target] = found
            }
        }
    }
}

extension Coalesce: AnsweringWare {
    public var storesResponses: Bool { true }
}

extension Coalesce: ConfigurableWare {
    public static let name: WareName = "coalesce"
    public static let chainPlace: ChainPlace? = .coalescing
    public static let orderRisks = [OrderRisk].ofSharedResponses
    public static let about = WareAbout(
        "Sends only one of several identical concurrent requests upstream, and shares its response among them.",
        source: "RFC 9111 §4, RFC 9110 §9.2",
        example: #"""
            - coalesce: { timeout: 2s }
            """#,
        details: #"""
            Requests are identical if they have the same method, the same target (byte for byte), the same
            `Authorization`, `Cookie`, client certificate and principals, and the same values of the fields that the
            target's responses vary by. Requests that arrive while an identical one is in progress wait for its
            response, and receive it as it arrives, in all loops. Conditional requests, range requests and requests with
            cache directives are not shared.

            A response with `private`, `no-store` or `Set-Cookie` is not shared: the waiting requests then go upstream
            themselves, and for ten seconds no request waits for that target. Nothing is shared with a client that
            authenticates its connection (NTLM, Negotiate). If the first request fails, one of the
            others tries again; if that fails as well, all of them fail. The ware does not act on requests that
            `httpCache` already collapses.
            """#,
        otherNames: ["collapse", "singleFlight", "requestCollapsing"])

    public init(options: inout OptionsReader) {
        let usual = Coalesce()
        var methods = usual.methods
        var timeout = usual.timeout
        var maxWaiters = usual.maxWaiters
        var maxBody = usual.maxBody
        options.read("methods", into: &methods, doc: "methods whose identical requests are shared: GET, HEAD or both")
        if methods.contains(where: { $0 != .get && $0 != .head }) {
            options.fail(
                at: "methods", "lists a method other than GET and HEAD; only their responses are shared")
        }
        options.read(
            "timeout", into: &timeout, in: .milliseconds(1) ... .seconds(3600),
            doc: "maximum time that a request waits for the shared response before it goes upstream itself")
        options.read(
            "maxWaiters", into: &maxWaiters, in: 1...1_000_000,
            doc: "maximum number of requests that wait for one shared response")
        options.read(
            "maxBody", into: &maxBody, in: .kibibytes(1) ... .gibibytes(1),
            doc: "maximum content buffered for clients that read more slowly; a client further behind is disconnected")
        self.init(methods: methods, timeout: timeout, maxWaiters: maxWaiters, maxBody: maxBody)
    }
}
