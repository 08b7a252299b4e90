import HttpCaching
import HttpWareTesting
import Testing
import Wares

@testable import HttpWare

@Suite struct CoalesceTests {
    private func exchange(_ options: ConfigNode = [:]) throws -> TestExchange {
        try TestExchange(Coalesce.self, options: options)
    }

    private func answer(_ exchange: TestExchange, _ status: Int = 200, _ lines: [String] = [], _ text: String = "one")
        throws
    {
        exchange.upstream.respond(
            with: HttpResponse(
                try #require(HttpStatus(status)), fields: try CacheStage.fields(lines), content: .text(text)),
            after: .seconds(1))
    }

    /// This number of requests at once; the answers come when the first is upstream and a second has passed.
    private func crowd(
        _ exchange: TestExchange, _ requests: [HttpRequest], upstream: Int = 1
    ) async throws -> [HttpResponse] {
        var pending: [TestExchange.Pending] = []
        for request in requests { pending.append(await exchange.start(request)) }
        while exchange.upstream.requests.count < upstream { await Task.yield() }
        await exchange.advance(by: .seconds(1))
        var responses: [HttpResponse] = []
        for one in pending { responses.append(try await one.response()) }
        return responses
    }

    private func get(_ lines: [String] = []) throws -> HttpRequest { .get("/", fields: try CacheStage.fields(lines)) }

    @Test func `equal requests at once are one upstream, and none is kept for later`() async throws {
        let exchange = try exchange()
        try answer(exchange)
        let responses = try await crowd(exchange, Array(repeating: try get(), count: 50))
        #expect(responses.allSatisfy { $0.content.text == "one" })
        #expect(exchange.upstream.requests.count == 1)
        exchange.upstream.respond(with: HttpResponse(.ok, content: .text("two")))
        #expect(try await exchange.send(try get()).content.text == "two")
    }

    @Test func `requests of clients that authenticate their connections do not wait for each other, RFC 9110 §3.3`()
        async throws
    {
        let exchange = try exchange()
        for _ in 0..<3 { try answer(exchange) }
        let request = try get(["Authorization: Negotiate YII="])
        let responses = try await crowd(exchange, [request, request, request], upstream: 3)
        #expect(responses.count == 3 && exchange.upstream.requests.count == 3)
    }

    @Test func `a response that asks to authenticate the connection is for its client alone`() async throws {
        let exchange = try exchange()
        for _ in 0..<3 { try answer(exchange, 401, ["WWW-Authenticate: NTLM"]) }
        var pending: [TestExchange.Pending] = []
        for _ in 0..<3 { pending.append(await exchange.start(try get())) }
        while exchange.upstream.requests.isEmpty { await Task.yield() }
        await exchange.advance(by: .seconds(1))
        while exchange.upstream.requests.count < 3 { await Task.yield() }
        await exchange.advance(by: .seconds(1))
        for one in pending { #expect(try await one.response().status == .unauthorized) }
    }

    @Test func `requests of two certificates do not wait for each other, and those of one do`() async throws {
        let coalesce = Coalesce()
        let clients = try ["CN=anna", "CN=bert"].map { subject in
            var setting = TestExchange.Setting()
            setting.certificate = TlsClientIdentity(subject: subject)
            let exchange = try TestExchange([coalesce], setting: setting)
            try answer(exchange, 200, [], subject)
            return exchange
        }
        var pending: [[TestExchange.Pending]] = []
        for client in clients { pending.append([await client.start(.get("/")), await client.start(.get("/"))]) }
        for client in clients {
            while client.upstream.requests.isEmpty { await Task.yield() }
            await client.advance(by: .seconds(1))
        }
        var texts: [String?] = []
        for one in pending.joined() { texts.append(try await one.response().content.text) }
        #expect(texts == ["CN=anna", "CN=anna", "CN=bert", "CN=bert"])
        #expect(clients.map(\.upstream.requests.count) == [1, 1])
    }

    @Test func `HEAD requests wait for HEAD requests`() async throws {
        let exchange = try exchange()
        try answer(exchange)
        let responses = try await crowd(exchange, Array(repeating: .make(.head, "/"), count: 5))
        #expect(responses.allSatisfy { $0.status == .ok } && exchange.upstream.requests.count == 1)
    }

    @Test(arguments: [
        ["Authorization: b"], ["Cookie: b"], ["If-None-Match: \"a\""], ["Range: bytes=0-1"],
        ["Cache-Control: no-cache"],
    ])
    func `requests that differ do not wait for each other, RFC 9111 §3.5`(lines: [String]) async throws {
        let exchange = try exchange()
        try answer(exchange)
        try answer(exchange)
        _ = try await crowd(exchange, [try get(), try get(lines)], upstream: 2)
        #expect(exchange.upstream.requests.count == 2)
    }

    @Test func `requests whose targets differ in their bytes do not wait for each other, RFC 9110 §7.7`() async throws {
        let exchange = try exchange()
        try answer(exchange, 404)
        try answer(exchange)
        let responses = try await crowd(exchange, [.make(.get, "/p%61ge"), .make(.get, "/page")], upstream: 2)
        #expect(responses.map { $0.status } == [.notFound, .ok])
        #expect(exchange.upstream.requests.map { $0.receivedTarget } == ["/p%61ge", "/page"])
    }

    @Test func `values that are not UTF-8 are told apart by a known Vary, RFC 9111 §4.1`() async throws {
        let exchange = try exchange()
        try answer(exchange, 200, ["Vary: X-Name"])
        _ = try await crowd(exchange, [try get()])
        var requests: [HttpRequest] = []
        for byte in [0xfc, 0xe4] as [UInt8] {
            var fields = HttpFields()
            try fields.append("X-Name", raw: [0x4d, byte])
            requests.append(.get("/", fields: fields))
            try answer(exchange, 200, ["Vary: X-Name"], "\(byte)")
        }
        let responses = try await crowd(exchange, requests, upstream: 3)
        #expect(responses.map { $0.content.text } == ["252", "228"])
    }

    @Test func `a failure that is for all does not set its cookie for all, RFC 9111 §7.3`() async throws {
        let exchange = try exchange()
        for _ in 0..<2 { try answer(exchange, 503, ["Set-Cookie: a=b"]) }
        var pending: [TestExchange.Pending] = []
        for _ in 0..<3 { pending.append(await exchange.start(try get())) }
        for asked in 1...2 {
            while exchange.upstream.requests.count < asked { await Task.yield() }
            await exchange.advance(by: .seconds(1))
        }
        var cookies: [String?] = []
        for one in pending { cookies.append(try await one.response().fields[.setCookie]) }
        #expect(cookies == ["a=b", "a=b", nil])
    }

    @Test(arguments: ["Cache-Control: private", "Cache-Control: no-store", "Set-Cookie: a=b"])
    func `a response for one alone goes to one alone`(line: String) async throws {
        let exchange = try exchange()
        try answer(exchange, 200, [line])
        exchange.upstream.always(respondWith: HttpResponse(.ok, content: .text("own")))
        let responses = try await crowd(exchange, Array(repeating: try get(), count: 5))
        #expect(responses.map { $0.content.text ?? "" } == ["one"] + Array(repeating: "own", count: 4))
    }

    @Test func `fields that a target's responses vary by are part of the key, RFC 9111 §4.1`() async throws {
        let exchange = try exchange()
        try answer(exchange, 200, ["Vary: X-A"])
        exchange.upstream.always(
            respondWith: HttpResponse(.ok, fields: try CacheStage.fields(["Vary: X-A"]), content: .text("two")))
        let first = try await crowd(exchange, [try get(["X-A: 1"]), try get(["X-A: 2"])])
        #expect(first[0].content.text == "one" && exchange.upstream.requests.count == 2)
        try answer(exchange, 200, ["Vary: X-A"])
        try answer(exchange, 200, ["Vary: X-A"], "two")
        let both = [try get(["X-A: 1"]), try get(["X-A: 2"]), try get(["X-A: 1"]), try get(["X-A: 2"])]
        let second = try await crowd(exchange, both, upstream: 4)
        #expect(Set(second.map { $0.content.text ?? "" }) == ["one", "two"])
        #expect(second[0].content.text == second[2].content.text && exchange.upstream.requests.count == 4)
    }

    @Test func `a failure is tried once more by one, and a second one is for all`() async throws {
        let exchange = try exchange()
        try answer(exchange, 503)
        exchange.upstream.always(respondWith: HttpResponse(.badGateway))
        let responses = try await crowd(exchange, Array(repeating: try get(), count: 10))
        #expect(responses.map(\.status.code) == [503] + Array(repeating: 502, count: 9))
        #expect(exchange.upstream.requests.count == 2)
    }

    @Test func `it leaves alone what a cache leads already`() async throws {
        let cache = HttpCache(store: MemoryStore(limit: .mebibytes(1)))
        let exchange = try TestExchange([cache, try TestExchange.make(Coalesce.self)])
        try answer(exchange, 200, ["Cache-Control: max-age=60"])
        let responses = try await crowd(exchange, Array(repeating: try get(), count: 10))
        #expect(responses.allSatisfy { $0.content.text == "one" } && exchange.upstream.requests.count == 1)
    }

    @Test func `no more wait than may`() async throws {
        let exchange = try exchange(["maxWaiters": 1])
        for _ in 0..<2 { try answer(exchange) }
        _ = try await crowd(exchange, Array(repeating: try get(), count: 3), upstream: 2)
        #expect(exchange.upstream.requests.count == 2)
    }

    @Test func `requests that wait have the whole of short content, and the length with it`() async throws {
        let exchange = try exchange()
        try answer(exchange, 200, [], "short")
        let responses = try await crowd(exchange, Array(repeating: try get(), count: 3))
        #expect(responses.allSatisfy { $0.content.text == "short" && $0.content.length == 5 })
        #expect(exchange.outcomes.filter { $0.responder == .cache }.count == 2)
    }

    @Test func `a request whose client leaves gives up its place`() async throws {
        let exchange = try exchange(["maxWaiters": 2])
        exchange.upstream.neverRespond()
        exchange.upstream.always(respondWith: HttpResponse(.ok, content: .text("own")))
        let first = await exchange.start(try get())
        let second = await exchange.start(try get())
        let third = await exchange.start(try get())
        while exchange.upstream.requests.isEmpty { await Task.yield() }
        await second.leave()
        // There is room for another one, and for no more.
        let fourth = await exchange.start(try get())
        #expect(exchange.upstream.requests.count == 1)
        let fifth = await exchange.start(try get())
        #expect(try await fifth.response().content.text == "own")
        await third.leave()
        await fourth.leave()
        // The leader's exchange goes on without its client only while another request waits for it.
        await first.leave()
        #expect(exchange.upstream.requests.count == 2)
    }

    @Test func `a request that waits too long goes alone`() async throws {
        let exchange = try exchange(["timeout": "2s"])
        exchange.upstream.neverRespond()
        exchange.upstream.always(respondWith: HttpResponse(.ok, content: .text("own")))
        let first = await exchange.start(try get())
        let second = await exchange.start(try get())
        while exchange.upstream.requests.isEmpty { await Task.yield() }
        await exchange.advance(by: .seconds(2))
        #expect(try await second.response().content.text == "own")
        await first.leave()
    }

    @Test(
        arguments: [
            ["methods": ["PUT"]], ["timeout": "0s"], ["maxWaiters": 0], ["maxBody": "1B"],
        ] as [ConfigNode])
    func `a wrong option is refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(Coalesce.self, options) }
    }
}
