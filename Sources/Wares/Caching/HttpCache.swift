public import HttpCaching
public import HttpWare

/// Answers requests from stored responses, and stores responses, as RFC 9111 has it.
///
/// | option                 | type                          | default | allowed |
/// |------------------------|-------------------------------|---------|---------|
/// | `store`                | name under `stores`           | `memory` |        |
/// | `maxObject`            | byte count                    | `8MiB`  | 1KiB … 1TiB |
/// | `mode`                 | `shared`, `private`           | `shared` |        |
/// | `methods`              | list of `GET`, `HEAD`         | `[GET, HEAD]` |   |
/// | `key`                  | `path`, `headers`, `query`, `ignoreQuery` | the target URI | |
/// | `heuristic`            | `ratio`, `max`                | `{ratio: 0.1, max: 24h}` | |
/// | `staleWhileRevalidate` | duration                      | what responses say | |
/// | `staleIfError`         | duration                      | what responses say | |
/// | `staleOnDisconnect`    | boolean                       | `false` |         |
/// | `invalidateOnUnsafe`   | boolean                       | `true`  |         |
/// | `collapse`             | boolean                       | `true`  |         |
/// | `targeted`             | list of field names           | `[CDN-Cache-Control]` | |
/// | `tags`                 | field name                    | `Cache-Tag` |     |
/// | `status`               | boolean                       | `true`  |         |
/// | `setCookie`            | `strip`, `pass`, `store`      | `strip` |         |
public struct HttpCache: Middleware, Postware {
    /// Where responses are kept.
    public var store: any CacheStore
    /// The most content of a response that is stored.
    public var maxObject: ByteCount = .mebibytes(8)
    /// The methods whose requests are answered from the store.
    public var methods: [HttpMethod] = [.get, .head]
    /// How keys are made.
    public var keyRule = CacheKeyRule()
    /// Request fields whose values tell responses apart, whatever `Vary` says.
    public var keyFields: [FieldName] = []
    public var policy = CachePolicy()
    /// Requests with unsafe methods take away what is stored for their target. RFC 9111 §4.4.
    public var invalidatesOnUnsafe = true
    /// Requests for what is on its way already wait for it.
    public var collapses = true
    /// Whether responses say in `Cache-Status` what was done. RFC 9211.
    public var emitsStatus = true
    /// Where responses name tags by which they can be purged.
    public var tagField: FieldName = "Cache-Tag"
    /// Each response is validated before it answers, and nothing is stored that cannot be.
    var alwaysValidates = false
    /// What is on its way for several.
    let collapsed: CollapsedRequests

    /// The longest that a request waits for another one's response before it goes itself.
    static let collapseTimeout = Duration.seconds(5)
    private static let mostFollowers = 10_000
    /// Parts are put together that are no longer than this, in bytes.
    static let mostJoined = 32 << 20

    public var failsOpen: Bool { true }
    public var holdsState: Bool { true }

    public init(store: any CacheStore, maxObject: ByteCount = .mebibytes(8)) {
        self.store = store
        self.maxObject = maxObject
        collapsed = CollapsedRequests(mostFollowers: HttpCache.mostFollowers, window: maxObject.bytes)
    }

