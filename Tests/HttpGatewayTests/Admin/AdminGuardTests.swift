import HttpWare
import HttpWareTesting
import Testing

@testable import HttpGateway

@Suite struct AdminGuardTests {
    private let endpoints = [
        AdminEndpoint(path: "/open", access: .everybody) { _, _ in .abort(with: .plain(.ok, "open")) },
        AdminEndpoint(path: "/known", access: .known) { _, _ in .abort(with: .plain(.ok, "known")) },
        AdminEndpoint(path: "/v1/known", access: .known) { _, _ in .abort(with: .plain(.ok, "known")) },
        AdminEndpoint(path: "/named/*", access: .local) { request, _ in .abort(with: .plain(.ok, "\(request.argument)"))
        },
    ]

    private func status(
        _ path: String, host: String, bind: String = "127.0.0.1:9900", token: String? = nil, fields: HttpFields = [:]
    ) async throws -> Int {
        var setting = TestExchange.Setting()
        setting.bind = SocketAddress(bind)
        let bound = try #require(SocketAddress(bind))
        let api = AdminApi(guarding: AdminGuard(bind: bound, token: token.map { Secret($0) }), endpoints: endpoints)
        let exchange = try TestExchange([api, AdminFields()], setting: setting)
        var fields = fields
        try fields.append(.host, host)
        return try await exchange.send(.get(path, fields: fields)).status.code
    }

    @Test(arguments: ["localhost", "localhost:1", "127.0.0.1:9900", "127.1.2.3", "[::1]", "192.0.2.5:9900"])
    func `a host that is ours is answered`(host: String) async throws {
        #expect(try await status("/known", host: host, bind: "192.0.2.5:9900") == 200)
    }

    @Test(arguments: ["evil.example", "127.0.0.1.evil.example", "localhost.example", "192.0.2.6", "[2001:db8::1]"])
    func `a host that is not ours is 403, but for probes`(host: String) async throws {
        #expect(try await status("/known", host: host, bind: "192.0.2.5:9900") == 403)
        #expect(try await status("/nothing", host: host, bind: "192.0.2.5:9900") == 403)
        #expect(try await status("/open", host: host, bind: "192.0.2.5:9900") == 200)
    }

    @Test func `bound to every address, any address is ours, and no name`() async throws {
        #expect(try await status("/known", host: "203.0.113.9:9900", bind: "0.0.0.0:9900") == 200)
        #expect(try await status("/known", host: "gateway.internal", bind: "0.0.0.0:9900") == 403)
    }

    @Test func `on a Unix socket any host is ours`() async throws {
        #expect(try await status("/known", host: "anything", bind: "unix:/run/admin.sock") == 200)
    }

    @Test func `whoever shows the token may name any host`() async throws {
        let bearer: HttpFields = ["Authorization": "Bearer 0123456789abcdef"]
        #expect(try await status("/known", host: "gateway.internal", token: "0123456789abcdef", fields: bearer) == 200)
        #expect(try await status("/known", host: "localhost", token: "0123456789abcdef") == 401)
        #expect(try await status("/named/x", host: "localhost", token: "0123456789abcdef") == 200)
    }

    @Test(arguments: [
        "", "0", "0123456789abcde", "0123456789abcdeF", "0123456789abcdef0", "0123456789abcdef0123456789abcdef",
    ])
    func `only the token itself is equal to it`(given: String) {
        #expect(!AdminGuard.isEqual(Array(given.utf8), Array("0123456789abcdef".utf8)))
        #expect(AdminGuard.isEqual(Array(given.utf8), Array(given.utf8)))
        #expect(!AdminGuard.isEqual(Array("a".utf8), []))
    }

    private let token = "0123456789abcdef"

