import HttpWareTesting
import Testing
import GatewayWares

@testable import HttpWare

@Suite struct HostRuleTests {
    private func isRefused(_ options: ConfigNode, _ request: HttpRequest) throws -> Bool {
        let rule = try TestExchange.make(HostRule.self, options)
        var request = request
        let loop = try EventLoop(name: "host rule")
        if case .abort(let response) = rule.handle(&request, in: Exchange(loop: loop)) {
            #expect(response.status == .forbidden)
            return true
        }
        return false
    }

    @Test(arguments: [
        ("http://example.com/", false), ("http://EXAMPLE.com./", false), ("http://a.b.example.com/", false),
        ("http://admin.example.com/", true), ("http://ADMIN.example.com.:80/", true), ("http://example.org/", true),
        ("http://badexample.com/", true), ("http://192.0.2.1/", true),
    ])
    func `deny is judged first, then only what is in allow may be asked for`(target: String, refused: Bool) throws {
        let options: ConfigNode = ["allow": ["example.com", "*.example.com"], "deny": ["admin.example.com"]]
        #expect(try isRefused(options, .make(.get, target)) == refused)
    }

    @Test(arguments: [("admin.example.com:443", true), ("www.example.com:443", false), ("example.org:443", true)])
    func `CONNECT is judged by the host that it names`(target: String, refused: Bool) throws {
        let options: ConfigNode = ["allow": ["*.example.com"], "deny": ["admin.example.com"]]
        #expect(try isRefused(options, try HttpRequest(.connect, target)) == refused)
    }

    @Test(arguments: ["192.0.2.1", "[::ffff:192.0.2.1]", "[::ffff:c000:201]"], ["192.0.2.1", "[::ffff:192.0.2.1]"])
    func `an IPv4 address is known in all its forms`(host: String, pattern: String) throws {
        let deny = ConfigNode(.list([ConfigNode(.scalar(pattern, isQuoted: true))]))
        #expect(try isRefused(["deny": deny], .make(.get, "http://\(host)/")))
        #expect(try isRefused(["deny": deny], try HttpRequest(.connect, "\(host):443")))
        #expect(try !isRefused(["allow": deny], .make(.get, "http://\(host)/")))
    }

    @Test func `a pattern with a port means the scheme's own port too`() throws {
        let options: ConfigNode = ["deny": ["example.com:80"]]
        #expect(try isRefused(options, .make(.get, "http://example.com/")))
        #expect(try isRefused(options, .make(.get, "http://example.com:80/")))
        #expect(try !isRefused(options, .make(.get, "http://example.com:8080/")))
    }

    @Test func `a request that names no host is refused`() throws {
        #expect(try isRefused(["deny": ["example.com"]], try HttpRequest(.get, "/")))
    }

    @Test func `a refused request does not go upstream`() async throws {
        var setting = TestExchange.Setting()
        setting.isForward = true
        let exchange = try TestExchange(HostRule.self, options: ["allow": ["example.com"]], setting: setting)
        #expect(try await exchange.send(.get("http://example.org/")).status == .forbidden)
        #expect(exchange.upstream.requests.isEmpty)
        #expect(try await exchange.send(.get("http://example.com/")).status == .ok)
        #expect(exchange.upstream.requests.count == 1)
    }

    @Test(arguments: [[:], ["allow": ["http://a"]], ["allow": ["*"]]] as [ConfigNode])
    func `options that cannot be meant are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(HostRule.self, options) }
    }
}
