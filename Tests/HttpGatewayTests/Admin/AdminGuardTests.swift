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
    func `a foreign host is 403, except for probes`(host: String) async throws {
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

    @Test func `a client that shows the token may name any host`() async throws {
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

    @Test func `the URL with the token leads to the page with a code, and sets no cookie`() async throws {
        let response = try await answer("/?token=\(token)")
        #expect(response.status.code == 303 && !response.fields.contains(.setCookie))
        let location = try #require(response.fields[.location])
        #expect(location.hasPrefix("/#open=") && !location.contains(token))
        for target in ["/?token=", "/?token=0123456789abcdeg", "/?token"] {
            let refused = try await answer(target)
            #expect(refused.status.code == 403 && !refused.fields.contains(.location), "\(target)")
        }
        #expect(try await answer("/?tokens=x").status.code == 200)
    }

    @Test(arguments: [nil, "same-origin", "none", "same-site"])
    func `no cookie opens the listener, whatever other fields say`(site: String?) async throws {
        for cookie in ["httpware-admin-9900=\(token)", "httpware-session=\(token)", "token=\(token)"] {
            var fields = HttpFields()
            try fields.append(.cookie, cookie)
            if let site { try fields.append("Sec-Fetch-Site", site) }
            #expect(try await answer("/v1/known", fields: fields).status.code == 401)
        }
    }

    /// A listener whose sessions outlast a request.
    private struct Stand {
        let exchange: TestExchange
        let sessions: AdminSessions

        init(token: String?, sessions: AdminSessions = AdminSessions()) throws {
            self.sessions = sessions
            var setting = TestExchange.Setting()
            setting.bind = SocketAddress("127.0.0.1:9900")
            let bound = try #require(SocketAddress("127.0.0.1:9900"))
            let guarding = AdminGuard(bind: bound, token: token.map { Secret($0) }, sessions: sessions)
            let known = AdminEndpoint(path: "/v1/known", access: .known) { _, _ in .abort(with: .plain(.ok, "known")) }
            let page = AdminEndpoint(path: "/", access: .local) { _, _ in .abort(with: .plain(.ok, "page")) }
            let api = AdminApi(guarding: guarding, endpoints: [known, page] + AdminEndpoint.sessions(guarding))
            exchange = try TestExchange([api, AdminFields()], setting: setting)
        }

        func send(_ method: HttpMethod, _ target: String, _ bearer: String?) async throws -> HttpResponse {
            var fields: HttpFields = ["Host": "127.0.0.1:9900"]
            if let bearer { try fields.append(.authorization, bearer.isEmpty ? "Bearer" : "Bearer \(bearer)") }
            return try await exchange.send(.make(method, target, fields: fields))
        }

        /// The text of the only member of an answer.
        func text(_ target: String, _ bearer: String?) async throws -> String? {
            let content = try await send(.post, target, bearer).content.text ?? ""
            let parts = content.split(separator: "\"")
            return parts.count == 5 ? String(parts[3]) : nil
        }
    }

    @Test func `the token and a code begin a session, which is neither of them`() async throws {
        let stand = try Stand(token: token)
        let session = try #require(try await stand.text("/v1/session", token))
        #expect(session != token && session.utf8.count == 32)
        #expect(try await stand.send(.get, "/v1/known", session).status.code == 200)
        let code = try #require(try await stand.text("/v1/session/code", token))
        #expect(try await stand.send(.get, "/v1/known", code).status.code == 401, "a code is no session")
        let other = try #require(try await stand.text("/v1/session", code))
        #expect(Set([session, other, code, token]).count == 4)
        #expect(try await stand.send(.post, "/v1/session", code).status.code == 401, "a code counts once")
        #expect(try await stand.send(.get, "/v1/known", other).status.code == 200)
        for wrong in [nil, "", "x", session + "x", String(session.dropLast())] {
            #expect(try await stand.send(.post, "/v1/session", wrong).status.code == 401)
            #expect(try await stand.send(.post, "/v1/session/code", wrong).status.code == 401)
            #expect(try await stand.send(.get, "/v1/known", wrong).status.code == 401)
        }
        #expect(try await stand.send(.get, "/v1/session", token).status.code == 405)
        stand.sessions.end()
        #expect(try await stand.send(.get, "/v1/known", session).status.code == 401)
    }

    @Test func `without a token there is no session`() async throws {
        let stand = try Stand(token: nil)
        #expect(try await stand.send(.post, "/v1/session", nil).content.text == "{\"session\":null}\n")
        #expect(try await stand.send(.post, "/v1/session/code", nil).content.text == "{\"code\":null}\n")
    }

    @Test func `sessions end when they are not used, and codes after a minute`() {
        let sessions = AdminSessions()
        let start = LoopInstant(nanoseconds: 0)
        let session = sessions.begin(at: start)[...]
        #expect(sessions.holds(session, at: start + .seconds(12 * 3600)))
        #expect(sessions.holds(session, at: start + .seconds(24 * 3600)))
        #expect(!sessions.holds(session, at: start + .seconds(36 * 3600 + 1)))
        let codes = (0..<2).map { _ in sessions.makeCode(at: start)[...] }
        #expect(sessions.redeem(codes[0], at: start + .seconds(60)))
        #expect(!sessions.redeem(codes[0], at: start + .seconds(60)))
        #expect(!sessions.redeem(codes[1], at: start + .seconds(61)))
    }

    @Test func `sessions and codes are bounded, and the one that was unused for the longest time goes`() {
        let sessions = AdminSessions()
        let made = (0..<AdminSessions.most).map { sessions.begin(at: LoopInstant(nanoseconds: Int64($0)))[...] }
        let later = LoopInstant(nanoseconds: 1_000_000)
        #expect(sessions.holds(made[0], at: later))
        _ = sessions.begin(at: later)
        #expect(sessions.holds(made[0], at: later) && !sessions.holds(made[1], at: later))
        let codes = (0..<100).map { _ in sessions.makeCode(at: later)[...] }
        #expect(codes.filter { sessions.redeem($0, at: later) }.count == 16)
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
