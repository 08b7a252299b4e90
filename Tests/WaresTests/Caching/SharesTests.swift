import HttpCaching
import HttpWareTesting
import Testing

@testable import GatewayWares
@testable import HttpWare
@testable import Wares

/// Each ware that remembers something under a key, on a route with `split`. The field `Share` of a request names the service that
/// the request is given to.
@Suite(.timeLimit(.minutes(5))) struct SharesTests {
    private func exchange(_ wares: [any Ware]) throws -> TestExchange {
        var setting = TestExchange.Setting()
        setting.shares = ["a", "b"]
        return try TestExchange(wares, setting: setting)
    }

    private func cache(_ mode: CacheMode = .shared) -> HttpCache {
        var cache = HttpCache(store: MemoryStore(limit: .mebibytes(8)))
        cache.policy.mode = mode
        return cache
    }

    private func get(_ share: String, _ path: String = "/", _ lines: [String] = []) throws -> HttpRequest {
        .get(path, fields: try CacheStage.fields(["Share: \(share)"] + lines))
    }

    private func respond(_ exchange: TestExchange, _ text: String, _ lines: [String] = ["Cache-Control: max-age=60"])
        throws
    {
        exchange.upstream.respond(
            with: HttpResponse(.ok, fields: try CacheStage.fields(lines), content: .text(text)))
    }

    private func text(_ exchange: TestExchange, _ request: HttpRequest) async throws -> String? {
        try await exchange.send(request).content.text
    }

    // MARK: httpCache

    @Test(arguments: [CacheMode.shared, .private])
    func `httpCache answers from the responses of the same share only`(mode: CacheMode) async throws {
        let exchange = try exchange([cache(mode)])
        try respond(exchange, "of a")
        try respond(exchange, "of b")
        for _ in 0..<2 {
            #expect(try await text(exchange, get("a")) == "of a")
            #expect(try await text(exchange, get("b")) == "of b")
        }
        #expect(exchange.upstream.requests.count == 2)
    }

    @Test(arguments: [CacheMode.shared, .private])
    func `httpCache gives the cookie of one anonymous client to no other`(mode: CacheMode) async throws {
        let exchange = try exchange([cache(mode)])
        for share in ["a", "b"] {
            try respond(exchange, share, ["Cache-Control: max-age=60", "Set-Cookie: sid=of-\(share)"])
            #expect(try await exchange.send(try get(share)).fields[.setCookie] == "sid=of-\(share)")
            for _ in 0..<3 {
                let again = try await exchange.send(try get(share))
                #expect(again.content.text == share && again.fields[.setCookie] == nil)
            }
        }
        #expect(exchange.upstream.requests.count == 2)
    }

    @Test func `a private cache keeps the cookie for its client, in each share`() async throws {
        let exchange = try exchange([cache(.private)])
        for share in ["a", "b"] {
            try respond(exchange, share, ["Cache-Control: max-age=60", "Set-Cookie: sid=new"])
            for _ in 0..<2 {
                let response = try await exchange.send(try get(share, "/", ["Cookie: sid=anna"]))
                #expect(response.content.text == share && response.fields[.setCookie] == "sid=new")
            }
        }
        #expect(exchange.upstream.requests.count == 2)
    }

    /// The stored responses before an unsafe request: both shares, and in a private cache two senders beside the anonymous clients.
    private func fill(_ exchange: TestExchange, _ mode: CacheMode, _ path: String) async throws {
        for share in ["a", "b"] {
            for lines in mode == .private ? [[], ["Cookie: sid=anna"], ["Authorization: Basic YmVydA=="]] : [[]] {
                try respond(exchange, "former")
                #expect(try await text(exchange, get(share, path, lines)) == "former")
                #expect(try await text(exchange, get(share, path, lines)) == "former")
            }
        }
    }

    private func expectInvalid(_ exchange: TestExchange, _ mode: CacheMode, _ path: String) async throws {
        for share in ["a", "b"] {
            for lines in mode == .private ? [[], ["Cookie: sid=anna"], ["Authorization: Basic YmVydA=="]] : [[]] {
                try respond(exchange, "new")
                #expect(try await text(exchange, get(share, path, lines)) == "new", "\(share) \(lines)")
            }
        }
    }

    @Test(arguments: [CacheMode.shared, .private], [HttpMethod.post, .put, .delete, .patch])
    func `an unsafe request invalidates its target in all shares and for all senders, RFC 9111 §4.4`(
        mode: CacheMode, method: HttpMethod
    ) async throws {
        let exchange = try exchange([cache(mode)])
        try await fill(exchange, mode, "/x")
        try await fill(exchange, mode, "/other")
        let asked = exchange.upstream.requests.count
        try respond(exchange, "done", [])
        _ = try await exchange.send(.make(method, "/x", fields: ["Share": "b"]))
        try await expectInvalid(exchange, mode, "/x")
        let again = exchange.upstream.requests.count
        #expect(again == asked + 1 + (mode == .private ? 6 : 2))
        #expect(try await text(exchange, get("a", "/other")) == "former")
        #expect(exchange.upstream.requests.count == again)
    }

    @Test(arguments: [CacheMode.shared, .private], ["Location", "Content-Location"])
    func `so do the references of its response`(mode: CacheMode, name: String) async throws {
        let exchange = try exchange([cache(mode)])
        try await fill(exchange, mode, "/list")
        try respond(exchange, "done", ["\(name): /list"])
        _ = try await exchange.send(.post("/x", fields: ["Share": "a", "Cookie": "sid=carl"], content: .text("y")))
        try await expectInvalid(exchange, mode, "/list")
    }

    @Test func `an unsafe request that fails invalidates nothing`() async throws {
        let exchange = try exchange([cache()])
        try await fill(exchange, .shared, "/x")
        exchange.upstream.respond(with: HttpResponse(.forbidden))
        _ = try await exchange.send(.post("/x", fields: ["Share": "a"], content: .text("y")))
        #expect(try await text(exchange, get("a", "/x")) == "former")
        #expect(try await text(exchange, get("b", "/x")) == "former")
    }

    @Test func `a response to POST answers GET in its own share`() async throws {
        let exchange = try exchange([cache()])
        try respond(exchange, "made", ["Cache-Control: max-age=60", "Content-Location: /x"])
        _ = try await exchange.send(.post("/x", fields: ["Share": "a"], content: .text("y")))
        #expect(try await text(exchange, get("a", "/x")) == "made")
        try respond(exchange, "of b")
        #expect(try await text(exchange, get("b", "/x")) == "of b")
    }

    // MARK: notModified

    @Test(arguments: [CacheMode.shared, .private])
    func `notModified validates the response of the same share`(mode: CacheMode) async throws {
        let exchange = try exchange([NotModified(mode: mode)])
        for share in ["a", "b"] {
            try respond(
                exchange, "of \(share)",
                ["Cache-Control: max-age=60", "ETag: \"\(share)\"", "Set-Cookie: sid=\(share)"])
            #expect(try await text(exchange, get(share)) == "of \(share)")
        }
        for share in ["a", "b"] {
            exchange.upstream.respond(
                with: HttpResponse(.notModified, fields: try CacheStage.fields(["ETag: \"\(share)\""])))
            let response = try await exchange.send(try get(share))
            #expect(response.content.text == "of \(share)" && response.fields[.setCookie] == nil)
            #expect(exchange.upstream.requests.last?.fields[.ifNoneMatch] == "\"\(share)\"")
        }
    }

    // MARK: coalesce

    private func crowd(_ exchange: TestExchange, _ requests: [HttpRequest], upstream: Int) async throws -> [String?] {
        var pending: [TestExchange.Pending] = []
        for request in requests { pending.append(await exchange.start(request)) }
        while exchange.upstream.requests.count < upstream { await Task.yield() }
        await exchange.advance(by: .seconds(1))
        var texts: [String?] = []
        for one in pending { texts.append(try await one.response().content.text) }
        return texts
    }

    @Test func `coalesce lets requests wait for those of the same share only`() async throws {
        for ware in [Coalesce() as any Ware, cache()] {
            let exchange = try exchange([ware])
            for text in ["of a", "of b"] {
                exchange.upstream.respond(
                    with: HttpResponse(.ok, fields: ["Cache-Control": "max-age=60"], content: .text(text)),
                    after: .seconds(1))
            }
            let requests = try (0..<10).map { try get($0 % 2 == 0 ? "a" : "b") }
            let texts = try await crowd(exchange, requests, upstream: 2)
            #expect(exchange.upstream.requests.count == 2)
            let firsts = [texts[0], texts[1]]
            #expect(Set(firsts) == ["of a", "of b"])
            for (index, text) in texts.enumerated() { #expect(text == firsts[index % 2]) }
        }
    }

    // MARK: idempotencyKey

    private func order(_ share: String, _ key: String = "order-77") throws -> HttpRequest {
        let fields = try CacheStage.fields(["Share: \(share)", "Idempotency-Key: \(key)"])
        return .post("/pay", fields: fields, content: .text("amount=5"))
    }

    @Test func `idempotencyKey sends a request once, whatever share its repetitions are given to`() async throws {
        let exchange = try exchange([IdempotencyKey(store: MemoryRecords(limit: .mebibytes(8)))])
        for (index, key) in ["k1", "k2", "k3"].enumerated() {
            try respond(exchange, "charged \(index)", [])
            for share in ["a", "b", "b", "a"] {
                #expect(try await text(exchange, order(share, key)) == "charged \(index)")
            }
        }
        #expect(exchange.upstream.requests.count == 3)
    }

    @Test func `while the first request is under way in one share, a repetition in the other one is refused`()
        async throws
    {
        let exchange = try exchange([IdempotencyKey(store: MemoryRecords(limit: .mebibytes(8)))])
        exchange.upstream.respond(with: HttpResponse(.ok, content: .text("charged")), after: .seconds(1))
        let first = await exchange.start(try order("a"))
        while exchange.upstream.requests.isEmpty { await Task.yield() }
        #expect(try await exchange.send(try order("b")).status == .conflict)
        await exchange.advance(by: .seconds(1))
        #expect(try await first.response().content.text == "charged")
        #expect(try await text(exchange, order("b")) == "charged")
        #expect(exchange.upstream.requests.count == 1)
    }

    // MARK: rateLimit

    @Test func `rateLimit counts a client's requests of all shares together`() async throws {
        let limit = try TestExchange.make(RateLimit.self, ["rate": "2/m"])
        let exchange = try exchange([limit])
        exchange.upstream.always(respondWith: HttpResponse(.ok))
        var codes: [Int] = []
        for share in ["a", "b", "a", "b"] { codes.append(try await exchange.send(try get(share)).status.code) }
        #expect(codes == [200, 200, 429, 429])
    }
}
