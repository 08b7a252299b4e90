import Credentials
import HttpWare
import HttpWareTesting
import Testing

@testable import Wares

/// The ten rules of token refresh, as at the head of `CredentialState`.
@Suite(.timeLimit(.minutes(10))) struct TokenRefreshTests {
    private let invalidToken = #"Bearer realm="api", error="invalid_token""#

    @Test func `one refresh per credential is in flight, for any number of requests and loops`() async throws {
        let stage = try TokenStage()
        let other = try stage.another()
        var pending: [TestExchange.Pending] = []
        for index in 0..<20 { pending.append(await (index % 2 == 0 ? stage.exchange : other).start(.get("/\(index)"))) }
        await stage.untilHeld(20)
        #expect(stage.client.requests.count == 1)
        await stage.issue(1)
        for one in pending { #expect(try await one.response().status == .ok) }
        #expect(stage.client.requests.count == 1)
        let all = stage.exchange.upstream.requests + other.upstream.requests
        #expect(all.count == 20)
        #expect(all.allSatisfy { $0.fields[.authorization] == "Bearer s3cret-token-1" })
    }

    @Test func `one refresh follows another, each with the refresh token of the one before`() async throws {
        let stage = try TokenStage()
        try await stage.begin(lifetime: 10)
        stage.clock.advance(by: .seconds(10))
        let second = await stage.exchange.start(.get("/"))
        await stage.issue(2)
        _ = try await second.response()
        let forms = stage.client.requests.map { $0.content.text ?? "" }
        #expect(forms.count == 2)
        #expect(forms[0].contains("refresh_token=s3cret-refresh-0"))
        #expect(forms[1].contains("refresh_token=s3cret-refresh-1"))
    }

    @Test func `the refresh call passes no chain and waits in no hold`() async throws {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "POST /token HTTP/1.1", without: ["via"]),
            .expect("grant_type=client_credentials"),
            .send(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 42\r\n\r\n"
                    + #"{"access_token":"t","token_type":"bearer"}"#),
        ]) { origin in
            var definition = CredentialDefinition(name: "own", grant: .clientCredentials)
            definition.tokenUrl = EndpointUrl("http://127.0.0.1:\(origin.port)/token")
            definition.clientId = "gateway"
            definition.clientSecret = Secret("s3cret")
            definition.retry = 0
            let credential = Credential(definition)
            // Only one request may wait: a call that had to pass here would wait for itself.
            let exchange = try TestExchange([
                TokenRefresh(credential: credential, hold: HoldLimits(max: 1)), TokenInject(credential: credential),
            ])
            #expect(try await exchange.send(.get("/")).status == .ok)
            #expect(exchange.upstream.requests.map { $0.fields[.authorization] } == ["Bearer t"])
        }
    }

    @Test func `a request refused with an older token is sent again with the present one, without another refresh`()
        async throws
    {
        let stage = try TokenStage()
        try await stage.begin()
        stage.exchange.upstream.respond(with: .refused(invalidToken), after: .seconds(1))
        stage.exchange.upstream.respond(with: .refused(invalidToken), after: .seconds(5))
        let early = await stage.exchange.start(.get("/early"))
        while stage.exchange.upstream.requests.count < 2 { await Task.yield() }
        let late = await stage.exchange.start(.get("/late"))
        while !stage.exchange.upstream.requests.contains(where: { $0.path == "/late" }) { await Task.yield() }
        // A request that waits there has set its timer then.
        await stage.exchange.advance(by: .zero)
        await stage.exchange.advance(by: .seconds(1))
        await stage.issue(2)
        _ = try await early.response()
        await stage.exchange.advance(by: .seconds(4))
        #expect(try await late.response().status == .ok)
        #expect(stage.client.requests.count == 2)
        #expect(
            stage.sent == [
                "Bearer s3cret-token-1", "Bearer s3cret-token-1", "Bearer s3cret-token-1", "Bearer s3cret-token-2",
                "Bearer s3cret-token-2",
            ])
    }

    @Test func `invalid_grant fails each held request once and causes no storm`() async throws {
        let stage = try TokenStage { $0.retry = 2 }
        var pending: [TestExchange.Pending] = []
        for _ in 0..<10 { pending.append(await stage.exchange.start(.get("/"))) }
        await stage.untilHeld(10)
        stage.client.answerCall(.badRequest, json: #"{"error":"invalid_grant","error_description":"s3cret-refresh-0"}"#)
        for one in pending {
            let response = try await one.response()
            #expect(response.status == .serviceUnavailable)
            #expect(response.fields[.retryAfter] != nil)
            #expect(response.content.text?.contains("invalid_grant") == true)
            #expect(response.content.text?.contains("s3cret") == false)
        }
        for _ in 0..<10 { #expect(try await stage.exchange.send(.get("/")).status == .serviceUnavailable) }
        #expect(stage.client.requests.count == 1)
        // The circuit closes again; the refresh token that was refused is not sent once more.
        stage.clock.advance(by: .seconds(31))
        #expect(try await stage.exchange.send(.get("/")).status == .serviceUnavailable)
        #expect(stage.client.requests.count == 1)
        #expect(stage.exchange.upstream.requests.isEmpty)
    }

    @Test func `a credential has at most window.max refreshes in window.per`() async throws {
        let stage = try TokenStage { $0.window = .init(max: 2, per: .seconds(60)) }
        for number in 1...2 {
            let one = await stage.exchange.start(.get("/"))
            await stage.issue(number, lifetime: 1)
            _ = try await one.response()
            stage.clock.advance(by: .seconds(1))
        }
        let refused = try await stage.exchange.send(.get("/"))
        #expect(refused.status == .serviceUnavailable)
        #expect(refused.fields[.retryAfter] == "58")
        #expect(stage.client.requests.count == 2)
        stage.clock.advance(by: .seconds(58))
        let again = await stage.exchange.start(.get("/"))
        await stage.issue(3)
        #expect(try await again.response().status == .ok)
    }

    @Test(arguments: [
        (#"Bearer error="insufficient_scope""#, 401), ("Bearer realm=\"error=invalid_token\"", 401),
        (#"Basic realm="x""#, 401), (#"Bearer error="invalid_token""#, 403),
    ])
    func `expired is not forbidden: another challenge or a 403 causes no refresh`(challenge: String, status: Int)
        async throws
    {
        let stage = try TokenStage()
        try await stage.begin()
        stage.exchange.upstream.respond(with: .refused(challenge, try #require(HttpStatus(status))))
        #expect(try await stage.exchange.send(.get("/")).status.code == status)
        #expect(stage.client.requests.count == 1)
    }

    @Test(arguments: [#"Bearer realm="a,b", error="invalid_token""#, "DPoP algs=x, Bearer error=invalid_token", nil])
    func `a 401 with invalid_token or without a challenge causes a refresh, and the request is sent again`(
        challenge: String?
    )
        async throws
    {
        let stage = try TokenStage()
        try await stage.begin()
        stage.exchange.upstream.respond(with: .refused(challenge))
        let pending = await stage.exchange.start(.post("/", content: .text("order")))
        await stage.issue(2)
        #expect(try await pending.response().status == .ok)
        #expect(stage.exchange.upstream.requests.suffix(2).map(\.content.text) == ["order", "order"])
        #expect(stage.sent.last == "Bearer s3cret-token-2")
        let wares = try #require(stage.exchange.outcomes.last).record.wares
        #expect(wares.contains { $0.decision == .replayed && $0.note?.contains("after 401") == true })
        #expect(wares.contains { $0.note?.contains("behind refresh 2") == true })
    }

    @Test func `a request that the client gave its own token is left alone`() async throws {
        let stage = try TokenStage()
        try await stage.begin()
        stage.exchange.upstream.respond(with: .refused(nil))
        var fields = HttpFields()
        try fields.set(.authorization, to: "Bearer own")
        #expect(try await stage.exchange.send(.get("/", fields: fields)).status == .unauthorized)
        #expect(stage.client.requests.count == 1)
    }

    @Test func `a token that is refused again is not asked for again`() async throws {
        let stage = try TokenStage()
        try await stage.begin()
        stage.exchange.upstream.always(respondWith: .refused(nil))
        let pending = await stage.exchange.start(.get("/"))
        await stage.issue(2)
        #expect(try await pending.response().status == .unauthorized)
        #expect(stage.sent.count == 3)
        #expect(stage.client.requests.count == 2)
    }

    @Test func `a place that refuses every token does not shut out the others`() async throws {
        let stage = try TokenStage { $0.window = .init(max: 2, per: .seconds(60)) }
        try await stage.begin()
        stage.exchange.upstream.always(respondWith: .refused(nil))
        let pending = await stage.exchange.start(.get("/refusing"))
        await stage.issue(2)
        _ = try await pending.response()
        #expect(try await stage.exchange.send(.get("/refusing")).status == .unauthorized)
        stage.exchange.upstream.always(respondWith: HttpResponse(.ok))
        #expect(try await stage.exchange.send(.get("/other")).status == .ok)
        #expect(stage.sent.last == "Bearer s3cret-token-2")
        #expect(stage.client.requests.count == 2)
    }

    // MARK: A refused token, and no new one

    /// The faults of a token endpoint that cannot give a token for now.
    private static let passing: [Result<HttpResponse, GatewayError>] = [
        .failure(GatewayError(.upstream, .connectionRefused, "nobody is there")),
        .failure(GatewayError(.upstream, .responseTimeout, "too slow")), .success(HttpResponse(.internalServerError)),
        .success(HttpResponse(.serviceUnavailable)), .success(HttpResponse(.tooManyRequests)),
        .success(HttpResponse(.ok, content: .text("<html>"))),
    ]

    @Test(arguments: passing.indices)
    func `a refused request is answered 503 with Retry-After if the refresh fails for a reason that may pass`(
        index: Int
    ) async throws {
        let stage = try TokenStage()
        try await stage.begin()
        stage.exchange.upstream.always(respondWith: .refused(invalidToken))
        let pending = await stage.exchange.start(.get("/"))
        await stage.untilAsked()
        stage.client.answerCall(Self.passing[index])
        let response = try await pending.response()
        #expect(response.status == .serviceUnavailable)
        #expect(response.fields[.retryAfter] == "1")
        #expect(!response.fields.contains(.wwwAuthenticate))
        // In the pause behind it no refresh begins, and the answer is the same.
        let next = try await stage.exchange.send(.get("/"))
        #expect(next.status == .serviceUnavailable)
        #expect(next.fields[.retryAfter] == "1")
        #expect(stage.client.requests.count == 2)
    }

    @Test(arguments: ["invalid_grant", "invalid_client", "unauthorized_client"])
    func `a refused request gets the origin's response if the authorization server refuses for good`(code: String)
        async throws
    {
        let stage = try TokenStage()
        try await stage.begin()
        stage.exchange.upstream.always(respondWith: .refused(invalidToken))
        let pending = await stage.exchange.start(.get("/"))
        await stage.untilAsked()
        stage.client.answerCall(.badRequest, json: #"{"error":"\#(code)"}"#)
        let response = try await pending.response()
        #expect(response.status == .unauthorized)
        #expect(response.fields.contains(.wwwAuthenticate))
        #expect(try await stage.exchange.send(.get("/")).status == .unauthorized)
        #expect(stage.client.requests.count == 2)
    }

    @Test func `onFailure: response passes the origin's response on`() async throws {
        let stage = try TokenStage(onFailure: .response)
        try await stage.begin()
        stage.exchange.upstream.always(respondWith: .refused(invalidToken))
        let pending = await stage.exchange.start(.get("/"))
        await stage.untilAsked()
        stage.client.answerCall(.failure(GatewayError(.upstream, .connectionRefused, "nobody is there")))
        #expect(try await pending.response().status == .unauthorized)
        #expect(try await stage.exchange.send(.get("/")).status == .unauthorized)
    }

    @Test func `a refused request that finds no room, or no token in time, is answered 503`() async throws {
        let stage = try TokenStage(hold: HoldLimits(max: 1, timeout: .seconds(3)))
        try await stage.begin()
        stage.exchange.upstream.respond(with: .refused(invalidToken))
        stage.exchange.upstream.respond(with: .refused(invalidToken), after: .seconds(1))
        let first = await stage.exchange.start(.get("/first"))
        await stage.untilHeld(1)
        let second = await stage.exchange.start(.get("/second"))
        #expect(try await second.response().status == .serviceUnavailable)
        await stage.exchange.advance(by: .seconds(3))
        let response = try await first.response()
        #expect(response.status == .serviceUnavailable)
        #expect(response.fields[.retryAfter] == "1")
    }

    @Test func `Retry-After says when the next refresh may begin`() async throws {
        let stage = try TokenStage()
        for (pause, expected) in [(1, "1"), (2, "2"), (4, "4")] {
            let pending = await stage.exchange.start(.get("/"))
            await stage.untilAsked()
            stage.client.answerCall(.failure(GatewayError(.upstream, .connectionRefused, "nobody is there")))
            #expect(try await pending.response().fields[.retryAfter] == expected)
            stage.clock.advance(by: .seconds(pause))
        }
    }

    // MARK: A token that is refused while its refresh goes on

    /// Keeps tokens as slowly as a test wants.
    private actor SlowStore: TokenStore {
        private var isOpen = false
        private var waiting: [CheckedContinuation<Void, Never>] = []
        private(set) var writes = 0

        func read() -> StoredTokens? { nil }
        func write(_ tokens: StoredTokens) async {
            writes += 1
            if !isOpen { await withCheckedContinuation { waiting.append($0) } }
        }
        func remove() {}
        func open() {
            isOpen = true
            for one in waiting { one.resume() }
            waiting = []
        }
    }

    /// Gives one token after the other.
    private actor Counting: TokenSource {
        private var count = 0

        func newToken(refreshing refreshToken: Secret?) -> NewToken {
            count += 1
            return NewToken(Secret("token-\(count)"), lifetime: .seconds(100))
        }
    }

    @Test func `a token that is refused before it is written is followed by the next one`() async throws {
        let store = SlowStore()
        let credential = Credential(name: "orders", source: Counting(), store: store, keepsBeforeUse: false)
        let exchange = try TestExchange([TokenRefresh(credential: credential), TokenInject(credential: credential)])
        exchange.upstream.respond(with: .refused(invalidToken))
        let pending = await exchange.start(.get("/"))
        // The token is in force, was sent and refused; its refresh has not ended.
        while credential.report().held != 1 || exchange.upstream.requests.isEmpty { await Task.yield() }
        #expect(await store.writes == 1)
        #expect(credential.report().state == .refreshing)
        await store.open()
        #expect(try await pending.response().status == .ok)
        #expect(exchange.upstream.requests.map { $0.fields[.authorization] } == ["Bearer token-1", "Bearer token-2"])
    }

    @Test func `the hold is bounded in count`() async throws {
        let stage = try TokenStage(hold: HoldLimits(max: 2))
        let held = [await stage.exchange.start(.get("/")), await stage.exchange.start(.get("/"))]
        let refused = try await stage.exchange.send(.get("/"))
        #expect(refused.status == .serviceUnavailable)
        #expect(refused.fields[.retryAfter] == "1")
        await stage.issue(1)
        for one in held { #expect(try await one.response().status == .ok) }
    }

    @Test func `the hold is bounded in bytes`() async throws {
        let stage = try TokenStage(hold: HoldLimits(maxBytes: .kibibytes(4)))
        let small = await stage.exchange.start(.get("/"))
        let refused = try await stage.exchange.send(.post("/", content: .bytes(count: 4096)))
        #expect(refused.status == .serviceUnavailable)
        await stage.issue(1)
        #expect(try await small.response().status == .ok)
    }

    @Test func `the hold is bounded in time, with 503 and Retry-After`() async throws {
        let stage = try TokenStage(hold: HoldLimits(timeout: .seconds(3)))
        let held = await stage.exchange.start(.get("/"))
        await stage.untilAsked()
        await stage.exchange.advance(by: .seconds(3))
        let response = try await held.response()
        #expect(response.status == .serviceUnavailable)
        #expect(response.fields[.retryAfter] == "1")
        #expect(stage.credential.report().held == 0)
        #expect(stage.credential.report().timeouts == 1)
    }

    @Test func `a client that leaves frees its place in the hold`() async throws {
        let stage = try TokenStage(hold: HoldLimits(max: 1))
        let first = await stage.exchange.start(.get("/first"))
        await stage.untilHeld(1)
        await first.leave()
        await stage.untilHeld(0)
        let second = await stage.exchange.start(.get("/second"))
        await stage.issue(1)
        #expect(try await second.response().status == .ok)
        #expect(stage.exchange.upstream.requests.map(\.path) == ["/second"])
    }

    @Test func `content that was not kept whole is not sent again, and the record says why`() async throws {
        let stage = try TokenStage(maxBody: .bytes(10))
        try await stage.begin()
        stage.exchange.upstream.respond(with: .refused(nil))
        let response = try await stage.exchange.send(.post("/", content: .bytes(count: 11)))
        #expect(response.status == .unauthorized)
        let wares = try #require(stage.exchange.outcomes.last).record.wares
        #expect(wares.contains { $0.note == "not replayed: the content is larger than 10B" })
        // The next one still gets a new token.
        let next = await stage.exchange.start(.get("/"))
        await stage.issue(2)
        #expect(try await next.response().status == .ok)
        #expect(stage.sent.last == "Bearer s3cret-token-2")
    }

    @Test func `a token that expires within refreshBefore is renewed by one call while requests continue with it`()
        async throws
    {
        let stage = try TokenStage { $0.refreshBefore = .seconds(20) }
        try await stage.begin(lifetime: 100)
        stage.clock.advance(by: .seconds(79))
        _ = try await stage.exchange.send(.get("/"))
        #expect(stage.client.requests.count == 1)
        stage.clock.advance(by: .seconds(1))
        for _ in 0..<5 { #expect(try await stage.exchange.send(.get("/")).status == .ok) }
        await stage.untilAsked()
        #expect(stage.client.requests.count == 2)
        #expect(stage.sent.last == "Bearer s3cret-token-1")
        await stage.issue(2)
        _ = try await stage.exchange.send(.get("/"))
        #expect(stage.sent.last == "Bearer s3cret-token-2")
    }

    @Test func `a token is renewed at most half of its lifetime before its end`() async throws {
        let stage = try TokenStage { $0.refreshBefore = .seconds(60) }
        try await stage.begin(lifetime: 10)
        stage.clock.advance(by: .milliseconds(4900))
        _ = try await stage.exchange.send(.get("/"))
        #expect(stage.client.requests.count == 1)
        stage.clock.advance(by: .milliseconds(100))
        _ = try await stage.exchange.send(.get("/"))
        await stage.untilAsked()
        #expect(stage.client.requests.count == 2)
    }

    @Test func `a token that has expired holds the requests`() async throws {
        let stage = try TokenStage { $0.refreshBefore = .seconds(2) }
        try await stage.begin(lifetime: 10)
        stage.clock.advance(by: .seconds(10))
        let held = await stage.exchange.start(.get("/"))
        await stage.untilHeld(1)
        await stage.issue(2)
        _ = try await held.response()
        #expect(stage.sent == ["Bearer s3cret-token-1", "Bearer s3cret-token-2"])
    }

    @Test func `tokens appear in no record, report or response`() async throws {
        let stage = try TokenStage()
        try await stage.begin()
        stage.exchange.upstream.respond(with: .refused(nil))
        let pending = await stage.exchange.start(.get("/"))
        await stage.untilAsked()
        stage.client.answerCall(
            .internalServerError, json: #"{"error":"s3cret-token-9","access_token":"s3cret-token-9"}"#)
        let refused = try await pending.response()
        #expect(refused.status == .serviceUnavailable)
        let broken = try await stage.exchange.send(.get("/"))
        var seen = "\(stage.credential.report()) \(refused.content.text ?? "") \(broken.content.text ?? "")"
        seen += " \(stage.credential.definition)"
        for outcome in stage.exchange.outcomes {
            for ware in outcome.record.wares { seen += " \(ware)" }
        }
        #expect(!seen.contains("s3cret"))
        #expect(seen.contains("500"))
    }

    @Test func `requests that waited are let go in the order of coming`() async throws {
        let stage = try TokenStage()
        var pending: [TestExchange.Pending] = []
        for index in 0..<10 { pending.append(await stage.exchange.start(.get("/\(index)"))) }
        await stage.issue(1)
        for one in pending { _ = try await one.response() }
        #expect(stage.exchange.upstream.requests.count == 10)
    }

    @Test func `the circuit lets another refresh through when it is time`() async throws {
        let stage = try TokenStage()
        let first = await stage.exchange.start(.get("/"))
        await stage.untilAsked()
        stage.client.answerCall(.failure(GatewayError(.upstream, .connectionRefused, "nobody is there")))
        let refused = try await first.response()
        #expect(refused.status == .serviceUnavailable)
        #expect(refused.fields[.retryAfter] == "1")
        #expect(try await stage.exchange.send(.get("/")).status == .serviceUnavailable)
        #expect(stage.client.requests.count == 1)
        stage.clock.advance(by: .seconds(1))
        let second = await stage.exchange.start(.get("/"))
        await stage.issue(1)
        #expect(try await second.response().status == .ok)
    }
}
