import HttpWare
import HttpWareTesting
import Testing

@Suite struct MethodRuleTests {
    @Test func `another method is refused with 405 and nothing goes upstream - RFC 9110 §15.5.6`() async throws {
        let exchange = try TestExchange(MethodRule.self, options: ["allow": ["GET", "HEAD"]])
        let response = try await exchange.send(.post("/"))
        #expect(response.status == .methodNotAllowed)
        #expect(response.fields[.allow] == "GET, HEAD")
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test func `a listed method passes`() async throws {
        let exchange = try TestExchange(MethodRule.self, options: ["allow": "GET"])
        #expect(try await exchange.send(.get("/")).status == .ok)
        #expect(exchange.upstream.requests.count == 1)
    }

    @Test(arguments: [[:], ["allow": []], ["allow": ["get"]], ["alow": ["GET"]]] as [ConfigNode])
    func `a missing, empty, invalid or unknown option is refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange(MethodRule.self, options: options) }
    }
}
