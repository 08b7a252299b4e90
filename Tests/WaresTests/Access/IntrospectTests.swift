import Authentication
import Credentials
import HttpWareTesting
import Testing
import GatewayWares
import Wares

@testable import HttpWare

@Suite struct IntrospectTests {
    private static let url = "https://login.example.com/introspect"
    /// 2026-01-01T00:00:00Z, where the clock stands.
    private static let now = 1_767_225_600
    private let calls = ScriptedCalls()

    private func ware(coalesce: Bool = true) throws -> Introspect {
        Introspect(
            try Introspector(
                url: Self.url, clientId: "gate way", clientSecret: Secret("s:c%"), timeout: .seconds(3),
                coalesce: coalesce,
                client: calls))
    }

    private func exchange(coalesce: Bool = true, also: [any Ware] = []) throws -> TestExchange {
        try TestExchange([try ware(coalesce: coalesce)] + also)
    }

    private func get(_ token: String = "opaque") throws -> HttpRequest {
        var fields = HttpFields()
        try fields.append(.authorization, "Bearer \(token)")
        return try HttpRequest(.get, "/", fields: fields)
    }

    private func answer(_ json: String...) {
        let steps = json.map { ScriptedCalls.json($0.utf8) }
        switch steps.count {
        case 1: calls.script(Self.url, steps[0])
        default: calls.script(Self.url, steps[0], steps[1])
        }
    }

