// One file, because the request half decides in one fixed order of questions, and the options define each comparison.

public import HttpCaching
public import HttpWare

/// Stores responses and answers repeated requests from them, by the rules of HTTP caching (RFC 9111).
public struct HttpCache: Middleware, Postware {
    /// The store of the responses.
    public var store: any CacheStore
    /// The maximum content of a response that is stored.
    public var maxObject: ByteCount
    /// The methods whose requests are answered from the store.
    public var methods: [HttpMethod] = [.get, .head]
    /// The rule for making keys.
    public var keyRule = CacheKeyRule()
    /// Request fields whose values tell responses apart, in addition to those in `Vary`.
    public var keyFields: [FieldName] = []
    /// The rules for storing and reusing responses.
    public var policy = CachePolicy()
    /// The requests that bypass the store, and whose responses are not stored; `nil` for no requests.
    public var bypass: Condition?
    /// Whether a request with an unsafe method removes the stored responses of its target. RFC 9111 §4.4.
    public var invalidatesOnUnsafe = true
    /// Whether a request waits for the response of an identical one in progress.
    public var collapses = true
    /// Whether responses carry `Cache-Status`. RFC 9211.
    public var emitsStatus = true
    /// The response field with the tags by which responses can be purged.
    public var tagField: FieldName = "Cache-Tag"
    /// Whether each response is validated before it is used. Responses without a validator are then not stored.
    var alwaysValidates = false
    /// The responses in progress that several requests share.
    let collapsed: CollapsedRequests
    /// The keys for which the origin server failed a moment ago.
    let failures = RecentFailures()

    /// The maximum wait of a request for another request's response, before it goes upstream itself.
    static let collapseTimeout = Duration.seconds(5)
    private static let mostFollowers = 10_000
    /// The maximum length of content that is joined from parts, in bytes.
    static let mostJoined = 32 << 20

    public var failsOpen: Bool { true }
    public var holdsState: Bool { true }

    /// The default maximum content of a response that is stored.
    public static let usualMaxObject = ByteCount.mebibytes(8)

    /// Makes a cache over a store; the content of a response larger than `maxObject` is not stored.
    public init(store: any CacheStore, maxObject: ByteCount = usualMaxObject) {
        self.store = store
        self.maxObject = maxObject
        collapsed = CollapsedRequests(mostFollowers: HttpCache.mostFollowers, window: maxObject.bytes)
    }

