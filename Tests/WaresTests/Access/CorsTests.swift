import HttpWareTesting
import Testing

@testable import HttpWare
@testable import GatewayWares
@testable import Wares

@Suite struct CorsTests {
    private let page = "https://app.example.com"

    private func exchange(_ options: ConfigNode, behind: [any Ware] = []) throws -> TestExchange {
        try TestExchange([TestExchange.make(Cors.self, options)] + behind)
    }

    private func request(_ lines: [(String, String)], _ method: HttpMethod = .get) throws -> HttpRequest {
        var fields = HttpFields()
        for (name, value) in lines { try fields.append(try #require(FieldName(name)), value) }
        return .make(method, "/", fields: fields)
    }

    private func preflight(
        _ origin: String, _ method: String, _ headers: String? = nil, _ options: ConfigNode
    ) async throws -> (response: HttpResponse, asked: Int) {
        let exchange = try exchange(options)
        var lines = [("Origin", origin), ("Access-Control-Request-Method", method)]
        if let headers { lines.append(("Access-Control-Request-Headers", headers)) }
        let response = try await exchange.send(request(lines, .options))
        return (response, exchange.upstream.requests.count)
    }

    // MARK: Refusals

    @Test(arguments: [true, false])
    func `a page may read the refusal of a ware before this one`(isAllowed: Bool) async throws {
        let cors = try TestExchange.make(
            Cors.self, ["allowOrigins": [.init(.scalar(page, isQuoted: true))], "credentials": "true"])
        let limit = try TestExchange.make(BodyLimit.self, ["max": "1B"])
        let exchange = try TestExchange([limit, cors])
        let origin = isAllowed ? page : "https://other.example.com"
        var request = try request([("Origin", origin)], .post)
        request.content = .text("more")
        let response = try await exchange.send(request)
        #expect(response.status == .contentTooLarge)
        #expect(response.fields.values(of: "Access-Control-Allow-Origin") == (isAllowed ? [page] : []))
        #expect(response.fields["Access-Control-Allow-Credentials"] == (isAllowed ? "true" : nil))
        #expect(response.fields[.vary]?.contains("Origin") == true)
    }

    @Test func `a condition is judged for a refusal, too`() async throws {
        let cors = try TestExchange.make(Cors.self, ["allowOrigins": "*"])
        var options = ConditionOptions()
        options.request.methods = [.post]
        let chain = try WareChain(
            middlewares: [
                ChainEntry(try TestExchange.make(Mock.self, ["status": "418"])),
                ChainEntry(cors, condition: Condition(options)),
            ],
            postwares: [])
        let exchange = try TestExchange(chain: chain)
        #expect(try await exchange.send(request([], .post)).fields["Access-Control-Allow-Origin"] == "*")
        #expect(try await exchange.send(request([], .get)).fields["Access-Control-Allow-Origin"] == nil)
    }

    @Test func `a failure of the origin server carries the fields once`() async throws {
        let exchange = try exchange(["allowOrigins": "*"])
        exchange.upstream.refuse()
        let response = try await exchange.send(request([("Origin", page)]))
        #expect(response.status.code / 100 == 5)
        #expect(response.fields.values(of: "Access-Control-Allow-Origin") == ["*"])
    }

    // MARK: Responses

    @Test func `a page of an allowed origin may read the response, and caches are told`() async throws {
        let exchange = try exchange([
            "allowOrigins": [.init(.scalar(page, isQuoted: true))], "exposeHeaders": ["ETag", "X-A"],
        ])
        let response = try await exchange.send(request([("Origin", page)]))
        #expect(response.status == .ok)
        #expect(response.fields["Access-Control-Allow-Origin"] == page)
        #expect(response.fields["Access-Control-Allow-Credentials"] == nil)
        #expect(response.fields["Access-Control-Expose-Headers"] == "ETag, X-A")
        #expect(response.fields[.vary] == "Origin")
    }

    @Test func `others get the response without a word, and without what the origin server says`() async throws {
        let exchange = try exchange(["allowOrigins": [.init(.scalar(page, isQuoted: true))]])
        exchange.upstream.always(
            respondWith: HttpResponse(
                .ok,
                fields: [
                    "Access-Control-Allow-Origin": "*", "Access-Control-Allow-Credentials": "true", "Vary": "Accept",
                ]))
        for lines in [
            [], [("Origin", "https://evil.example")], [("Origin", page), ("Origin", page)], [("Origin", "null")],
            [("Origin", page + ".evil.example")], [("Origin", "http://app.example.com")],
        ] {
            let response = try await exchange.send(request(lines))
            #expect(response.status == .ok)
            #expect(response.fields["Access-Control-Allow-Origin"] == nil, "\(lines)")
            #expect(response.fields["Access-Control-Allow-Credentials"] == nil)
            #expect(response.fields[.vary] == "Accept, Origin")
        }
    }

    @Test func `with all origins the answer is the same for all`() async throws {
        let exchange = try exchange(["allowOrigins": "*"])
        for origin in [page, "null"] {
            let response = try await exchange.send(request([("Origin", origin)]))
            #expect(response.fields["Access-Control-Allow-Origin"] == "*")
            #expect(response.fields[.vary] == nil)
        }
        // A cache may give it to a page: Fetch standard, "CORS protocol and HTTP caches".
        #expect(try await exchange.send(request([])).fields["Access-Control-Allow-Origin"] == "*")
    }

    @Test func `with credentials the origin is named, never all`() async throws {
        let exchange = try exchange(["allowOrigins": [.init(.scalar(page, isQuoted: true))], "credentials": "true"])
        let response = try await exchange.send(request([("Origin", page)]))
        #expect(response.fields["Access-Control-Allow-Origin"] == page)
        #expect(response.fields["Access-Control-Allow-Credentials"] == "true")
        let ware = Cors(allowOrigins: [.any], credentials: true)
        let all = try TestExchange([ware])
        #expect(try await all.send(request([("Origin", page)])).fields["Access-Control-Allow-Origin"] == nil)
    }

    @Test func `a refusal of an inner ware may be read, too`() async throws {
        let exchange = try exchange(["allowOrigins": "*"], behind: [Mock(.unauthorized)])
        let response = try await exchange.send(request([("Origin", page)]))
        #expect(response.status == .unauthorized)
        #expect(response.fields["Access-Control-Allow-Origin"] == "*")
    }

    @Test(arguments: [
        ("https://a.example.com", true), ("https://a.b.example.com", true), ("https://example.com", false),
        ("https://.example.com", false), ("https://a/b.example.com", false), ("https://evil.test#.example.com", false),
        ("http://a.example.com", false), ("https://a.example.com:8443", false), ("https://aexample.com", false),
    ])
    func `a pattern means one or more labels before the rest`(origin: String, isAllowed: Bool) throws {
        #expect(try OriginPattern(optionText: "https://*.example.com").matches(origin) == isAllowed)
    }

    // MARK: Preflights

    @Test func `a preflight is answered here`() async throws {
        let (response, asked) = try await preflight(
            page, "PUT", "content-type, x-a",
            [
                "allowOrigins": [.init(.scalar(page, isQuoted: true))], "allowMethods": ["GET", "PUT"],
                "allowHeaders": ["Content-Type", "X-A"], "maxAge": "1m", "credentials": "true",
            ])
        #expect(response.status == .noContent)
        #expect(asked == 0)
        #expect(response.fields["Access-Control-Allow-Origin"] == page)
        #expect(response.fields["Access-Control-Allow-Credentials"] == "true")
        #expect(response.fields["Access-Control-Allow-Methods"] == "GET, PUT")
        #expect(response.fields["Access-Control-Allow-Headers"] == "Content-Type, X-A")
        #expect(response.fields["Access-Control-Max-Age"] == "60")
        #expect(
            response.fields[.vary] == "Origin, Access-Control-Request-Method, Access-Control-Request-Headers")
    }

    @Test(arguments: [
        ("https://evil.example", "GET", nil), ("null", "GET", nil), ("https://app.example.com", "DELETE", nil),
        ("https://app.example.com", "put", nil), ("https://app.example.com", "PUT", "X-B"),
        ("https://app.example.com", "PUT", "X-A, Authorization"),
    ])
    func `a preflight that asks for a method that is not allowed gets nothing, and goes nowhere`(
        origin: String, method: String, headers: String?
    ) async throws {
        let (response, asked) = try await preflight(
            origin, method, headers,
            [
                "allowOrigins": [.init(.scalar(page, isQuoted: true))], "allowMethods": ["PUT"],
                "allowHeaders": ["X-A"],
            ])
        #expect(response.status == .forbidden)
        #expect(asked == 0)
        #expect(!response.fields.contains { $0.name.lowercased().hasPrefix("access-control") })
    }

    @Test(arguments: [("Content-Type", 204), ("Authorization", 403), ("X-A, Authorization", 403)])
    func `all fields are all but Authorization`(headers: String, status: Int) async throws {
        let (response, _) = try await preflight(page, "GET", headers, ["allowOrigins": "*", "allowHeaders": "*"])
        #expect(response.status.code == status)
        let named = try await preflight(
            page, "GET", headers, ["allowOrigins": "*", "allowHeaders": ["*", "Authorization"]])
        #expect(named.response.status.code == 204)
    }

    @Test func `GET, HEAD and POST need no permission, others do`() async throws {
        for (method, status) in [("GET", 204), ("HEAD", 204), ("POST", 204), ("PUT", 403)] {
            let (response, _) = try await preflight(page, method, nil, ["allowOrigins": "*", "allowMethods": []])
            #expect(response.status.code == status, "\(method)")
        }
        let (response, _) = try await preflight(page, "PURGE", nil, ["allowOrigins": "*", "allowMethods": "*"])
        #expect(response.status == .noContent)
        #expect(response.fields["Access-Control-Allow-Methods"] == "*")
    }

    @Test func `OPTIONS that is not a preflight goes on`() async throws {
        let exchange = try exchange(["allowOrigins": "*"])
        for lines in [[], [("Origin", page)], [("Access-Control-Request-Method", "GET")]] {
            #expect(try await exchange.send(request(lines, .options)).status == .ok)
        }
        #expect(exchange.upstream.requests.count == 3)
    }

    // MARK: Options

    @Test func `the defaults are those of the catalogue`() throws {
        let cors = try TestExchange.make(Cors.self, ["allowOrigins": "*"])
        #expect(cors.allowMethods == [.get, .head, .post] && cors.allowHeaders.isEmpty && cors.exposeHeaders.isEmpty)
        #expect(!cors.credentials && cors.maxAge == .seconds(600))
    }

    @Test(
        arguments: [
            [:], ["allowOrigins": []], ["allowOrigins": "app.example.com"], ["allowOrigins": "https://a.test/"],
            ["allowOrigins": "https://A.test"], ["allowOrigins": "https://a.test:443"], ["allowOrigins": "null"],
            ["allowOrigins": "https://*"], ["allowOrigins": "https://a.*.test"],
            ["allowOrigins": "*", "credentials": "true"],
            ["allowOrigins": "https://a.test", "credentials": "true", "allowHeaders": "*"],
            ["allowOrigins": "https://a.test", "credentials": "true", "allowMethods": "*"],
            ["allowOrigins": "https://a.test", "credentials": "true", "exposeHeaders": "*"],
            ["allowOrigins": "*", "maxAge": "25h"], ["allowOrigins": "*", "allowMethods": "get"],
        ] as [ConfigNode])
    func `invalid options of cors are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(Cors.self, options) }
    }
}