    private func answer(_ target: String, fields: HttpFields = [:]) async throws -> HttpResponse {
        var setting = TestExchange.Setting()
        setting.bind = SocketAddress("127.0.0.1:9900")
        let bound = try #require(SocketAddress("127.0.0.1:9900"))
        let page = AdminEndpoint(path: "/", access: .local) { _, _ in .abort(with: .plain(.ok, "page")) }
        let api = AdminApi(guarding: AdminGuard(bind: bound, token: Secret(token)), endpoints: endpoints + [page])
        let exchange = try TestExchange([api, AdminFields()], setting: setting)
        var fields = fields
        try fields.append(.host, "127.0.0.1:9900")
        return try await exchange.send(.get(target, fields: fields))
    }

    @Test func `the URL with the token sets a cookie for this origin alone, and goes on without the token`()
        async throws
    {
        let response = try await answer("/?token=\(token)")
        #expect(response.status.code == 303 && response.fields[.location] == "/")
        #expect(
            response.fields[.setCookie]
                == "httpware-admin-9900=\(token); Path=/; HttpOnly; SameSite=Strict")
        for target in ["/?token=", "/?token=0123456789abcdeg", "/?token"] {
            let refused = try await answer(target)
            #expect(refused.status.code == 403 && !refused.fields.contains(.setCookie), "\(target)")
        }
        #expect(try await answer("/?tokens=x").status.code == 200)
    }

    @Test(arguments: [
        ("httpware-admin-9900=0123456789abcdef", 200), ("a=b; httpware-admin-9900=0123456789abcdef; c", 200),
        ("httpware-admin-9900=0123456789abcdeg", 401), ("httpware-admin-9900=", 401), ("httpware-admin-9900", 401),
        ("httpware-admin-9901=0123456789abcdef", 401), ("", 401),
    ])
    func `the cookie of this listener opens it`(cookie: String, status: Int) async throws {
        var fields = HttpFields()
        try fields.append(.cookie, cookie)
        #expect(try await answer("/v1/known", fields: fields).status.code == status)
    }

    @Test(arguments: [("same-origin", 200), ("none", 200), ("same-site", 401), ("cross-site", 403), ("odd", 401)])
    func `a page of another port does not come in by the cookie`(site: String, status: Int) async throws {
        var fields = HttpFields()
        try fields.append(.cookie, "httpware-admin-9900=\(token)")
        try fields.append("Sec-Fetch-Site", site)
        #expect(try await answer("/v1/known", fields: fields).status.code == status)
    }

    @Test func `a path with a star takes one segment`() {
        let endpoint = endpoints[3]
        #expect(endpoint.argument(in: "/named/a%2Fb") == "a%2Fb")
        for other in ["/named", "/named/", "/named/a/b", "/other/a"] { #expect(endpoint.argument(in: other) == nil) }
        #expect(endpoints[0].argument(in: "/open") == "")
        #expect(endpoints[0].argument(in: "/open/") == nil)
    }

    @Test func `a parameter is found by its whole name`() {
        let request = AdminRequest(argument: "", query: "limits=1&limit=2&limit=3&x")
        #expect(request.parameter("limit") == "2")
        #expect(request.parameter("x") == "")
        #expect(request.parameter("lim") == nil)
        #expect(AdminRequest(argument: "", query: nil).parameter("limit") == nil)
    }

    @Test(arguments: [
        ("cross-site", 403), ("Cross-Site", 403), ("same-origin", 200), ("none", 200), ("same-site", 200),
    ])
    func `a page of another site gets nothing under v1 - Fetch Metadata`(site: String, status: Int) async throws {
        var fields = HttpFields()
        try fields.append("Sec-Fetch-Site", site)
        let bearer = "Bearer 0123456789abcdef"
        #expect(try await self.status("/v1/known", host: "localhost", fields: fields) == status)
        #expect(try await self.status("/named/x", host: "localhost", fields: fields) == 200, "a link to the page works")
        try fields.append(.authorization, bearer)
        #expect(
            try await self.status("/v1/known", host: "localhost", token: "0123456789abcdef", fields: fields) == status)
    }
}
