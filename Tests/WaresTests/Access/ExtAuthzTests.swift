import HttpCaching
import HttpWareTesting
import Testing

@testable import HttpWare
@testable import GatewayWares
@testable import Wares

@Suite(.timeLimit(.minutes(10))) struct ExtAuthzTests {
    static let url = "http://127.0.0.1:9091/auth"
    private let calls = ScriptedCalls()

    /// A ware that asks the script.
    private func ware(
        coalesce: Bool = true, caching: ExtAuthzCaching? = nil, _ change: (inout ExtAuthz) -> Void = { _ in }
    ) throws -> ExtAuthz {
        var ware = try ExtAuthz(url: Self.url, coalesce: coalesce, caching: caching, client: calls)
        change(&ware)
        return ware
    }

    private func caching(ttl: Duration? = nil) -> ExtAuthzCaching {
        var caching = ExtAuthzCaching()
        caching.ttl = ttl
        return caching
    }

    private func answer(_ status: Int, _ fields: HttpFields = [:], _ content: String = "") {
        calls.script(Self.url, .respond(HttpResponse(HttpStatus(status)!, fields: fields, content: .text(content))))
    }

    private func setting(_ change: (inout TestExchange.Setting) -> Void) -> TestExchange.Setting {
        var setting = TestExchange.Setting()
        change(&setting)
        return setting
    }

    // MARK: The question

    @Test func `the server is told the target of the request, and the client that asks`() async throws {
        answer(200)
        let fields: HttpFields = [
            "Host": "App.test:8443", "Authorization": "Bearer a", "Cookie": "b=c", "Accept": "text/html",
            "X-Other": "d",
            "X-Requested-With": "XMLHttpRequest", "X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "https",
            "X-Forwarded-Host": "evil.test",
        ]
        let exchange = try TestExchange([try ware()])
        #expect(try await exchange.send(.make(.put, "/a%2Fb?c=d", fields: fields)).status == .ok)
        let question = try #require(calls.requests.first)
        #expect(question.method == .get && question.content.isEmpty)
        let expected: [FieldName: String] = [
            "X-Forwarded-Method": "PUT", .xForwardedProto: "http", .xForwardedHost: "app.test:8443",
            "X-Forwarded-Uri": "/a%2Fb?c=d", .xForwardedFor: "203.0.113.7", "X-Original-Method": "PUT",
            "X-Original-URI": "/a%2Fb?c=d", "X-Original-URL": "http://app.test:8443/a%2Fb?c=d",
            .authorization: "Bearer a", .cookie: "b=c", .accept: "text/html", "X-Requested-With": "XMLHttpRequest",
        ]
        for (name, value) in expected { #expect(question.fields.values(of: name) == [value], "\(name)") }
        #expect(question.fields.count == expected.count)
        let limits = try #require(calls.limits.first)
        #expect(limits.timeout == .seconds(1) && limits.redirects == 0 && limits.content == .kibibytes(128))
    }

    @Test func `a trusted proxy's forwarding fields are passed on`() async throws {
        answer(200)
        let setting = setting { $0.trustedProxies = [IPNetwork("203.0.113.0/24")!] }
        let fields: HttpFields = [
            "X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "public.test",
        ]
        _ = try await TestExchange([try ware()], setting: setting).send(.get("/", fields: fields))
        let question = try #require(calls.requests.first)
        #expect(question.fields[.xForwardedFor] == "192.0.2.1, 203.0.113.7")
        #expect(question.fields["X-Original-URL"] == "https://public.test/")
    }

    @Test func `the URI is the one that goes upstream, byte for byte`() async throws {
        answer(200)
        let rewrite = try TestExchange.make(Rewrite.self, ["path": ["strip": "/app"]])
        let exchange = try TestExchange([rewrite, try ware()])
        _ = try await exchange.send(.get("/app/%61?b"))
        #expect(calls.requests.first?.fields["X-Forwarded-Uri"] == exchange.upstream.requests.first?.upstreamTarget)
        _ = try await TestExchange([try ware()]).send(.get("/caf\u{e9}"))
        #expect(calls.requests.last?.fields.rawValues(of: "X-Forwarded-Uri") == [Array("/caf\u{e9}".utf8)])
    }

    @Test func `chosen fields are sent in place of the usual ones, without their twins`() async throws {
        answer(200)
        let exchange = try TestExchange([try ware { $0.headers = ["X-Key"] }])
        _ = try await exchange.send(
            .get("/", fields: ["Authorization": "a", "Cookie": "b", "X-Key": "c", "X_Key": "forged"]))
        let question = try #require(calls.requests.first)
        #expect(question.fields["X-Key"] == "c" && !question.fields.contains(.authorization))
        #expect(!question.fields.contains(.cookie))
        #expect(exchange.upstream.requests.first?.fields.contains("X_Key") == false)
    }

    @Test func `two Authorization fields are refused, and nothing is asked`() async throws {
        answer(200)
        var fields: HttpFields = ["Authorization": "a"]
        try fields.append(.authorization, "b")
        #expect(try await TestExchange([try ware()]).send(.get("/", fields: fields)).status == .badRequest)
        #expect(calls.requests.isEmpty)
    }

    @Test func `content is sent along up to its limit, and none by default`() async throws {
        answer(200)
        let request = HttpRequest.post("/", fields: ["Content-Type": "text/plain"], content: .text("abcd"))
        let exchange = try TestExchange([try ware { $0.body = 4 }])
        #expect(try await exchange.send(request).status == .ok)
        #expect(calls.requests.last?.content.text == "abcd")
        #expect(calls.requests.last?.fields[.contentType] == "text/plain")
        #expect(exchange.upstream.requests.first?.content.text == "abcd")
        #expect(try await exchange.send(.post("/", content: .text("abcde"))).status == .contentTooLarge)
        #expect(calls.requests.count == 1)
        #expect(try await TestExchange([try ware()]).send(request).status == .ok)
        #expect(calls.requests.last?.content.isEmpty == true)
        #expect(calls.requests.last?.fields.contains(.contentType) == false)
    }

    @Test func `on a forward listener the proxy's credentials are asked about, and 401 becomes 407`() async throws {
        answer(401, ["WWW-Authenticate": "Basic realm=\"a\""])
        let exchange = try TestExchange([try ware()], setting: setting { $0.isForward = true })
        var request = HttpRequest.get("http://a.test/", fields: ["Authorization": "own", "Cookie": "own"])
        request.proxyAuthorization = "Basic eA=="
        let response = try await exchange.send(request)
        #expect(response.status == .proxyAuthenticationRequired)
        #expect(response.fields[.proxyAuthenticate] == "Basic realm=\"a\"")
        #expect(!response.fields.contains(.wwwAuthenticate))
        let question = try #require(calls.requests.first)
        #expect(question.fields.values(of: .authorization) == ["Basic eA=="])
        #expect(!question.fields.contains(.cookie))
    }

    // MARK: What comes of the answer

    @Test(arguments: [200, 202, 204, 299]) func `2xx passes, and the copied fields go upstream`(status: Int)
        async throws
    {
        answer(status, ["Remote-User": "ada", "Remote-Groups": "a,b", "X-Secret": "c"])
        let seen = Seen("{principal}")
        let exchange = try TestExchange([try ware { $0.copy = ["Remote-User", "Remote-Groups", "Remote-Name"] }, seen])
        let forged: HttpFields = [
            "Remote-User": "root", "remote_user": "root", "REMOTE_GROUPS": "root", "Remote-Name": "root",
            "Remote_Name": "root",
        ]
        #expect(try await exchange.send(.get("/", fields: forged)).status == .ok)
        let fields = try #require(exchange.upstream.requests.first).fields
        #expect(fields.values(of: "Remote-User") == ["ada"] && fields.values(of: "Remote-Groups") == ["a,b"])
        for name: FieldName in ["Remote-Name", "remote_user", "REMOTE_GROUPS", "Remote_Name", "X-Secret"] {
            #expect(!fields.contains(name), "\(name)")
        }
        #expect(seen.principals == ["extAuthz ada", "ada"])
    }

    @Test func `Authorization is asked about, then replaced by the server's`() async throws {
        answer(200, ["Authorization": "Bearer inner"])
        let exchange = try TestExchange([try ware { $0.copy = [.authorization] }])
        _ = try await exchange.send(.get("/", fields: ["Authorization": "Bearer outer"]))
        #expect(calls.requests.first?.fields[.authorization] == "Bearer outer")
        #expect(exchange.upstream.requests.first?.fields.values(of: .authorization) == ["Bearer inner"])
    }

    @Test func `users are told apart by the bytes of their names`() async throws {
        let seen = Identities()
        let exchange = try TestExchange([try ware { $0.copy = ["X-Auth-Request-User", "Remote-User"] }, seen])
        for bytes: [UInt8] in [[0x61, 0xfe], [0x61, 0xff], [0x61, 0xfe], [0x61]] {
            var fields = HttpFields()
            try fields.append("X-Auth-Request-User", raw: bytes)
            answer(200, fields)
            _ = try await exchange.send(.get("/"))
        }
        answer(200, ["Remote-User": "a", "X-Auth-Request-User": "b"])
        _ = try await exchange.send(.get("/"))
        #expect(seen.same == [0, 1, 0, 2, 2])
        #expect(exchange.upstream.requests.first?.fields.rawValues(of: "X-Auth-Request-User") == [[0x61, 0xfe]])
    }

    @Test func `no user is taken from a field that is not copied, is empty, or comes twice`() async throws {
        let seen = Identities()
        var twice: HttpFields = ["Remote-User": "a"]
        try twice.append("Remote-User", "b")
        for (fields, copied) in [
            (["Remote-User": "a"], []), (["Remote-User": ""], ["Remote-User"]), (twice, ["Remote-User"]),
        ]
            as [(HttpFields, [FieldName])]
        {
            answer(200, fields)
            _ = try await TestExchange([try ware { $0.copy = copied }, seen]).send(.get("/"))
        }
        #expect(seen.names == [])
    }

    @Test func `a cache behind it keeps people apart`() async throws {
        var cache = HttpCache(store: MemoryStore(limit: .mebibytes(1)))
        cache.policy.mode = .private
        let exchange = try TestExchange([
            try ware {
                $0.headers = ["X-Key"]; $0.copy = ["Remote-User"]
            }, cache,
        ])
        for (fields, content) in [(["Remote-User": "ada"], "for ada"), (["Remote-User": "bob"], "for bob")]
            as [(HttpFields, String)]
        {
            answer(200, fields)
            exchange.upstream.always(
                respondWith: HttpResponse(.ok, fields: ["Cache-Control": "max-age=60"], content: .text(content))
            )
            #expect(try await exchange.send(.get("/", fields: ["X-Key": "the same"])).content.text == content)
        }
        #expect(exchange.upstream.requests.count == 2)
    }

    @Test(arguments: [301, 302, 303, 307, 401, 403, 404, 429])
    func `3xx and 4xx go to the client with their fields and content`(status: Int) async throws {
        var fields: HttpFields = [
            "Location": "https://login.test/", "Set-Cookie": "a=b", "X-A": "c", "Content-Length": "7",
        ]
        try fields.append(.setCookie, "d=e")
        answer(status, fields, "refused")
        let exchange = try TestExchange([try ware()])
        let response = try await exchange.send(.get("/"))
        #expect(response.status.code == status)
        #expect(response.fields.values(of: .setCookie) == ["a=b", "d=e"])
        #expect(response.fields[.location] == "https://login.test/" && response.fields["X-A"] == "c")
        #expect(response.content.text == "refused")
        #expect(exchange.upstream.requests.isEmpty)
        #expect(exchange.outcomes.first?.responder == .ware("ExtAuthz"))
    }

    @Test(arguments: [304, 500, 502, 503]) func `another status is not a decision, and fails closed`(status: Int)
        async throws
    {
        answer(status, ["Remote-User": "ada"])
        let exchange = try TestExchange(observing: [try ware()])
        let response = try await exchange.send(.get("/"))
        #expect(response.status == .serviceUnavailable && response.fields.contains(.retryAfter))
        #expect(exchange.upstream.requests.isEmpty)
        #expect(exchange.notes == ["no decision: the status of its answer is \(status)"])
    }

    @Test func `neither is a server that does not answer; status says what the client gets`() async throws {
        let exchange = try TestExchange([try ware { $0.status = .forbidden }])
        let response = try await exchange.send(.get("/"))
        #expect(response.status == .forbidden && !response.fields.contains(.retryAfter))
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test func `failOpen passes without an answer, but no forged field, and no refused request`() async throws {
        let exchange = try TestExchange([
            try ware {
                $0.failOpen = true; $0.copy = ["Remote-User"]
            }
        ])
        #expect(try await exchange.send(.get("/", fields: ["Remote-User": "root"])).status == .ok)
        #expect(exchange.upstream.requests.first?.fields.contains("Remote-User") == false)
        answer(403)
        #expect(try await exchange.send(.get("/")).status == .forbidden)
    }

    @Test func `copyToResponse adds cookies and replaces other fields, on a 2xx only`() async throws {
        answer(200, ["Set-Cookie": "session=new", "X-A": "server", "X-B": "kept back"])
        let exchange = try TestExchange([try ware { $0.copyToResponse = [.setCookie, "X-A"] }])
        exchange.upstream.always(respondWith: HttpResponse(.ok, fields: ["Set-Cookie": "own=1", "X-A": "origin"]))
        let response = try await exchange.send(.get("/"))
        #expect(response.fields.values(of: .setCookie) == ["own=1", "session=new"])
        #expect(response.fields.values(of: "X-A") == ["server"] && !response.fields.contains("X-B"))
    }

    // MARK: signIn

    @Test(
        arguments: [
            (["Sec-Fetch-Mode": "navigate"], true), (["Accept": "text/html,*/*;q=0.8"], true),
            (["Sec-Fetch-Mode": "cors", "Accept": "text/html"], false), (["Accept": "*/*"], false), ([:], false),
            (["Accept": "text/html", "X-Requested-With": "XMLHttpRequest"], false),
        ] as [(HttpFields, Bool)])
    func `a page load is redirected in place of a 401, anything else is not`(fields: HttpFields, isPage: Bool)
        async throws
    {
        answer(401, ["Set-Cookie": "state=1", "X-A": "b"])
        let exchange = try TestExchange([try ware { $0.signIn = "https://login.test/start?rd={request.url}" }])
        let response = try await exchange.send(.get("/a%20b?c=d&e=%26", fields: fields))
        #expect(response.status == (isPage ? .found : .unauthorized))
        #expect(response.fields.values(of: .setCookie) == ["state=1"])
        if isPage {
            #expect(
                response.fields[.location]
                    == "https://login.test/start?rd=http://example.test/a%2520b%3Fc=d%26e=%2526")
            #expect(response.fields[.cacheControl] == "no-store")
        }
    }

    @Test func `signIn keeps 403, answers 303 to POST, and never redirects to itself`() async throws {
        let page: HttpFields = ["Sec-Fetch-Mode": "navigate"]
        let exchange = try TestExchange([try ware { $0.signIn = "/login?rd={request.url}" }])
        answer(401)
        #expect(try await exchange.send(.post("/a", fields: page)).status == .seeOther)
        #expect(try await exchange.send(.get("/login?x", fields: page)).status == .unauthorized)
        answer(403)
        #expect(try await exchange.send(.get("/a", fields: page)).status == .forbidden)
    }

    @Test func `the URL to return to is the public one behind a trusted proxy, as it was before rewrites`() async throws
    {
        answer(401)
        let rewrite = try TestExchange.make(Rewrite.self, ["path": ["strip": "/app"]])
        let exchange = try TestExchange(
            [rewrite, try ware { $0.signIn = "/login?rd={request.url}" }],
            setting: setting { $0.trustedProxies = [IPNetwork("203.0.113.0/24")!] })
        let response = try await exchange.send(
            .get(
                "/app/x",
                fields: [
                    "Sec-Fetch-Mode": "navigate", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "public.test",
                ]))
        #expect(response.fields[.location] == "/login?rd=https://public.test/app/x")
    }
}