    // MARK: Requests

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        guard methods.contains(request.method) else { return pass(unanswerable: request, in: exchange) }
        guard request.content.isEmpty, request.upgrade == nil, !Preconditions.areForOrigin(request.fields),
            let key = key(for: request, in: exchange)
        else {
            exchange.cacheResult = .bypass
            exchange.note(CacheNotes.bypass(request, hasKey: request.hasPath))
            return .pass
        }
        let asked = CacheQuestion(
            key: key, wishes: exchange[CacheWishes.self] ?? RequestDirectives(request.fields),
            closings: collapsed.closings)
        let found = find(key, &request, exchange)
        guard case .mustWait = found else { return decide(found, consume asked, &request, exchange) }
        return .wait { [asked] request, exchange in
            let stored = await self.store.load(key)
            let now = exchange.wallNow
            var known = VaryKey.Known()
            let (meant, part) = withUnsafeMutablePointer(to: &request) { request in
                let meant =
                    stored.first { self.isMeant($0, request, now, &known) }
                    ?? self.preferredLanguage(request).flatMap { language in
                        stored.first { self.isMeant($0, request, speaking: language) }
                    }
                return (meant, meant == nil ? stored.first { self.isCompletable($0, request) } : nil)
            }
            var asked = asked
            if let part, asked.mayShare(request) { asked.completing = part }
            let found = meant.map { Found.response($0) } ?? .none(hasOthers: !stored.isEmpty)
            return self.decide(found, asked, &request, exchange)
        }
    }

    /// The key of the request; in a private cache that of its sender, too.
    private func key(for request: borrowing HttpRequest, in exchange: Exchange) -> CacheKey? {
        keyRule.key(
            for: request, of: policy.mode == .shared ? nil : CacheIdentity.digest(request, in: exchange))
    }

    /// By the request's address, for which it is `inout`: a closure that knows the request would have a copy made of it.
    private func find(_ key: CacheKey, _ request: inout HttpRequest, _ exchange: Exchange) -> Found {
        var known = VaryKey.Known()
        return withUnsafeMutablePointer(to: &request) { request in
            let found = store.find(key) { isMeant($0, request, exchange.wallNow, &known) }
            guard case .none(hasOthers: true) = found, let language = preferredLanguage(request) else { return found }
            return store.find(key) { isMeant($0, request, speaking: language) }
        }
    }

    private func isMeant(
        _ stored: StoredResponse, _ request: UnsafePointer<HttpRequest>, _ now: WallTime,
        _ known: inout VaryKey.Known
    ) -> Bool {
        (stored.vary.names.isEmpty || stored.vary.matches(request.pointee.fields, &known))
            && (stored.part == nil
                || StoredAnswer.serves(stored, request.pointee.method, request.pointee.fields, now: now))
    }

    /// The language by which a response is selected where none answers the request's fields as they are written; `nil` where the
    /// configuration says that their text tells responses apart.
    private func preferredLanguage(_ request: UnsafePointer<HttpRequest>) -> PreferredLanguage? {
        keyFields.contains(.acceptLanguage) ? nil : PreferredLanguage(request.pointee.fields)
    }

    private func isMeant(
        _ stored: StoredResponse, _ request: UnsafePointer<HttpRequest>, speaking language: PreferredLanguage
    ) -> Bool { stored.part == nil && language.selects(stored, for: request.pointee.fields) }

    /// A part that is stored of what the request asks for whole.
    private func findPart(_ key: CacheKey, _ request: inout HttpRequest) -> StoredResponse? {
        let found = withUnsafeMutablePointer(to: &request) { request in
            store.find(key) { isCompletable($0, request) }
        }
        return if case .response(let part) = found { part } else { nil }
    }

    /// A request of another method goes on; what it may change is remembered.
    private func pass(unanswerable request: HttpRequest, in exchange: Exchange) -> Verdict {
        exchange.cacheResult = .bypass
        exchange.note("not for the cache: \(request.method.name) is not answered from stored responses")
        guard !request.method.isSafe, let key = key(for: request, in: exchange) else { return .pass }
        var asked = CacheQuestion(key: key, wishes: RequestDirectives(request.fields))
        asked.forward = .method
        exchange[CacheTurn.Key.self] = CacheTurn(request, asked, in: exchange, collapsed, leads: nil) {
            [keyRule] reference in
            guard let plain = keyRule.key(for: reference, from: request), let own = keyRule.key(for: request) else {
                return nil
            }
            // In a private cache the key goes on with who asks.
            return CacheKey(plain.bytes + key.bytes.dropFirst(own.bytes.count))
        }
        return .pass
    }

    /// Answers with what was found, or sends the request on.
    private func decide(
        _ found: Found, _ asked: consuming CacheQuestion, _ request: inout HttpRequest, _ exchange: Exchange
    ) -> Verdict {
        switch found {
        case .response(let response):
            let now = exchange.wallNow
            let age = response.age(at: now)
            var reuse = Reuse.decide(
                age: age, rules: rules(of: response, for: request), request: asked.wishes, policy: policy)
            if alwaysValidates, !asked.wishes.onlyIfCached { reuse = .validate(.isStale) }
            switch reuse {
            case .fresh, .stale: return answer(response, age, now, request, exchange)
            case .staleWhileRevalidating:
                revalidate(response, asked.key, request, exchange)
                return answer(response, age, now, request, exchange)
            case .validate(let reason):
                asked.forward = reason == .request ? .request : .stale
                if response.part == nil {
                    asked.validated = response
                    // Nothing to ask by: it is asked for anew.
                    if response.validators.isEmpty { asked.forward = .stale }
                }
            }
        case .none(let hasOthers):
            asked.forward = hasOthers ? .varyMiss : .uriMiss
            if hasOthers, asked.completing == nil, asked.mayShare(request) {
                asked.completing = findPart(asked.key, &request)
            }
            if asked.completing != nil { asked.forward = .partial }
        case .mustWait: asked.forward = .bypass
        }
        if asked.wishes.onlyIfCached {
            exchange.cacheResult = .miss
            exchange.note("only-if-cached, and nothing is stored that will do")
            return .abort(with: .problem(.gatewayTimeout, "the request asks for a stored response, and there is none"))
        }
        return goOn(consume asked, &request, exchange)
    }

    /// What decides about its reuse for this request: in a shared cache a guessed lifetime does not count for a request with a
    /// cookie, whose sender may be sent something else.
    private func rules(of stored: StoredResponse, for request: borrowing HttpRequest) -> ReuseRules {
        var rules = stored.rules
        if rules.isHeuristic, policy.mode == .shared, CacheIdentity.hasCookie(request.fields) { rules.lifetime = 0 }
        return rules
    }

    /// The answer that a stored response gives.
    private func answer(
        _ stored: StoredResponse, _ age: Int64, _ now: WallTime, _ request: HttpRequest, _ exchange: Exchange
    ) -> Verdict {
        var status = CacheStatus()
        status.isHit = true
        let ttl = Int64(stored.rules.lifetime) - age / 1_000_000_000
        status.ttl = ttl
        exchange.cacheResult = ttl > 0 ? .hit : .stale
        exchange.note(ttl > 0 ? "hit" : "stale", asDecision: true)
        return .abort(with: answer(stored, age, now, request, status))
    }

    private func answer(
        _ stored: StoredResponse, _ age: Int64, _ now: WallTime, _ request: HttpRequest, _ status: CacheStatus
    ) -> HttpResponse {
        var response = StoredAnswer.make(stored, for: request.method, request.fields, age: age, now: now)
        tell(status, in: &response)
        return response
    }

    func tell(_ status: CacheStatus, in response: inout HttpResponse) {
        if emitsStatus { status.append(to: &response.fields) }
    }

    // MARK: Going upstream

    /// Sends the request on, unless another one's response is on its way that will do.
    private func goOn(
        _ asked: consuming CacheQuestion, _ request: inout HttpRequest, _ exchange: Exchange
    ) -> Verdict {
        guard collapses, asked.mayShare(request) else { return lead(consume asked, &request, exchange) }
        let shared = CacheIdentity.key(asked.key, for: request, in: exchange)
        let role = collapsed.join(shared, exchange, waiting: HttpCache.collapseTimeout)
        if case .follow(let follower) = role {
            return .wait(for: follower) { [asked, shared] request, exchange in
                self.follow(follower, shared, asked, &request, exchange)
            }
        }
        guard case .lead = role else { return lead(consume asked, &request, exchange) }
        // What came in between is there now: the leader before stored it, then made room for this one.
        if asked.closings != collapsed.closings, asked.validated == nil,
            case .response(let found) = find(asked.key, &request, exchange)
        {
            collapsed.close(shared)?.release(.stored(found))
            return decide(.response(found), consume asked, &request, exchange)
        }
        return lead(consume asked, &request, exchange, place: consume shared)
    }

    /// The request goes upstream, with what asks whether the stored response still holds. Others follow it in its place, if it has
    /// one, and have what is there of the response.
    private func lead(
        _ asked: consuming CacheQuestion, _ request: inout HttpRequest, _ exchange: Exchange,
        place: consuming CacheKey? = nil, _ response: CollapsedResponse? = nil
    ) -> Verdict {
        let turn = CacheTurn(request, consume asked, in: exchange, collapsed, leads: consume place, response)
        request.sendNormalTarget(keepsPath: keyRule.path == .received)
        CacheValidation.removeTwins(in: &request)
        if let stored = turn.validated { CacheValidation.ask(about: stored, in: &request) }
        if let part = turn.asked.completing { askForRest(of: part, turn, &request) }
        if !turn.isOver { turn.lead(exchange) }
        exchange.cacheResult = .miss
        exchange.note(CacheNotes.miss(turn.asked), asDecision: true)
        exchange[CacheTurn.Key.self] = turn
        return .pass
    }

    /// Decides behind the request whose response will do, too.
    private func follow(
        _ follower: CollapsedResponse.Follower, _ shared: CacheKey,
        _ asked: CacheQuestion, _ request: inout HttpRequest, _ exchange: Exchange
    ) -> Verdict {
        let outcome = follower.leave()
        let response = follower.response
        var status = CacheStatus()
        status.forward = asked.forward
        status.isCollapsed = true
        switch outcome {
        case .begins(let head):
            guard head.isFailure || head.vary.matches(request.fields) else {
                var asked = asked
                asked.forward = .varyMiss
                return lead(asked, &request, exchange)
            }
            guard var answer = response.answer(head) else { return lead(asked, &request, exchange) }
            exchange.cacheResult = .collapsed
            exchange.note("collapsed", asDecision: true)
            tell(status, in: &answer)
            return .abort(with: answer)
        case .stored(let stored):
            let now = exchange.wallNow
            exchange.cacheResult = .collapsed
            exchange.note("collapsed", asDecision: true)
            return .abort(with: answer(stored, stored.age(at: now), now, request, status))
        case .goAlone:
            // What was waited for may be in the store by now, or may have become fresh there.
            if case .response(let stored) = find(asked.key, &request, exchange) {
                let now = exchange.wallNow
                let age = stored.age(at: now)
                let rules = rules(of: stored, for: request)
                if Reuse.decide(age: age, rules: rules, request: asked.wishes, policy: policy) == .fresh {
                    return answer(stored, age, now, request, exchange)
                }
            }
            return lead(asked, &request, exchange)
        case .lead: return lead(asked, &request, exchange, place: shared, response)
        }
    }

    /// Asks in the background whether a stale response still holds, once at a time.
    private func revalidate(
        _ stored: StoredResponse, _ key: CacheKey, _ request: HttpRequest, _ exchange: Exchange
    ) {
        let shared = CacheIdentity.key(key, for: request, in: exchange)
        guard case .lead = collapsed.join(shared, at: exchange.now) else { return }
        var plain = request
        plain.method = .get
        for name in CacheValidation.conditions { plain.fields.remove(name) }
        var asked = CacheQuestion(key: key, wishes: RequestDirectives())
        asked.validated = stored
        asked.forward = .stale
        let turn = CacheTurn(plain, asked, in: exchange, collapsed, leads: shared)
        plain.sendNormalTarget(keepsPath: keyRule.path == .received)
        CacheValidation.removeTwins(in: &plain)
        CacheValidation.ask(about: stored, in: &plain)
        if !exchange.startBackground(plain, to: CacheRevalidation(self, turn)) { turn.abandon() }
    }
}

