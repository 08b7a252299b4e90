import HttpWareGateway
import HttpWareTesting
import Testing

@testable import GatewayExample

@Suite struct MethodRuleTests {
    @Test func `another method is refused with 405 and nothing goes upstream`() async throws {
        let exchange = try TestExchange(MethodRule.self, options: ["allow": ["GET", "PUT"]])
        let response = try await exchange.send(.post("/"))
        #expect(response.status == .methodNotAllowed)
        #expect(response.fields[.allow] == "GET, PUT")
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test func `GET passes by default`() async throws {
        let exchange = try TestExchange(MethodRule.self)
        #expect(try await exchange.send(.get("/")).status == .ok)
        #expect(exchange.upstream.requests.count == 1)
    }

    @Test(arguments: [["allow": []], ["allow": ["get"]], ["alow": ["GET"]]] as [ConfigNode])
    func `an empty, invalid or unknown option is refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange(MethodRule.self, options: options) }
    }
}