    // MARK: Requests

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        guard methods.contains(request.method) else { return pass(unanswerable: request, in: exchange) }
        if exchange.isForItsClientAlone(request) {
            exchange.cacheResult = .bypass
            exchange.note("not for the cache: the client authenticates its connection")
            return .pass
        }
        // A pattern that reaches its step limit decides nothing; the store is then not used either.
        if let bypass, (try? bypass.matches(request, in: exchange)) ?? true {
            exchange.cacheResult = .bypass
            exchange.note("not for the cache: bypass matches")
            return .pass
        }
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
                    stored.first { self.isSelected($0, request, now, &known) }
                    ?? self.preferredLanguage(request).flatMap { language in
                        stored.first { self.isSelected($0, request, speaking: language) }
                    }
                return (meant, meant == nil ? stored.first { self.isPart($0, request) } : nil)
            }
            var asked = asked
            if let part { self.found(part, &asked, request) }
            let found = meant.map { Found.response($0) } ?? .none(hasOthers: !stored.isEmpty)
            return self.decide(found, asked, &request, exchange)
        }
    }

    /// The key of the request. In a private cache it includes the sender, and on a route with `split` the share.
    /// The URL that an untrusted client claims is in it, too.
    private func key(for request: borrowing HttpRequest, in exchange: Exchange) -> CacheKey? {
        let key = keyRule.key(
            for: request, of: policy.mode == .shared ? nil : CacheIdentity.digest(request, in: exchange),
            share: CacheIdentity.share(in: exchange))
        guard let claims = UrlClaims.bytes(of: request, in: exchange) else { return key }
        return key?.of(variant: claims)
    }

    /// Finds a stored response. The request is `inout` to pass its address: a closure that captures the request would copy it.
    private func find(_ key: CacheKey, _ request: inout HttpRequest, _ exchange: Exchange) -> Found {
        var known = VaryKey.Known()
        return withUnsafeMutablePointer(to: &request) { request in
            let found = store.find(key) { isSelected($0, request, exchange.wallNow, &known) }
            guard case .none(hasOthers: true) = found, let language = preferredLanguage(request) else { return found }
            return store.find(key) { isSelected($0, request, speaking: language) }
        }
    }

    /// Whether a stored response is one for this request. RFC 9111 §4.1.
    private func isSelected(_ stored: StoredResponse, _ request: inout HttpRequest, _ now: WallTime) -> Bool {
        var known = VaryKey.Known()
        return withUnsafeMutablePointer(to: &request) { request in
            isSelected(stored, request, now, &known)
                || preferredLanguage(request).map { isSelected(stored, request, speaking: $0) } ?? false
        }
    }

    private func isSelected(
        _ stored: StoredResponse, _ request: UnsafePointer<HttpRequest>, _ now: WallTime,
        _ known: inout VaryKey.Known
    ) -> Bool {
        (stored.vary.names.isEmpty || stored.vary.matches(request.pointee.fields, &known))
            && (stored.part == nil
                || StoredAnswer.serves(stored, request.pointee.method, request.pointee.fields, now: now))
    }

    /// The client's preferred language, for selecting a response if no stored response matches the request's fields literally.
    /// `nil` if the configuration tells responses apart by the text of the field.
    private func preferredLanguage(_ request: UnsafePointer<HttpRequest>) -> PreferredLanguage? {
        keyFields.contains(.acceptLanguage) ? nil : PreferredLanguage(request.pointee.fields)
    }

    private func isSelected(
        _ stored: StoredResponse, _ request: UnsafePointer<HttpRequest>, speaking language: PreferredLanguage
    ) -> Bool { stored.part == nil && language.selects(stored, for: request.pointee.fields) }

    /// A stored part of the requested representation, which does not answer the request.
    private func findPart(_ key: CacheKey, _ request: inout HttpRequest) -> StoredResponse? {
        let found = withUnsafeMutablePointer(to: &request) { request in
            store.find(key) { isPart($0, request) }
        }
        return if case .response(let part) = found { part } else { nil }
    }

    private func isPart(_ stored: StoredResponse, _ request: UnsafePointer<HttpRequest>) -> Bool {
        stored.part != nil && stored.vary.matches(request.pointee.fields)
    }

    /// A part is stored. The request asks only for the rest if that completes the part.
    private func found(_ part: StoredResponse, _ asked: inout CacheQuestion, _ request: borrowing HttpRequest) {
        asked.forward = .partial
        if asked.mayShare(request), isCompletable(part) { asked.completing = part }
    }

    /// Passes a request with another method on, and remembers what it may change.
    private func pass(unanswerable request: HttpRequest, in exchange: Exchange) -> Verdict {
        exchange.cacheResult = .bypass
        exchange.note("not for the cache: \(request.method.name) is not answered from stored responses")
        guard !request.method.isSafe, let key = key(for: request, in: exchange) else { return .pass }
        var asked = CacheQuestion(key: key, wishes: RequestDirectives(request.fields))
        asked.forward = .method
        exchange[CacheTurn.Key.self] = CacheTurn(request, asked, in: exchange, collapsed, leads: nil) {
            [keyRule] reference in
            keyRule.key(for: reference, from: request)
        }
        return .pass
    }

    /// Answers with the stored response that was found, or sends the request upstream.
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
            case .fresh, .stale: return makeVerdict(response, age, now, request, exchange)
            case .staleWhileRevalidating:
                if failures.find(asked.key, at: exchange.now) == nil {
                    revalidate(response, asked.key, request, exchange)
                }
                return makeVerdict(response, age, now, request, exchange)
            case .validate(.isStale) where mayUseAfterFailure(response, age, asked, exchange):
                return makeVerdict(response, age, now, request, exchange)
            case .validate(let reason):
                asked.forward = reason == .request ? .request : .stale
                if response.part == nil {
                    asked.validated = response
                    // The stored response has no validator, so the whole is requested again.
                    if response.validators.isEmpty { asked.forward = .stale }
                }
            }
        case .none(let hasOthers):
            guard asked.forward != .partial else { break }
            asked.forward = hasOthers ? .varyMiss : .uriMiss
            if hasOthers, let part = findPart(asked.key, &request) { self.found(part, &asked, request) }
        case .mustWait: asked.forward = .bypass
        }
        if asked.wishes.onlyIfCached {
            exchange.cacheResult = .miss
            exchange.note("only-if-cached, and no suitable response is stored")
            return .abort(
                with: .problem(
                    .gatewayTimeout, "the request accepts only a stored response, and no suitable one is stored"))
        }
        return goOn(consume asked, &request, exchange)
    }

    /// Whether a stale response is used at once, because the origin server failed a moment ago and the response may be used if it
    /// fails. A client that asks for a fresh response still waits for the origin server.
    private func mayUseAfterFailure(
        _ stored: StoredResponse, _ age: Int64, _ asked: borrowing CacheQuestion, _ exchange: Exchange
    ) -> Bool {
        guard !alwaysValidates, asked.wishes.minFresh == nil,
            let failure = failures.find(asked.key, at: exchange.now)
        else { return false }
        return Reuse.mayUseOnError(
            age: age, rules: stored.rules, request: asked.wishes, policy: policy,
            isDisconnected: failure.isDisconnected)
    }

    /// The rules for reusing a stored response for this request. In a shared cache, a heuristic lifetime does not count for a
    /// request with a cookie, because its sender may get a different response.
    private func rules(of stored: StoredResponse, for request: borrowing HttpRequest) -> ReuseRules {
        var rules = stored.rules
        if rules.isHeuristic, policy.mode == .shared, CacheIdentity.hasCookie(request.fields) { rules.lifetime = 0 }
        return rules
    }

    /// Makes the answer from a stored response.
    private func makeVerdict(
        _ stored: StoredResponse, _ age: Int64, _ now: WallTime, _ request: HttpRequest, _ exchange: Exchange
    ) -> Verdict {
        var status = CacheStatus()
        status.isHit = true
        let ttl = Int64(stored.rules.lifetime) - age / 1_000_000_000
        status.ttl = ttl
        exchange.cacheResult = ttl > 0 ? .hit : .stale
        exchange.note(ttl > 0 ? "hit" : "stale", asDecision: true)
        var response = StoredAnswer.make(stored, for: request.method, request.fields, age: age, now: now)
        tell(status, in: &response)
        return .abort(with: consume response)
    }

    private func makeResponse(
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

    /// Sends the request upstream, unless it can share a response that is in progress.
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
        // The previous leader stored its response before it made room for this one, so that response is found here.
        if asked.closings != collapsed.closings, asked.validated == nil,
            case .response(let found) = find(asked.key, &request, exchange)
        {
            collapsed.close(shared)?.release(.stored(found))
            return decide(.response(found), consume asked, &request, exchange)
        }
        return lead(consume asked, &request, exchange, place: consume shared)
    }

    /// Sends the request upstream, with conditions if a stored response is validated. With a `place`, other requests follow this
    /// one; `response` is what the followers have of it already.
    private func lead(
        _ asked: consuming CacheQuestion, _ request: inout HttpRequest, _ exchange: Exchange,
        place: consuming CacheKey? = nil, _ response: CollapsedResponse? = nil
    ) -> Verdict {
        let turn = CacheTurn(request, consume asked, in: exchange, collapsed, leads: consume place, response)
        request.sendNormalTarget(keepsPath: keyRule.path == .received)
        CacheValidation.removeTwins(in: &request)
        if let stored = turn.validated {
            if !Preconditions.areConditional(turn.fields) { turn.whole = request }
            CacheValidation.ask(about: stored, in: &request)
        }
        if let part = turn.asked.completing { askForRest(of: part, turn, &request) }
        if !turn.isOver { turn.lead(exchange) }
        exchange.cacheResult = .miss
        exchange.note(CacheNotes.miss(turn.asked), asDecision: true)
        exchange[CacheTurn.Key.self] = turn
        return .pass
    }

    /// Decides after waiting for a request whose response can be shared.
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
            guard var answer = follower.take(head, for: request.fields) else {
                var asked = asked
                if !head.isFailure, !head.vary.matches(request.fields) { asked.forward = .varyMiss }
                return lead(asked, &request, exchange)
            }
            exchange.cacheResult = .collapsed
            exchange.note("collapsed", asDecision: true)
            tell(status, in: &answer)
            return .abort(with: answer)
        case .stored(let stored) where isSelected(stored, &request, exchange.wallNow):
            let now = exchange.wallNow
            exchange.cacheResult = .collapsed
            exchange.note("collapsed", asDecision: true)
            return .abort(with: makeResponse(stored, stored.age(at: now), now, request, status))
        case .stored, .goAlone:
            // The awaited response may be in the store by now, or may have been validated there. A response for the leader's fields
            // need not be the one for this request. RFC 9111 §4.1.
            if case .response(let stored) = find(asked.key, &request, exchange) {
                let now = exchange.wallNow
                let age = stored.age(at: now)
                let rules = rules(of: stored, for: request)
                if Reuse.decide(age: age, rules: rules, request: asked.wishes, policy: policy) == .fresh {
                    return makeVerdict(stored, age, now, request, exchange)
                }
            }
            return lead(asked, &request, exchange)
        case .lead: return lead(asked, &request, exchange, place: shared, response)
        }
    }

    /// Revalidates a stale response in the background, at most once at a time for each key.
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

