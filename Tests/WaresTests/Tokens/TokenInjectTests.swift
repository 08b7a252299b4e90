import Credentials
import HttpWare
import HttpWareTesting
import Testing

@testable import Wares

@Suite(.timeLimit(.minutes(10))) struct TokenInjectTests {
    private func sent(_ options: ConfigNode, _ fields: HttpFields = HttpFields()) async throws -> HttpFields {
        let exchange = try TestExchange(TokenInject.self, options: options)
        _ = try await exchange.send(.get("/", fields: fields))
        return try #require(exchange.upstream.requests.first).fields
    }

    @Test func `a value is sent as RFC 6750 §2.1 has it`() async throws {
        #expect(try await sent(["value": "abc"])[.authorization] == "Bearer abc")
    }

    @Test func `basic is user and password in base64, RFC 7617 §2`() async throws {
        let options: ConfigNode = ["basic": ["user": "Aladdin", "password": "open sesame"]]
        #expect(try await sent(options)[.authorization] == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
        #expect(
            try await sent(["basic": ["user": "test", "password": "123£"]])[.authorization] == "Basic dGVzdDoxMjPCow==")
    }

    @Test func `a TRACE request gets no token, for its response is the request`() async throws {
        let exchange = try TestExchange(TokenInject.self, options: ["value": "abc"])
        _ = try await exchange.send(HttpRequest(.trace, "http://example.test/"))
        #expect(try #require(exchange.upstream.requests.first).fields[.authorization] == nil)
    }

    @Test func `another field and no scheme`() async throws {
        let fields = try await sent(["value": "abc", "header": "X-Api-Key", "scheme": ""])
        #expect(fields["X-Api-Key"] == "abc")
        #expect(!fields.contains(.authorization))
    }

    @Test func `the client's own field stays unless it is to be replaced`() async throws {
        var own = HttpFields()
        try own.set(.authorization, to: "Basic own")
        #expect(try await sent(["value": "abc"], own)[.authorization] == "Basic own")
        #expect(try await sent(["value": "abc", "overwrite": true], own)[.authorization] == "Bearer abc")
    }

    @Test(
        arguments: [
            [:], ["value": "a", "file": "b"], ["value": ""], ["value": "a\r\nX: y"], ["value": "a\u{0}b"],
            ["value": "a", "header": "Host"], ["value": "a", "header": "Content-Length"], ["credential": "absent"],
            ["value": "a", "scheme": "a\nb"], ["basic": ["user": "a"]], ["basic": ["user": "a:b", "password": "c"]],
            ["basic": ["user": "a", "password": "b\n"]], ["basic": ["user": "a", "password": "b"], "scheme": "X"],
            ["basic": ["user": "a", "password": "b"], "value": "c"], ["file": "/no/such/file"],
        ] as [ConfigNode])
    func `a value that cannot be sent is refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange(TokenInject.self, options: options) }
    }

    @Test func `a mistake in a secret does not show it`() {
        do {
            _ = try TestExchange(TokenInject.self, options: ["value": "s3cret\n"])
            Issue.record("it was taken")
        } catch {
            #expect(!"\(error)".contains("s3cret"))
        }
    }

    @Test func `without tokenRefresh a request waits for the first token`() async throws {
        let client = ScriptedClient()
        var definition = CredentialDefinition(name: "orders", grant: .clientCredentials)
        definition.tokenUrl = EndpointUrl("http://127.0.0.1:9/token")
        definition.clientId = "a"
        definition.clientSecret = Secret("b")
        let exchange = try TestExchange([TokenInject(credential: Credential(definition, client: client))])
        let pending = await exchange.start(.get("/"))
        while client.waitingCount == 0 { await Task.yield() }
        client.answerCall(json: #"{"access_token":"t"}"#)
        #expect(try await pending.response().status == .ok)
        #expect(exchange.upstream.requests.first?.fields[.authorization] == "Bearer t")
    }
}
