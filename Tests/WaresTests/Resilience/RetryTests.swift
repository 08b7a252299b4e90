import HttpWareTesting
import Testing

@testable import HttpWare
@testable import Wares

@Suite(.timeLimit(.minutes(10))) struct RetryTests {
    private func retry(
        attempts: Int = 2, methods: [HttpMethod]? = nil, perTry: Duration? = nil, budget: Ratio = 1.0
    ) -> Retry {
        var retry = Retry(
            attempts: attempts, backoff: .zero ... .zero, perTry: perTry, maxBody: .kibibytes(1), budget: budget)
        if let methods { retry.methods = methods }
        return retry
    }

    // MARK: What is sent again

    @Test(arguments: [502, 503, 504])
    func `a response that may be better the next time is asked for again`(status: Int) async throws {
        let exchange = try TestExchange(observing: [retry()])
        exchange.upstream.respond(with: HttpResponse(try #require(HttpStatus(status))))
        #expect(try await exchange.send(.get("/a")).status == .ok)
        #expect(exchange.upstream.requests.map(\.path) == ["/a", "/a"])
        #expect(exchange.notes == ["retried after \(status), 2nd of 2"])
        #expect(exchange.outcomes.last?.record.replays == 1)
    }

    @Test(arguments: [200, 301, 400, 404, 429, 500, 501])
    func `another one goes on as it is`(status: Int) async throws {
        let exchange = try TestExchange(observing: [retry()])
        exchange.upstream.respond(with: HttpResponse(try #require(HttpStatus(status))))
        #expect(try await exchange.send(.get("/")).status.code == status)
        #expect(exchange.upstream.requests.count == 1)
    }

    @Test func `the last one goes to the client, and the record says so`() async throws {
        let exchange = try TestExchange(observing: [retry(attempts: 3)])
        exchange.upstream.always(respondWith: HttpResponse(.serviceUnavailable))
        #expect(try await exchange.send(.get("/")).status == .serviceUnavailable)
        #expect(exchange.upstream.requests.count == 3)
        #expect(
            exchange.notes == [
                "retried after 503, 2nd of 3", "retried after 503, 3rd of 3", "not retried: that was the 3rd of 3",
            ])
    }

    @Test func `a connection that is not made is tried again, whatever the method - RFC 9110 §9.2.2`() async throws {
        let exchange = try TestExchange(observing: [retry()])
        exchange.upstream.refuse()
        while try await exchange.send(.post("/", content: .text("x"))).status != .badGateway {}
        #expect(exchange.notes.first == "retried after connection_refused, 2nd of 2")
    }

    @Test(arguments: [(2, 1, 2), (2, 2, 2), (3, 2, 3), (1, 3, 3)])
    func `several entries do not multiply the requests`(outer: Int, inner: Int, sent: Int) async throws {
        let exchange = try TestExchange([retry(attempts: outer), retry(attempts: inner)])
        exchange.upstream.always(respondWith: HttpResponse(.serviceUnavailable))
        for count in 1...3 {
            #expect(try await exchange.send(.get("/")).status == .serviceUnavailable)
            #expect(exchange.upstream.requests.count == sent * count)
        }
    }

    @Test func `a request that another ware sends again starts with no retries counted`() async throws {
        let exchange = try TestExchange([Again(), retry(attempts: 2)])
        exchange.upstream.always(respondWith: HttpResponse(.serviceUnavailable))
        #expect(try await exchange.send(.get("/")).status == .serviceUnavailable)
        #expect(exchange.upstream.requests.count == 4)
    }

    /// Sends a request that failed again, once.
    private struct Again: Middleware, Postware {
        private enum Done: ExchangeKey { typealias Value = Bool }
        var mayReplay: Bool { true }

        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }

        func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
            guard exchange[Done.self] == nil else { return .pass }
            exchange[Done.self] = true
            return .replay(after: .zero)
        }
    }

    @Test func `several entries count a request once for the budget`() async throws {
        let exchange = try TestExchange([retry(attempts: 2, budget: 0.2), retry(attempts: 1, budget: 0.2)])
        exchange.upstream.always(respondWith: HttpResponse(.serviceUnavailable))
        for _ in 0..<101 { _ = try await exchange.send(.get("/")) }
        #expect(exchange.upstream.requests.count == 121)
    }

    @Test(arguments: [true, false])
    func `a request that the origin server did not look at is sent again whatever the method - RFC 9113 §8.7`(
        isUnprocessed: Bool
    ) throws {
        let exchange = Exchange(loop: try EventLoop(name: "retry"))
        exchange.heldRequest = .post("/")
        exchange.responder = .gateway
        exchange.failure = GatewayError(
            .upstream, .connectionTerminated, "refused", mayRetry: true, isUnprocessed: isUnprocessed)
        var response = HttpResponse(.badGateway)
        var isSentAgain = false
        if case .replay = retry().handle(&response, in: exchange) { isSentAgain = true }
        #expect(isSentAgain == isUnprocessed)
    }

    @Test func `an answer of another ware is not asked for again`() async throws {
        let exchange = try TestExchange(observing: [retry(), Mock(.serviceUnavailable)])
        #expect(try await exchange.send(.get("/")).status == .serviceUnavailable)
        #expect(exchange.outcomes.last?.record.replays == 0)
    }

    // MARK: Idempotency

    @Test(arguments: [HttpMethod.post, .patch])
    func `a request that is not safe to repeat is not sent twice - RFC 9110 §9.2.2`(method: HttpMethod)
        async throws
    {
        let exchange = try TestExchange(observing: [retry()])
        exchange.upstream.respond(with: HttpResponse(.serviceUnavailable))
        #expect(try await exchange.send(.make(method, "/", content: .text("x"))).status == .serviceUnavailable)
        #expect(exchange.upstream.requests.count == 1)
        #expect(exchange.notes == ["not retried: \(method) is not safe to repeat"])
    }

    @Test(
        arguments: [HttpMethod.get, .head, .options, .put, .delete, .query]
            + ["PROPFIND", "REPORT", "SEARCH", "MKCOL"].compactMap { HttpMethod($0) })
    func `the idempotent methods may be - RFC 9110 §9.2.2`(method: HttpMethod) async throws {
        let exchange = try TestExchange([retry()])
        exchange.upstream.respond(with: HttpResponse(.serviceUnavailable))
        #expect(try await exchange.send(.make(method, "/")).status == .ok)
    }

    // MARK: Content

    @Test func `content that was kept whole is sent again as it was`() async throws {
        let exchange = try TestExchange([retry(methods: [.post])])
        exchange.upstream.respond(with: HttpResponse(.serviceUnavailable))
        #expect(try await exchange.send(.post("/", content: .text("order"))).status == .ok)
        #expect(exchange.upstream.requests.map(\.content.text) == ["order", "order"])
    }

    @Test func `content over maxBody is never sent twice`() async throws {
        let exchange = try TestExchange(observing: [retry(methods: [.put])])
        exchange.upstream.respond(with: HttpResponse(.serviceUnavailable))
        let response = try await exchange.send(.make(.put, "/", content: .bytes(count: 1025)))
        #expect(response.status == .serviceUnavailable)
        #expect(exchange.upstream.requests.count == 1)
        #expect(exchange.notes == ["not retried: the content is larger than 1KiB"])
    }

    @Test func `content over maxBody is not sent twice where another ware keeps more`() async throws {
        let exchange = try TestExchange([Keeping(), retry(methods: [.put])])
        exchange.upstream.respond(with: HttpResponse(.serviceUnavailable))
        _ = try await exchange.send(.make(.put, "/", content: .bytes(count: 1025)))
        #expect(exchange.upstream.requests.count == 1)
    }

    private struct Keeping: Middleware {
        var contentNeed: ContentNeed { .kept(upTo: 1 << 20) }
        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }
    }

    // MARK: When

    @Test func `Retry-After is waited for - RFC 9110 §10.2.3`() async throws {
        let exchange = try TestExchange([retry()])
        exchange.upstream.respond(with: HttpResponse(.serviceUnavailable, fields: ["Retry-After": "3"]))
        let pending = await exchange.start(.get("/"))
        await exchange.untilAsked(1)
        await exchange.advanceUntilAsked(2)
        #expect(exchange.clock.now().nanoseconds >= 3_000_000_000)
        #expect(try await pending.response().status == .ok)
    }

    @Test func `Retry-After may be a date - RFC 9110 §10.2.3`() async throws {
        let exchange = try TestExchange([retry()])
        exchange.upstream.respond(
            with: HttpResponse(.serviceUnavailable, fields: ["Retry-After": "Thu, 01 Jan 2026 00:00:02 GMT"]))
        let pending = await exchange.start(.get("/"))
        await exchange.untilAsked(1)
        await exchange.advanceUntilAsked(2)
        #expect(exchange.clock.now().nanoseconds >= 2_000_000_000)
        #expect(try await pending.response().status == .ok)
    }

    @Test(arguments: ["11", "Thu, 01 Jan 2026 00:00:11 GMT"])
    func `more than 10 seconds are not waited for`(value: String) async throws {
        let exchange = try TestExchange(observing: [retry()])
        var response = HttpResponse(.serviceUnavailable)
        try response.fields.set(.retryAfter, to: value)
        exchange.upstream.respond(with: response)
        #expect(try await exchange.send(.get("/")).status == .serviceUnavailable)
        #expect(exchange.notes == ["not retried: the response asks to wait for 11s"])
    }

    @Test func `a pause that the exchange has no time for is not begun`() async throws {
        let exchange = try TestExchange(observing: [retry(), Timeout(total: .seconds(2))])
        exchange.upstream.respond(with: HttpResponse(.serviceUnavailable, fields: ["Retry-After": "3"]))
        #expect(try await exchange.send(.get("/")).status == .serviceUnavailable)
        #expect(exchange.notes == ["not retried: there is no time left"])
    }

    @Test func `a try that takes longer than perTry is ended, and the next one has its own time`() async throws {
        let exchange = try TestExchange(observing: [retry(attempts: 3, perTry: .seconds(2))])
        exchange.upstream.neverRespond()
        exchange.upstream.neverRespond()
        let pending = await exchange.start(.get("/"))
        for count in 1...2 {
            await exchange.untilAsked(count)
            await exchange.advance(by: .seconds(2))
        }
        #expect(try await pending.response().status == .ok)
        #expect(exchange.upstream.requests.count == 3)
        #expect(exchange.notes.first == "retried after http_response_timeout, 2nd of 3")
    }

    @Test func `pauses are random up to a limit that doubles, and the same for the same seed`() {
        let range = DurationRange(.milliseconds(100) ... .seconds(1))
        let (one, other) = (Backoff(seed: 7), Backoff(seed: 7))
        for (number, limit) in [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1000), (100, 1000)] {
            var longest = Duration.zero
            for _ in 0..<200 {
                let pause = one.pause(before: number, in: range)
                #expect(pause == other.pause(before: number, in: range))
                #expect(pause >= .zero && pause <= .milliseconds(limit))
                longest = max(longest, pause)
            }
            #expect(longest > .milliseconds(limit / 2))
        }
        #expect(Backoff(seed: 1).pause(before: 1, in: range) != Backoff(seed: 2).pause(before: 1, in: range))
    }

    // MARK: The budget

    @Test func `only a part of a service's requests is sent again, but ten always may be`() async throws {
        let exchange = try TestExchange(observing: [retry(budget: 0.2)])
        exchange.upstream.always(respondWith: HttpResponse(.serviceUnavailable))
        for _ in 0..<101 { _ = try await exchange.send(.get("/")) }
        #expect(exchange.upstream.requests.count == 121)
        #expect(exchange.notes == ["not retried: the retry budget of upstream is spent"])
        // The past is forgotten after ten seconds.
        await exchange.advance(by: .seconds(11))
        for _ in 0..<11 { _ = try await exchange.send(.get("/")) }
        #expect(exchange.upstream.requests.count == 121 + 11 + 10)
    }

    @Test func `several entries share the budget of the service`() async throws {
        let notes = ServiceNotes(name: "a")
        let now = LoopInstant(nanoseconds: 0)
        for _ in 0..<100 { notes.requests.add(all: true, marked: false, at: now) }
        let taken = (0..<50).count { _ in notes.note(RetryBudget.self).takeRetry(0.2, of: notes.requests, at: now) }
        #expect(taken == 20)
        #expect(notes.noteIfMade(RetryBudget.self)?.report == .init(retries: 20, denied: 30))
    }

    // MARK: Options

    @Test func `the defaults are those of the catalogue`() throws {
        let retry = try TestExchange.make(Retry.self)
        #expect(retry.attempts == 2)
        #expect(retry.retryOn == FailureSet([.connect, .reset], statuses: [502, 503, 504]))
        #expect(retry.methods == nil)
        #expect(retry.backoff == DurationRange(.milliseconds(100) ... .seconds(2)))
        #expect(retry.retryAfter == .seconds(10) && retry.perTry == nil)
        #expect(retry.maxBody == .mebibytes(1) && retry.budget == 0.2)
    }

    @Test(
        arguments: [
            ["attempts": 0], ["attempts": 6], ["retryOn": "dns"], ["retryOn": "600"], ["methods": "get"],
            ["backoff": "2s..1s"], ["backoff": "1s..6m"], ["retryAfter": "6m"], ["perTry": "0s"], ["maxBody": "2GiB"],
            ["budget": "120%"],
        ] as [ConfigNode])
    func `invalid options of retry are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(Retry.self, options) }
    }
}
