import HttpWareTesting
import Testing
import Wares

@testable import HttpWare

@Suite struct RewriteTests {
    private func upstream(
        _ options: ConfigNode, _ request: HttpRequest, captures: [(name: String, value: String)] = []
    ) async throws -> HttpRequest {
        var setting = TestExchange.Setting()
        setting.captures = captures
        let exchange = try TestExchange(Rewrite.self, options: options, setting: setting)
        let response = try await exchange.send(request)
        #expect(response.status == .ok)
        return try #require(exchange.upstream.requests.first)
    }

    @Test(arguments: [
        ("/api/v1/users", "/users"), ("/api/v1", "/"), ("/api/v1/", "/"), ("/api/v10/users", "/api/v10/users"),
        ("/other", "/other"), ("/%61pi/v1/x", "/x"), ("/api/v1/a%2Fb", "/a%2Fb"),
        // Two slashes in front would name a host.
        ("/api/v1//evil.test/x", "/evil.test/x"), ("/api/v1///", "/"), ("/api/v1/\\evil.test", "/evil.test"),
        ("//api/v1/x", "//api/v1/x"),
    ])
    func `strip takes whole segments off the front of the normal path`(path: String, expected: String) async throws {
        #expect(try await upstream(["path": ["strip": "/api/v1"]], .get(path)).receivedTarget == expected)
    }

    @Test func `the origin server is told what strip removed`() async throws {
        let options: ConfigNode = ["path": ["strip": "/shop"]]
        let claim: HttpFields = ["X-Forwarded-Prefix": "/claimed"]
        #expect(try await upstream(options, .get("/shop/a", fields: claim)).fields["X-Forwarded-Prefix"] == "/shop")
        // Nothing was removed.
        #expect(try await !upstream(options, .get("/a")).fields.contains("X-Forwarded-Prefix"))
        let off: ConfigNode = ["path": ["strip": "/shop", "prefix": "false"]]
        #expect(try await !upstream(off, .get("/shop/a")).fields.contains("X-Forwarded-Prefix"))
    }