extension HttpCache: ConfigurableWare {
    public static let name: WareName = "httpCache"
    public static let about = WareAbout(
        "Answers from stored responses, and stores responses.",
        source: "RFC 9111, RFC 5861, RFC 8246, RFC 9211, RFC 9213",
        example: #"""
            - httpCache: { maxObject: 1MiB, staleWhileRevalidate: 30s, staleIfError: 1h }
            """#,
        details: #"""
            What may be stored, how long it is fresh, and which requests it answers is decided as RFC 9111 says, for a cache that
            several users share, or (`mode: private`) for one that keeps apart what belongs to different ones. A response that does
            not say how long it stays fresh is fresh for `heuristic.ratio` of the time since it was modified, at most
            `heuristic.max`. `CDN-Cache-Control`, or what `targeted` names, is obeyed in place of `Cache-Control`.

            Requests for what is on its way already wait for it, up to 5s, and are sent it as it comes. If the first one fails, one of
            them tries again; a second failure is for all that wait. A request with `Authorization`,
            `Cookie`, a client certificate or another principal shares only with requests of the same sender.

            A stale response is used where it says so, or where `staleWhileRevalidate` and `staleIfError` say it in its place: while it
            is validated in the background, and when the origin server fails. It never is where it says `must-revalidate`,
            `proxy-revalidate`, `s-maxage` or `no-cache`.

            With `staleOnDisconnect` it is used, however old, also when the origin server cannot be reached or closes the connection
            before it answers.

            Ranges are answered from whole responses, and from stored parts. If a part is stored that begins or ends the
            representation, a request for all of it asks upstream for the rest only; parts are put together only if a strong
            validator says that they are of the same bytes. Conditional requests are answered from the store. A response to
            `Vary: Accept-Language` also answers requests that prefer its `Content-Language` to all others. An unsafe request that
            succeeds takes away what is stored for its target. `Cache-Status` tells what was done.

            A response with `Set-Cookie` is stored without that field (`setCookie: strip`); a private cache keeps the field in what it
            stores for one person alone. `pass` does not store the response; `store` keeps the field for all, and draws a warning.
            Without an explicit lifetime such a response is never stored. In a shared cache no lifetime is guessed for requests with
            `Cookie`.

            What is not answered from the store goes upstream with the path and the `Host` as the key has them: `/p%61ge` as `/page`.
            The query stays as received. With `key.path: received` the path as received is part of the key, and goes upstream, for
            origin servers that check signatures over it. In `key.query` and `key.ignoreQuery` names are compared decoded; a parameter
            that holds `;` is always part of the key.
            """#)

    public init(options: inout OptionsReader) {
        var maxObject = ByteCount.mebibytes(8)
        options.read(
            "maxObject", into: &maxObject, in: .kibibytes(1) ... .gibibytes(1024),
            doc: "the most content of a response that is stored")
        var named: NamedStore?
        options.readStore("store", into: &named, doc: "where responses are kept")
        self.init(store: named?.store ?? MemoryStore(limit: StoreDefinition.builtinSize), maxObject: maxObject)
        options.read("mode", into: &policy.mode, doc: "for whom responses are stored")
        options.read("methods", into: &methods, doc: "the methods whose requests are answered")
        if methods.contains(where: { $0 != .get && $0 != .head }) {
            options.fail(
                at: "methods", "holds another method than GET and HEAD, the only ones that are answered from a cache")
        }
        options.read("key", doc: "what tells stored responses apart") {
            $0.read("path", into: &keyRule.path, doc: "the form of the path, in the key and upstream")
            $0.read("headers", into: &keyFields, doc: "request fields, beside those that Vary names")
            $0.read("query", into: &keyRule.query, doc: "the only query parameters that count")
            $0.read("ignoreQuery", into: &keyRule.ignoredQuery, doc: "query parameters that do not count")
        }
        options.read("heuristic", doc: "how long a response is fresh that does not say so") {
            var ratio = Ratio(policy.heuristicRatio)
            var most = Duration.seconds(policy.heuristicLimit)
            $0.read("ratio", into: &ratio, doc: "of the time since it was modified")
            $0.read("max", into: &most, in: .zero ... .seconds(31_536_000), doc: "the longest")
            policy.heuristicRatio = ratio.value
            policy.heuristicLimit = most.components.seconds
        }
        var whileRevalidate: Duration?
        var ifError: Duration?
        let year = Duration.zero ... .seconds(31_536_000)
        options.read(
            "staleWhileRevalidate", into: &whileRevalidate, in: year,
            doc: "how long a stale response may be used while it is validated, where it does not say")
        options.read(
            "staleIfError", into: &ifError, in: year,
            doc: "how long a stale response may be used when the origin server fails, where it does not say")
        policy.staleWhileRevalidate = whileRevalidate?.components.seconds
        policy.staleIfError = ifError?.components.seconds
        options.read(
            "staleOnDisconnect", into: &policy.staleOnDisconnect,
            doc: "use stale responses of any age when the origin server cannot be reached")
        options.read("invalidateOnUnsafe", into: &invalidatesOnUnsafe, doc: "unsafe requests take away what is stored")
        options.read("collapse", into: &collapses, doc: "requests for what is on its way wait for it")
        options.read("targeted", into: &policy.targeted, doc: "fields obeyed in place of Cache-Control")
        options.read("tags", into: &tagField, doc: "the field that names tags to purge by")
        options.read("status", into: &emitsStatus, doc: "tell in Cache-Status what was done")
        options.read("setCookie", into: &policy.setCookie, doc: "what becomes of responses that set cookies")
        if policy.setCookie == .store {
            options.warn(
                at: "setCookie",
                "each client that a stored response answers is sent the cookie of the first; write strip")
        }
    }
}
