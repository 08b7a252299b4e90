import HttpWareTesting
import Testing
import GatewayWares
import Wares

@testable import HttpWare

@Suite struct IpRuleTests {
    private func status(_ options: ConfigNode, peer: String, trusted: String? = nil, fields: HttpFields = [:])
        async throws -> Int
    {
        var setting = TestExchange.Setting()
        setting.peer = SocketAddress(peer)
        setting.trustedProxies = try [trusted].compactMap(\.self).map { try #require(IPNetwork($0)) }
        let exchange = try TestExchange(IpRule.self, options: options, setting: setting)
        let response = try await exchange.send(.get("/", fields: fields))
        #expect(exchange.upstream.requests.isEmpty == (response.status != .ok))
        return response.status.code
    }

    @Test(arguments: [
        ("10.1.2.3:1", 200), ("11.1.2.3:1", 403), ("10.0.13.7:1", 403), ("[::1]:1", 200), ("[::2]:1", 403),
        ("[::ffff:10.1.2.3]:1", 200), ("[::ffff:10.0.13.7]:1", 403),
    ])
    func `deny is judged first, then only who is in allow gets in`(peer: String, expected: Int) async throws {
        let options: ConfigNode = ["allow": ["10.0.0.0/8", "::1"], "deny": ["10.0.13.7"]]
        #expect(try await status(options, peer: peer) == expected)
    }

    @Test func `with deny alone all others get in`() async throws {
        #expect(try await status(["deny": ["192.0.2.0/24"]], peer: "198.51.100.1:1") == 200)
        #expect(try await status(["deny": ["192.0.2.0/24"], "status": 404], peer: "192.0.2.9:1") == 404)
    }

    @Test func `an empty allow lets no client in`() async throws {
        #expect(try await status(["allow": []], peer: "198.51.100.1:1") == 403)
    }

    @Test func `behind a trusted proxy the client counts, not the proxy`() async throws {
        let options: ConfigNode = ["allow": ["192.0.2.0/24"]]
        let fields: HttpFields = ["X-Forwarded-For": "192.0.2.5"]
        #expect(try await status(options, peer: "10.0.0.1:1", trusted: "10.0.0.0/8", fields: fields) == 200)
        #expect(try await status(options, peer: "11.0.0.1:1", trusted: "10.0.0.0/8", fields: fields) == 403)
    }

    @Test(arguments: [
        ("unknown", 400), ("192.0.2.5, unknown", 400), ("192.0.2.5, 10.0.0.300", 400), ("unknown, 10.0.0.2", 400),
        ("192.0.2.5, 10.0.0.2", 200), ("unknown, 192.0.2.5", 200), ("unknown, 192.0.2.5:80, [fd00::1]:1", 403),
        ("192.0.2.5:80, 10.0.0.2:1", 200),
    ])
    func `a client that a trusted proxy names in an unreadable way is refused`(value: String, expected: Int)
        async throws
    {
        // It must not pass for the proxy's own address.
        let options: ConfigNode = ["allow": ["192.0.2.0/24", "10.0.0.0/8"]]
        var fields = HttpFields()
        try fields.append(.xForwardedFor, value)
        #expect(try await status(options, peer: "10.0.0.1:1", trusted: "10.0.0.0/8", fields: fields) == expected)
        #expect(try await status(options, peer: "192.0.2.1:1", trusted: "10.0.0.0/8", fields: fields) == 200)
    }

    @Test func `a client without an address is refused`() async throws {
        #expect(try await status(["deny": ["192.0.2.1"]], peer: "unix:/x") == 403)
    }

    @Test(
        arguments: [[:], ["allow": ["10.0.0.1/8"]], ["allow": ["host"]], ["deny": ["::1"], "status": 302]]
            as [ConfigNode])
    func `options that cannot be meant are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(IpRule.self, options) }
    }

    @Test func `only an allow that leaves a client out guards a proxy that the network reaches`() throws {
        let network = { (text: String) in IPNetwork(text) }
        #expect(IpRule(allow: [network("10.0.0.0/8")].compactMap(\.self)).admitsOnlyKnown)
        #expect(!IpRule(deny: [network("192.0.2.1/32")].compactMap(\.self)).admitsOnlyKnown)
        #expect(!IpRule(allow: [network("0.0.0.0/0")].compactMap(\.self)).admitsOnlyKnown)
    }
}