    @Test func `a prefix that a trusted proxy removed comes first`() async throws {
        var setting = TestExchange.Setting()
        setting.peer = SocketAddress("203.0.113.7:50000")
        setting.trustedProxies = [try #require(IPNetwork("203.0.113.0/24"))]
        let exchange = try TestExchange(Rewrite.self, options: ["path": ["strip": "/shop"]], setting: setting)
        _ = try await exchange.send(.get("/shop/a", fields: ["X-Forwarded-Prefix": "/outer"]))
        #expect(try #require(exchange.upstream.requests.first).fields["X-Forwarded-Prefix"] == "/outer/shop")
    }

    @Test func `prefixes that two wares remove are joined, and do not grow when the request is sent again`() {
        let first = StrippedPrefix("", of: "/a/b/x").removing("/a", from: "/a/b/x", replacedBy: "")
        #expect(first.prefix == "/a")
        let second = first.removing("/b", from: "/b/x", replacedBy: "")
        #expect(second.prefix == "/a/b")
        #expect(second.removing("/b", from: "/b/x", replacedBy: "") == second)
        #expect(second.removing("/a", from: "/a/b/x", replacedBy: "") == first)
    }

    @Test(arguments: [
        ("/login", "/shop/login"), ("/", "/shop/"), ("/?a=/b", "/shop/?a=/b"), ("/shop/login", "/shop/login"),
        ("/shop", "/shop"), ("/shop?a", "/shop?a"), ("/shopping", "/shop/shopping"),
    ])
    func `a reference of the origin server is put back under the prefix, once`(path: String, expected: String) {
        #expect(StrippedPrefix("/shop").reference(path) == expected)
    }

    @Test(arguments: [("/v2/x", "/api/x"), ("/v2", "/api"), ("/other", "/other"), ("/v20/x", "/v20/x")])
    func `with add, only references below the added segments are put back`(path: String, expected: String) {
        #expect(StrippedPrefix("/api", replacedBy: "/v2").reference(path) == expected)
    }

    @Test(arguments: [("/users", "/v2/users"), ("/", "/v2/")])
    func `add puts segments in front`(path: String, expected: String) async throws {
        #expect(try await upstream(["path": ["add": "/v2/"]], .get(path)).receivedTarget == expected)
    }

    @Test(arguments: [("/api/v1/users", "/v2/users"), ("/api/v1", "/v2"), ("/x", "/v2/x")])
    func `strip comes before add`(path: String, expected: String) async throws {
        let options: ConfigNode = ["path": ["add": "/v2", "strip": "/api/v1"]]
        #expect(try await upstream(options, .get(path)).receivedTarget == expected)
    }

    @Test(arguments: [("/item-42", "/items/42"), ("/item-x", "/item-x"), ("/item-4?a=1", "/items/4?a=1")])
    func `regex replaces its first match, with groups`(target: String, expected: String) async throws {
        let options: ConfigNode = ["path": ["regex": "^/item-([0-9]+)$", "to": "/items/$1"]]
        #expect(try await upstream(options, .get(target)).receivedTarget == expected)
    }

    @Test func `a regex that leaves no path refuses the request`() async throws {
        let exchange = try TestExchange(Rewrite.self, options: ["path": ["regex": "^/", "to": ""]])
        #expect(try await exchange.send(.get("/a")).status == .badRequest)
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test func `a regex leaves no path that begins with a host`() async throws {
        let options: ConfigNode = ["path": ["regex": "^/api", "to": ""]]
        #expect(try await upstream(options, .get("/api//evil.test/x")).receivedTarget == "/evil.test/x")
    }

    @Test func `a regex in its limit fails closed`() async throws {
        let exchange = try TestExchange(Rewrite.self, options: ["path": ["regex": "^/(a+)+$", "to": "/x"]])
        let path = "/" + String(repeating: "a", count: 4000) + "!"
        #expect(try await exchange.send(.get(path)).status == .internalServerError)
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test func `a path that is not changed goes on as it was received`() async throws {
        #expect(try await upstream(["path": ["strip": "/api"]], .get("/%7euser")).receivedTarget == "/%7euser")
    }

    @Test(arguments: [
        ("/?page=2&debug=1", "/?p=2&source=gateway"), ("/", "/?source=gateway"),
        ("/?d%65bug=1&a=%20b", "/?a=%20b&source=gateway"), ("/?source=client&x", "/?x&source=gateway"),
        ("/?page", "/?p&source=gateway"),
    ])
    func `query parameters are renamed, removed and set, by decoded names`(target: String, expected: String)
        async throws
    {
        let options: ConfigNode = [
            "query": ["rename": ["page": "p"], "remove": ["debug"], "set": ["source": "gateway"]]
        ]
        #expect(try await upstream(options, .get(target)).receivedTarget == expected)
    }

    @Test func `a query whose last parameter is removed loses its question mark`() async throws {
        #expect(try await upstream(["query": ["remove": ["a"]]], .get("/x?a=1")).receivedTarget == "/x")
    }

    @Test func `a fixed value is percent-encoded, a placeholder's is as received`() async throws {
        let options: ConfigNode = ["query": ["set": ["q": "a b&c=d", "p": "{path.id}"]]]
        let request = try await upstream(options, .get("/"), captures: [("id", "7%20x")])
        #expect(request.receivedTarget == "/?q=a%20b%26c%3Dd&p=7%20x")
    }

    @Test(arguments: ["a&admin=1", "a#b", "a b", "a\r\nb"])
    func `a placeholder that would add a parameter or break the target refuses the request`(value: String) async throws
    {
        var setting = TestExchange.Setting()
        setting.captures = [("id", value)]
        let exchange = try TestExchange(
            Rewrite.self, options: ["query": ["set": ["q": "{path.id}"]]], setting: setting)
        #expect(try await exchange.send(.get("/")).status == .badRequest)
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test func `host names another authority`() async throws {
        let request = try await upstream(
            ["host": "{path.tenant}.example.com"], .get("/"), captures: [("tenant", "acme")])
        #expect(request.fields.values(of: .host) == ["acme.example.com"])
    }

    @Test func `an invalid host refuses the request`() async throws {
        var setting = TestExchange.Setting()
        setting.captures = [("tenant", "a/b")]
        let exchange = try TestExchange(Rewrite.self, options: ["host": "{path.tenant}"], setting: setting)
        #expect(try await exchange.send(.get("/")).status == .badRequest)
    }

    @Test func `the method changes, but HEAD stays HEAD`() async throws {
        #expect(try await upstream(["method": "POST"], .get("/")).method == .post)
        #expect(try await upstream(["method": "POST"], .make(.head, "/")).method == .head)
    }

    @Test func `CONNECT keeps its target`() throws {
        let ware = try TestExchange.make(
            Rewrite.self, ["path": ["add": "/x"], "query": ["set": ["a": "1"]], "method": "GET"])
        var request = try HttpRequest(.connect, "example.com:443")
        guard case .pass = try ware.handle(&request, in: Exchange(loop: try EventLoop(name: "rewrite"))) else {
            Issue.record("not passed")
            return
        }
        #expect(request.method == .connect)
        #expect(request.receivedTarget == "example.com:443")
        #expect(request.query == nil)
    }

    @Test(
        arguments: [
            [:], ["path": ["strip": "api"]], ["path": ["strip": "/a/../b"]], ["path": ["strip": "/"]],
            ["path": ["add": "/a?b"]], ["path": ["regex": "a"]], ["path": ["to": "/a"]],
            ["path": ["regex": "(", "to": "/a"]], ["path": ["regex": "a", "to": "/a?b=1"]], ["host": "a b"],
            ["method": "get"], ["method": "CONNECT"], ["method": "HEAD"], ["query": ["sett": ["a": "b"]]],
        ] as [ConfigNode])
    func `options that cannot be meant are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(Rewrite.self, options) }
    }

    @Test(arguments: [("/x/{path.id}", 1), ("/x/{request.host}", 1), ("/x/{id}", 0), ("/x/{{a}}", 0)])
    func `placeholders that would not be filled in are told at load`(to: String, warnings: Int) {
        let options: ConfigNode = ["path": ["regex": "^/a$", "to": ConfigNode(.scalar(to, isQuoted: true))]]
        var reader = OptionsReader(options, keyPath: "rewrite")
        _ = Rewrite(options: &reader)
        let found = reader.finish()
        #expect(found.map(\.severity) == Array(repeating: .warning, count: warnings))
        #expect(found.allSatisfy { $0.keyPath == "rewrite.path.to" && $0.message.contains("not filled in") })
    }
}
