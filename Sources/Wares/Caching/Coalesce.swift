import HttpCaching
public import HttpWare

/// Sends one of several equal requests upstream, and its response to all of them.
///
/// | option       | type                  | default       | allowed     |
/// |--------------|-----------------------|---------------|-------------|
/// | `methods`    | list of `GET`, `HEAD` | `[GET, HEAD]` |             |
/// | `timeout`    | duration              | `5s`          | 1ms … 1h    |
/// | `maxWaiters` | whole number          | `1000`        | 1 … 1000000 |
/// | `maxBody`    | byte count            | `8MiB`        | 1KiB … 1GiB |
public struct Coalesce: Middleware, Postware {
    /// The methods whose requests wait for each other.
    public var methods: [HttpMethod]
    /// The longest that one waits for the response of another, before it goes itself.
    public var timeout: Duration
    private let requests: CollapsedRequests
    private let varying = KnownVary()

    public var failsOpen: Bool { true }
    public var holdsState: Bool { true }

    /// At most `maxWaiters` wait behind one request; one of them that is more than `maxBody` behind is cut off.
    public init(
        methods: [HttpMethod] = [.get, .head], timeout: Duration = .seconds(5), maxWaiters: Int = 1000,
        maxBody: ByteCount = .mebibytes(8)
    ) {
        self.methods = methods
        self.timeout = timeout
        requests = CollapsedRequests(mostFollowers: maxWaiters, window: maxBody.bytes)
    }

    // MARK: Requests

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        guard methods.contains(request.method), request.content.isEmpty, request.upgrade == nil,
            // A cache further out leads it already.
            exchange.sharer == nil, Coalesce.isPlain(request.fields),
            let target = Coalesce.keyRule.key(for: request)
        else { return .pass }
        var key = CacheIdentity.key(target, for: request, in: exchange)
        let names = varying.names(of: target)
        let method = request.method
        if !names.isEmpty || method != .get {
            var bytes = key.bytes + "\n\(method)".utf8
            for name in names {
                bytes += "\n\(name.text)".utf8
                for value in request.fields.rawValues(of: name) { bytes += " \(value.count) ".utf8 + value }
            }
            key = CacheKey(bytes)
        }
        switch requests.join(key, exchange, waiting: timeout) {
        case .alone: return .pass
        case .lead: return lead(CollapsedLead(requests, key), target, request, exchange)
        case .follow(let follower):
            return .wait(for: follower) { request, exchange in
                switch follower.leave() {
                case .begins(let head):
                    guard head.isFailure || head.vary.matches(request.fields),
                        let answer = follower.response.answer(head)
                    else { return .pass }
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

    /// Whether another one's response would do: it asks for no part, and has no conditions of its own.
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
        guard let vary, isFailure || Coalesce.isForAll(response) else {
            lead.refuse(at: exchange.now)
            return .pass
        }
        varying.note(vary.names, of: turn.target)
        guard !lead.isOver else { return .pass }
        var shared = response
        if exchange.request.method == .head { shared.content = .none }
        lead.begin(CollapsedResponse.Head(shared, vary: vary, isFailure: isFailure))
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
            && response.status != .notModified && response.status != .partialContent
    }
}

/// Which request fields the responses of a target were found to vary by. From any thread: guarded by a lock.
private final class KnownVary: Sendable {
    private let names = ThreadLock<[CacheKey: [FieldName]]>([:])
    /// More targets than this are forgotten and found out again.
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

extension Coalesce: ConfigurableWare {
    public static let name: WareName = "coalesce"
    public static let about = WareAbout(
        "Sends one of several equal requests upstream, and its response to all of them.",
        source: "RFC 9111 §4, RFC 9110 §9.2",
        example: #"""
            - coalesce: { timeout: 2s }
            """#,
        details: #"""
            Requests are equal that have the same method, the same target, byte for byte, the same `Authorization`, `Cookie`,
            client certificate and principals, and the same values of what the target's responses vary by. Those that come
            while one is on its way wait for its response, and are sent it as it
            comes, on whatever loop they are. Conditional requests, requests for parts and those with cache directives go alone.

            A response with `private`, `no-store` or `Set-Cookie` is for one alone: the others then go themselves, and for ten
            seconds none waits for that target. If the first one fails, one of the others tries again; a second failure is for all.
            A request that `httpCache` leads already is left alone.
            """#)

    public init(options: inout OptionsReader) {
        var methods: [HttpMethod] = [.get, .head]
        var timeout = Duration.seconds(5)
        var maxWaiters = 1000
        var maxBody = ByteCount.mebibytes(8)
        options.read("methods", into: &methods, doc: "the methods whose requests wait for each other")
        if methods.contains(where: { $0 != .get && $0 != .head }) {
            options.fail(
                at: "methods", "holds another method than GET and HEAD, the only ones whose responses are shared")
        }
        options.read(
            "timeout", into: &timeout, in: .milliseconds(1) ... .seconds(3600),
            doc: "the longest that a request waits before it goes itself")
        options.read("maxWaiters", into: &maxWaiters, in: 1...1_000_000, doc: "the most that wait behind one request")
        options.read(
            "maxBody", into: &maxBody, in: .kibibytes(1) ... .gibibytes(1),
            doc: "how far one may lag behind before it is cut off")
        self.init(methods: methods, timeout: timeout, maxWaiters: maxWaiters, maxBody: maxBody)
    }
}