extension HttpCache: AnsweringWare {
    public var storesResponses: Bool { true }
}

extension HttpCache: ConfigurableWare {
    public static let name: WareName = "httpCache"
    public static let chainPlace: ChainPlace? = .caching
    public static let orderRisks =
        [OrderRisk].ofSharedResponses + [
            .before(
                .tokenInjection, avertedByGuard: true,
                consequence: "responses fetched with the credential would be stored for all clients")
        ]
    public static let about = WareAbout(
        "Stores responses and answers repeated requests from them, by the rules of HTTP caching (RFC 9111).",
        source: "RFC 9111, RFC 5861, RFC 8246, RFC 9211, RFC 9213",
        example: #"""
            - httpCache: { maxObject: 1MiB, staleWhileRevalidate: 30s, staleIfError: 1h }
            """#,
        details: #"""
            RFC 9111 decides which responses are stored, how long they are fresh, and which requests they answer. With
            `mode: shared`, all clients share the responses. With `mode: private`, the responses of different clients
            are kept apart. A response without a stated lifetime is fresh for `heuristic.ratio` of the time since it was
            modified, at most `heuristic.max`; with `defaultTtl`, it is fresh for that time, also if the request had a
            cookie. `CDN-Cache-Control`, or the fields in `targeted`, take precedence over
            `Cache-Control`.

            A request waits for the response of an identical one in progress, up to 5s, and receives it as it arrives.
            If the first request fails, one of the waiting ones tries again; if that fails as well, all of them fail. A
            request with `Authorization`, `Cookie`, a client certificate or another principal shares only with requests
            of the same sender.

            A stale response is used if the response allows it, or by `staleWhileRevalidate` and `staleIfError` if it
            does not say: while it is validated in the background, and if the origin server fails. It is never used if
            it has `must-revalidate`, `proxy-revalidate`, `s-maxage` or `no-cache`. For 5s after a failure, further requests
            get the stale response at once, and the origin server is not asked again.

            With `staleOnDisconnect`, a stale response of any age is also used if the origin server cannot be reached or
            closes the connection before it answers.

            Range requests are answered from complete responses and from stored parts. If a stored part begins or ends
            the representation, a request for all of it asks the origin server only for the rest. Parts are combined
            only if a strong validator shows that they belong to the same representation. Conditional requests are
            answered from the store. A response with `Vary: Accept-Language` also answers requests that prefer its
            `Content-Language` to all others. An unsafe request that succeeds removes the stored responses of its
            target. `Cache-Status` shows what the cache did.

            A response with `Set-Cookie` is stored without that field (`setCookie: strip`); a private cache keeps the
            field in responses that it stores for one client. With `pass`, such a response is not stored. With `store`,
            it is stored with its cookie for all clients, and `check` warns. A response with `Set-Cookie` and without an
            explicit lifetime is never stored. A shared cache uses no heuristic lifetime for requests with `Cookie`.

            Requests go upstream with the path and the `Host` in the form that the key has: `/p%61ge` as `/page`. The
            query stays as received. With `key.path: received`, the received path is part of the key and goes upstream,
            for origin servers that check signatures over it. Names in `key.query` and `key.ignoreQuery` are compared
            decoded. A parameter that contains `;` is always part of the key.
            """#,
        otherNames: ["cache", "caching", "proxyCache", "souin"])

    public init(options: inout OptionsReader) {
        var maxObject = HttpCache.usualMaxObject
        options.read(
            "maxObject", into: &maxObject, in: .kibibytes(1) ... .gibibytes(1024),
            doc: "maximum size of a response that is stored")
        var named: NamedStore?
        options.readStore("store", into: &named, doc: "the store that keeps the responses")
        self.init(store: named?.store ?? MemoryStore(limit: StoreDefinition.builtinSize), maxObject: maxObject)
        options.read(
            "mode", into: &policy.mode,
            doc: "shared stores responses for all clients, private keeps those of different clients apart")
        options.read(
            "methods", into: &methods, doc: "methods whose requests are answered from the cache: GET, HEAD or both")
        if methods.contains(where: { $0 != .get && $0 != .head }) {
            options.fail(
                at: "methods", "lists a method other than GET and HEAD; only these are answered from a cache")
        }
        options.read("key", doc: "properties of a request that tell stored responses apart") {
            $0.read(
                "path", into: &keyRule.path,
                doc: "form of the path in the cache key and upstream: normalised, or exactly as received")
            $0.read(
                "headers", into: &keyFields,
                doc: "request fields whose values are part of the cache key, in addition to those in Vary")
            $0.read(
                "query", into: &keyRule.query,
                doc: "the only query parameters that are part of the cache key; by default all are")
            $0.read(
                "ignoreQuery", into: &keyRule.ignoredQuery, doc: "query parameters that are not part of the cache key")
        }
        options.read("heuristic", doc: "lifetime of responses that do not state one") {
            var ratio = Ratio(policy.heuristicRatio)
            var most = Duration.seconds(policy.heuristicLimit)
            $0.read(
                "ratio", into: &ratio,
                doc: "lifetime of a response that states none, as a share of the time since its Last-Modified")
            $0.read(
                "max", into: &most, in: .zero ... .seconds(31_536_000),
                doc: "maximum lifetime of a response that states none")
            policy.heuristicRatio = ratio.value
            policy.heuristicLimit = most.components.seconds
        }
        var lifetime: Duration?
        options.read(
            "defaultTtl", into: &lifetime, in: .zero ... .seconds(31_536_000),
            doc: "lifetime of responses that do not state one, in place of the heuristic")
        policy.defaultLifetime = lifetime?.components.seconds
        options.read("bypass", doc: "requests that are neither answered from the store nor stored; keys as in if") {
            let condition = ConditionOptions(options: &$0, isPostware: false)
            guard $0.isWritten else { return }
            if condition == ConditionOptions() {
                $0.fail("matches every request; write host, path, headers or another key")
            }
            bypass = Condition(condition)
        }
        let year = Duration.zero ... .seconds(31_536_000)
        var whileRevalidate: Duration?
        var ifError: Duration?
        options.read(
            "staleWhileRevalidate", into: &whileRevalidate, in: year,
            doc:
                "how long a stale response is used while it is validated in the background; the response's own value wins"
        )
        options.read(
            "staleIfError", into: &ifError, in: year,
            doc: "how long a stale response is used if the origin server fails; the response's own value wins")
        policy.staleWhileRevalidate = whileRevalidate?.components.seconds
        policy.staleIfError = ifError?.components.seconds
        options.read(
            "staleOnDisconnect", into: &policy.staleOnDisconnect,
            doc: "uses a stale response of any age if the origin server cannot be reached")
        options.read(
            "invalidateOnUnsafe", into: &invalidatesOnUnsafe,
            doc: "a successful POST, PUT, DELETE or other unsafe request removes the stored responses of its target")
        options.read(
            "collapse", into: &collapses, doc: "lets requests wait for the response of an identical request in progress"
        )
        options.read(
            "targeted", into: &policy.targeted,
            doc: "response fields that take precedence over Cache-Control (RFC 9213)")
        options.read("tags", into: &tagField, doc: "response field with tags by which stored responses can be purged")
        options.read(
            "status", into: &emitsStatus, doc: "adds Cache-Status to responses, which shows what the cache did")
        options.read(
            "setCookie", into: &policy.setCookie,
            doc: "responses with Set-Cookie: store without it (strip), do not store (pass), or store with it (store)")
        if policy.setCookie == .store {
            options.warn(
                at: "setCookie",
                "all clients receive the cookie that was meant for the first one; write strip")
        }
    }
}
