import GatewayWares
import HttpWare
import Testing

@Suite struct SafeguardTests {
    @Test(arguments: ["rateLimit", "concurrency", "bodyLimit", "idempotencyKey", "requiredHeaders"])
    func `a limit must run for every form of a path`(name: String) throws {
        let type = try #require(BuiltinWares.all.first { $0.name.text == name })
        #expect(type is any Safeguard.Type)
    }

    @Test(arguments: ["compress", "retry", "timeout", "httpCache", "accessLog", "rewrite"])
    func `a ware that changes how a request is served need not`(name: String) throws {
        let type = try #require(BuiltinWares.all.first { $0.name.text == name })
        #expect(!(type is any Safeguard.Type) && !(type is any AccessRule.Type))
    }
}
