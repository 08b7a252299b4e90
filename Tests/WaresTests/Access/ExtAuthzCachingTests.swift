import HttpWareTesting
import Testing

@testable import HttpWare
@testable import GatewayWares
@testable import Wares

@Suite(.timeLimit(.minutes(10))) struct ExtAuthzCachingTests {
    private static let url = ExtAuthzTests.url
    private let calls = ScriptedCalls()

    private func exchange(
        ttl: Duration? = nil, isCached: Bool = true, coalesce: Bool = true,
        _ change: (inout ExtAuthz) -> Void = { _ in }
    ) throws -> TestExchange {
        var caching = ExtAuthzCaching()
        caching.ttl = ttl
        var ware = try ExtAuthz(
            url: Self.url, coalesce: coalesce, caching: isCached ? caching : nil, client: calls)
        change(&ware)
        return try TestExchange([ware])
    }

    private func answer(_ status: Int, _ fields: HttpFields = [:]) {
        calls.script(Self.url, .respond(HttpResponse(HttpStatus(status)!, fields: fields)))
    }

    @Test func `an answer is remembered for its lifetime, with all that follows from it`() async throws {
        answer(200, ["Cache-Control": "max-age=60", "Age": "10", "Remote-User": "ada"])
        let exchange = try exchange { $0.copy = ["Remote-User"] }
        for (pause, asked) in [(0, 1), (49, 1), (1, 2)] {
            await exchange.advance(by: .seconds(pause))
            #expect(try await exchange.send(.get("/", fields: ["Remote-User": "root"])).status == .ok)
            #expect(calls.requests.count == asked)
        }
        #expect(exchange.upstream.requests.map { $0.fields.values(of: "Remote-User") } == [["ada"], ["ada"], ["ada"]])
    }

    @Test(
        arguments: [
            (200, [:], nil, false), (200, [:], 30, true), (200, ["Cache-Control": "max-age=60"], nil, true),
            (200, ["Cache-Control": "private, max-age=60"], nil, true),
            (200, ["Cache-Control": "max-age=0"], 30, false),
            (200, ["Cache-Control": "no-store, max-age=60"], 30, false),
            (200, ["Cache-Control": "no-cache"], 30, false),
            (200, ["Cache-Control": "max-age=60", "Set-Cookie": "a=b"], 30, false),
            (200, ["Cache-Control": "max-age=60", "Vary": "Cookie, X-Forwarded-Uri"], nil, true),
            (200, ["Cache-Control": "max-age=60", "Vary": "Accept-Language"], 30, false),
            (200, ["Cache-Control": "max-age=60", "Vary": "*"], 30, false),
            (401, ["Cache-Control": "max-age=60"], nil, true), (403, ["Cache-Control": "max-age=60"], nil, true),
            (401, [:], 30, false), (403, [:], 30, false), (302, ["Cache-Control": "max-age=60"], 30, false),
            (404, ["Cache-Control": "max-age=60"], 30, false), (500, ["Cache-Control": "max-age=60"], 30, false),
            (200, ["Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"], nil, false),
        ] as [(Int, HttpFields, Int?, Bool)])
    func `RFC 9111 §3, only what may be stored is`(
        status: Int, fields: HttpFields, ttl: Int?, isStored: Bool
    ) async throws {
        answer(status, fields)
        let exchange = try exchange(ttl: ttl.map { .seconds($0) })
        for _ in 0..<2 { _ = try await exchange.send(.get("/")) }
        #expect(calls.requests.count == (isStored ? 1 : 2))
    }

    @Test func `ttl cuts a longer lifetime, and a shorter one stays`() async throws {
        for (stated, left) in [(600, 30), (5, 5)] {
            var fields = HttpFields()
            try fields.append(.cacheControl, "max-age=\(stated)")
            answer(200, fields)
            let exchange = try exchange(ttl: .seconds(30))
            let before = calls.requests.count
            _ = try await exchange.send(.get("/"))
            await exchange.advance(by: .seconds(left - 1))
            _ = try await exchange.send(.get("/"))
            #expect(calls.requests.count == before + 1)
            await exchange.advance(by: .seconds(1))
            _ = try await exchange.send(.get("/"))
            #expect(calls.requests.count == before + 2)
        }
    }

    /// Each asks for itself: none may have another one's answer.
    private static var different: [HttpRequest] {
        var requests: [HttpRequest] = [
            .get("/"), .make(.head, "/"), .get("/a"), .get("/?"), .get("/?a"),
            .get("/", fields: ["Host": "other.test"]),
            .get("/", fields: ["Authorization": "a"]), .get("/", fields: ["Authorization": "b"]),
            .get("/", fields: ["Authorization": ""]), .get("/", fields: ["Cookie": "a"]),
            .get("/", fields: ["Authorization": "a", "Cookie": "a"]), .get("/", fields: ["Sec-Fetch-Mode": "navigate"]),
            .get("/%61"),
        ]
        var cookies: HttpFields = ["Cookie": "a"]
        try? cookies.append(.cookie, "")
        requests.append(.get("/", fields: cookies))
        return requests
    }

    @Test func `method, target, host and credentials tell requests apart, whatever they are`() async throws {
        answer(200, ["Cache-Control": "max-age=60"])
        let exchange = try exchange()
        for _ in 0..<2 {
            for request in Self.different { _ = try await exchange.send(request) }
            #expect(calls.requests.count == Self.different.count)
        }
    }

    @Test func `one client's answer is not another's, who has no credentials either`() async throws {
        answer(200, ["Cache-Control": "max-age=60"])
        let caching = ExtAuthzCaching()
        let ware = try ExtAuthz(url: Self.url, caching: caching, client: calls)
        for peer in ["10.0.0.1:1", "203.0.113.7:1", "10.0.0.1:2"] {
            _ = try await TestExchange(observing: [ware], peer: peer).send(.get("/"))
        }
        #expect(calls.requests.count == 2)
    }

    @Test(arguments: [[FieldName.authorization], [.cookie]])
    func `a remembered answer admits no request with two Authorization fields`(key: [FieldName]) async throws {
        answer(200, ["Cache-Control": "max-age=60"])
        var caching = ExtAuthzCaching()
        caching.key = key
        let exchange = try TestExchange([try ExtAuthz(url: Self.url, caching: caching, client: calls)])
        var fields: HttpFields = ["Authorization": "a"]
        #expect(try await exchange.send(.get("/", fields: fields)).status == .ok)
        try fields.append(.authorization, "b")
        #expect(try await exchange.send(.get("/", fields: fields)).status == .badRequest)
    }

    @Test func `content that the server judges is part of the key`() async throws {
        answer(200, ["Cache-Control": "max-age=60"])
        let exchange = try exchange { $0.body = 100 }
        for content in ["a", "b", "a"] { _ = try await exchange.send(.post("/", content: .text(content))) }
        #expect(calls.requests.count == 2)
    }

    @Test(arguments: [true, false]) func `concurrent requests share one call, if they may and have one key`(
        coalesce: Bool
    ) async throws {
        calls.script(Self.url, .hold)
        let exchange = try exchange(isCached: false, coalesce: coalesce)
        var pending: [TestExchange.Pending] = []
        for _ in 0..<2 { for request in Self.different { pending.append(await exchange.start(request)) } }
        #expect(calls.requests.count == Self.different.count * (coalesce ? 1 : 2))
        calls.release(with: .respond(HttpResponse(.forbidden, content: .text("no"))))
        for one in pending { #expect(try await one.response().status == .forbidden) }
    }

    @Test func `an answer with a cookie is for one request; the others ask again`() async throws {
        calls.script(Self.url, .hold)
        let exchange = try exchange(isCached: false)
        var pending: [TestExchange.Pending] = []
        for _ in 0..<3 { pending.append(await exchange.start(.get("/"))) }
        #expect(calls.requests.count == 1)
        answer(200, ["Set-Cookie": "again=1"])
        calls.release(with: .respond(HttpResponse(.ok, fields: ["Set-Cookie": "first=1"])))
        var cookies: [String] = []
        for one in pending { cookies += try await one.response().fields.values(of: .setCookie) }
        #expect(cookies.sorted() == ["again=1", "again=1", "first=1"])
        #expect(calls.requests.count == 3)
    }

    @Test func `a client that leaves does not end the call of the others`() async throws {
        calls.script(Self.url, .hold)
        let exchange = try exchange(isCached: false)
        let first = await exchange.start(.get("/"))
        let second = await exchange.start(.get("/"))
        await first.leave()
        calls.release(with: .respond(HttpResponse(.ok)))
        #expect(try await second.response().status == .ok)
        #expect(calls.requests.count == 1)
    }

    @Test func `at most 1,000 calls run at the same time`() async throws {
        calls.script(Self.url, .hold)
        let exchange = try exchange(isCached: false, coalesce: false)
        var pending: [TestExchange.Pending] = []
        for _ in 0..<ExtAuthzCall.most { pending.append(await exchange.start(.get("/"))) }
        #expect(try await exchange.send(.get("/")).status == .serviceUnavailable)
        calls.release(with: .respond(HttpResponse(.ok)))
        for one in pending { #expect(try await one.response().status == .ok) }
        answer(200)
        #expect(try await exchange.send(.get("/")).status == .ok)
    }

    // MARK: Options

    @Test(
        arguments: [
            [:], ["url": "auth"], ["url": "ftp://a.test/"], ["url": "http://a.test/", "method": "CONNECT"],
            ["url": "http://a.test/", "status": "200"], ["url": "http://a.test/", "status": "302"],
            ["url": "http://a.test/", "headers": ["Host"]], ["url": "http://a.test/", "headers": ["X-Forwarded-For"]],
            ["url": "http://a.test/", "headers": ["Content-Length"]], ["url": "http://a.test/", "copy": ["Host"]],
            ["url": "http://a.test/", "copy": ["Transfer-Encoding"]],
            ["url": "http://a.test/", "copyToResponse": ["Connection"]], ["url": "http://a.test/", "body": "11MiB"],
            ["url": "http://a.test/", "timeout": "0s"], ["url": "http://a.test/", "timeout": "61s"],
            ["url": "http://a.test/", "cache": ["ttl": "0s"]], ["url": "http://a.test/", "cache": ["maxEntries": "1"]],
            ["url": "http://a.test/", "cache": ["age": "1s"]], ["url": "http://a.test/", "cache": "true"],
            ["url": "http://a.test/", "signIn": "login"], ["url": "http://a.test/", "signIn": "{request.url}"],
            ["url": "http://a.test/", "signIn": "https://{request.header.X}/"],
            ["url": "http://a.test/", "failOpen": "1"],
        ] as [ConfigNode])
    func `options that cannot be meant are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(ExtAuthz.self, options) }
    }

    @Test func `options are read`() throws {
        let ware = try TestExchange.make(
            ExtAuthz.self,
            [
                "url": "https://a.test/", "method": "POST", "headers": ["X-Key"], "copy": ["Remote-User"],
                "body": "1KiB",
                "copyToResponse": [], "cache": ["ttl": "1m", "maxEntries": "50", "key": ["X-Key"]], "coalesce": "false",
                "signIn": "/login", "failOpen": "true", "status": "502",
            ])
        #expect(ware.headers == ["X-Key"] && ware.copy == ["Remote-User"] && ware.copyToResponse == [])
        #expect(ware.contentNeed == .whole(upTo: 1024) && ware.caching?.ttl == .seconds(60))
        #expect(ware.caching?.maxEntries == 50 && ware.caching?.key == ["X-Key"] && ware.call?.isShared == false)
        #expect(ware.signIn == "/login" && ware.failOpen && ware.status == .badGateway)
        #expect(try TestExchange.make(ExtAuthz.self, ["url": "https://a.test/"]).caching == nil)
        #expect(try TestExchange.make(ExtAuthz.self, ["url": "https://a.test/", "cache": [:]]).caching != nil)
    }

    @Test(
        arguments: [
            (["key": ["Authorization", "Cookie"]], []),
            (["key": ["Cookie"]], ["Authorization is sent to the server and is not in key"]),
            (["key": ["Authorization", "Cookie", "X-Other"]], ["key has X-Other, which is not sent to the server"]),
        ] as [(ConfigNode, [String])])
    func `check warns of a key that gives one client's answer to another`(cache: ConfigNode, warnings: [String]) {
        var options = OptionsReader(["url": "http://127.0.0.1/", "cache": cache], keyPath: "extAuthz")
        _ = ExtAuthz(options: &options)
        let found = options.finish()
        #expect(found.map(\.severity) == warnings.map { _ in .warning })
        #expect(zip(found, warnings).allSatisfy { $0.message.hasPrefix($1) }, "\(found)")
    }

    @Test func `check warns of credentials in clear text and of a key that clients choose`() {
        let node: ConfigNode = [
            "url": "http://auth.test/", "headers": ["Authorization", "Cookie", "X-Key"],
            "cache": ["key": ["Authorization", "Cookie", "X-Key"]],
        ]
        var options = OptionsReader(node, keyPath: "extAuthz")
        _ = ExtAuthz(options: &options)
        let found = options.finish().map(\.message)
        #expect(found.count == 2 && found[0].contains("clear text") && found[1].hasPrefix("key has X-Key: each value"))
    }
}
