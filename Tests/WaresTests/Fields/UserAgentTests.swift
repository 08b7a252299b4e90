import HttpWare
import HttpWareTesting
import Testing
import Wares

@Suite struct UserAgentTests {
    private func sent(_ options: ConfigNode, _ fields: HttpFields) async throws -> [String] {
        let exchange = try TestExchange(UserAgent.self, options: options)
        _ = try await exchange.send(.get("/", fields: fields))
        return try #require(exchange.upstream.requests.first).fields.values(of: .userAgent)
    }

    @Test func `by default the request's own stays, and an absent one is added`() async throws {
        #expect(try await sent(["value": "app/1"], ["User-Agent": "curl/8"]) == ["curl/8"])
        #expect(try await sent(["value": "app/1"], [:]) == ["app/1"])
    }

    @Test func `append puts the value behind the request's own, in one line - RFC 9110 §10.1.5`() async throws {
        #expect(try await sent(["value": "app/1", "mode": "append"], ["User-Agent": "curl/8"]) == ["curl/8 app/1"])
        #expect(try await sent(["value": "app/1", "mode": "append"], [:]) == ["app/1"])
    }

    @Test func `replace leaves nothing of the request's own`() async throws {
        let options: ConfigNode = ["value": "app/1", "mode": "replace"]
        #expect(try await sent(options, ["User-Agent": "a", "user-agent": "b"]) == ["app/1"])
    }

    @Test func `the value may hold placeholders`() async throws {
        #expect(try await sent(["value": "app/1 ({client.ip})"], [:]) == ["app/1 (203.0.113.7)"])
    }

    @Test(arguments: [[:], ["value": ""], ["value": "a\nb"], ["value": "a", "mode": "prepend"]] as [ConfigNode])
    func `options that cannot be meant are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(UserAgent.self, options) }
    }
}