    @Test func `RFC 7662 §2.1, the server is asked with a form and Basic authentication`() async throws {
        answer(#"{"active":true}"#)
        #expect(try await exchange().send(get("a.b-c_d~e+f/g==")).status == .ok)
        let request = try #require(calls.requests.first)
        #expect(request.method == .post)
        #expect(request.fields[.contentType] == "application/x-www-form-urlencoded")
        #expect(request.content.text == "token=a.b-c_d~e%2Bf%2Fg%3D%3D&token_type_hint=access_token")
        // RFC 6749 §2.3.1: id and secret are encoded as in a form, then as Basic has it: gate%20way:s%3Ac%25
        #expect(request.fields[.authorization] == "Basic Z2F0ZSUyMHdheTpzJTNBYyUyNQ==")
        #expect(calls.limits.first?.redirects == 0)
        #expect(calls.limits.first?.timeout == .seconds(3))
    }

    @Test func `limits behind it count each token, though it takes the field away`() async throws {
        answer(#"{"active":true,"sub":"ada"}"#, #"{"active":true,"sub":"ada"}"#)
        for key in [RequestKey.header(.authorization), .principal] {
            let exchange = try exchange(also: [RateLimit(Rate(1, per: .hour), key: key)])
            var passed: [Bool] = []
            for token in ["a", "b", "a"] { passed.append(try await exchange.send(get(token)).status == .ok) }
            #expect(passed == [true, true, false])
        }
    }

    @Test func `one person is told from another by issuer and subject, else by the token`() async throws {
        let seen = Identities()
        let exchange = try exchange(also: [seen])
        let answers = [
            #"{"active":true,"iss":"a","sub":"ada"}"#, #"{"active":true,"sub":"ada","iss":"a","scope":"x"}"#,
            #"{"active":true,"iss":"b","sub":"ada"}"#, #"{"active":true,"sub":"ada"}"#,
            #"{"active":true,"sub":"ada"}"#, #"{"active":true,"username":"ada"}"#, #"{"active":true}"#,
        ]
        for (index, json) in answers.enumerated() {
            answer(json)
            #expect(try await exchange.send(get("token\(index)")).status == .ok)
        }
        #expect(seen.same == [0, 0, 1, 2, 3, 4, 5])
        #expect(seen.names.last?.hasPrefix("token ") == true)
    }

    @Test func `RFC 7662 §2.2, an active token gets in, and what is said of it is at hand`() async throws {
        answer(#"{"active":true,"sub":"ada","scope":"read","exp":\#(Self.now + 20)}"#)
        let seen = Seen("{jwt.scope}")
        let exchange = try exchange(also: [seen])
        #expect(try await exchange.send(get()).status == .ok)
        #expect(try await exchange.send(get()).status == .ok)
        #expect(seen.principals == ["introspect ada", "read", "introspect ada", "read"])
        #expect(exchange.upstream.requests.allSatisfy { !$0.fields.contains(.authorization) })
        #expect(calls.requests.count == 1)
        // Not beyond the token's own end.
        await exchange.advance(by: .seconds(20))
        #expect(try await exchange.send(get()).status == .unauthorized)
        #expect(calls.requests.count == 2)
    }

    @Test func `an answer is remembered for its time, a negative one for its own`() async throws {
        answer(#"{"active":true}"#, #"{"active":false}"#)
        let exchange = try exchange()
        for (pause, status, asked) in [(0, 200, 1), (29, 200, 1), (1, 401, 2), (4, 401, 2), (1, 401, 3)] {
            await exchange.advance(by: .seconds(pause))
            #expect(try await exchange.send(get()).status.code == status)
            #expect(calls.requests.count == asked)
        }
    }

    @Test func `RFC 6750 §3.1, a token that is not active is invalid_token`() async throws {
        answer(#"{"active":false}"#)
        let response = try await exchange().send(get())
        #expect(response.status == .unauthorized)
        #expect(response.fields[.wwwAuthenticate]?.contains("error=\"invalid_token\"") == true)
        #expect(response.fields[.contentType] == "application/problem+json")
    }

    @Test func `an active token that has expired is not believed`() async throws {
        answer(#"{"active":true,"exp":\#(Self.now)}"#)
        #expect(try await exchange().send(get()).status == .unauthorized)
    }

    @Test(arguments: [
        "{}", #"{"active":"true"}"#, #"{"active":1}"#, "[]", "", "<html>", #"{"active":true,"active":false}"#,
    ])
    func `RFC 7662 §2.2, an answer without active lets no client in`(json: String) async throws {
        answer(json)
        let response = try await exchange().send(get())
        #expect(response.status == .serviceUnavailable)
        #expect(response.fields.contains(.retryAfter))
    }

    @Test(arguments: [401, 302, 500]) func `neither does another status`(status: Int) async throws {
        calls.script(
            Self.url, .respond(HttpResponse(try #require(HttpStatus(status)), content: .text(#"{"active":true}"#))))
        #expect(try await exchange().send(get()).status == .serviceUnavailable)
    }

    @Test func `nor a server that does not answer, which is asked again at once`() async throws {
        let exchange = try exchange()
        for _ in 0..<2 { #expect(try await exchange.send(get()).status == .serviceUnavailable) }
        #expect(calls.requests.count == 2)
    }

    @Test(arguments: [true, false]) func `requests that show one token at once share the question, if they may`(
        coalesce: Bool
    ) async throws {
        calls.script(Self.url, .hold)
        let exchange = try exchange(coalesce: coalesce)
        var pending: [TestExchange.Pending] = []
        for _ in 0..<5 { pending.append(await exchange.start(try get())) }
        #expect(calls.requests.count == (coalesce ? 1 : 5))
        calls.release(with: ScriptedCalls.json(#"{"active":true}"#.utf8))
        for one in pending { #expect(try await one.response().status == .ok) }
    }

    @Test(arguments: ["a b", "a\"b", "a,b", "é", String(repeating: "a", count: 20_000)])
    func `RFC 6750 §2.1, a malformed token is not asked about`(token: String) async throws {
        answer(#"{"active":true}"#)
        #expect(try await exchange().send(get(token)).status == .unauthorized)
        #expect(calls.requests.isEmpty)
    }

    @Test func `without a token there is a challenge without an error`() async throws {
        let response = try await exchange().send(.get("/"))
        #expect(response.status == .unauthorized)
        #expect(response.fields[.wwwAuthenticate] == "Bearer realm=\"httpware\"")
    }

    @Test(
        arguments: [
            [:], ["url": "login"], ["url": "https://a.test/", "clientSecret": "x"],
            ["url": "https://a.test/", "timeout": "0s"],
            ["url": "https://a.test/", "cacheTtl": "2h"], ["url": "https://a.test/", "coalesce": "1"],
        ] as [ConfigNode])
    func `options that cannot be meant are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(Introspect.self, options) }
    }

    @Test func `options are read`() throws {
        let options: ConfigNode = [
            "url": "https://a.test/", "clientId": "a", "clientSecret": "b", "cacheTtl": "1m", "negativeTtl": "0s",
        ]
        let ware = try TestExchange.make(Introspect.self, options)
        #expect(ware.cacheTtl == .seconds(60))
        #expect(ware.negativeTtl == .zero)
    }
}
