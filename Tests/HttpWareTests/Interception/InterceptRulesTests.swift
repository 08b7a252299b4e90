import Testing

@testable import HttpWare

@Suite struct InterceptRulesTests {
    private func rules(
        hosts: HostList, except: HostList = HostList([]),
        reaches: @escaping @Sendable (String, UInt16) -> Bool = { _, _ in true }
    ) throws -> InterceptRules {
        let router = SinglePlan(listenerPlan: ExchangePlan(chain: .empty, service: nil, route: nil))
        return try InterceptStage.rules(hosts: hosts, except: except, router: router, reaches: reaches)
    }

    private func list(_ patterns: String...) throws -> HostList {
        HostList(try patterns.map { try HostPattern(optionText: $0) })
    }

    @Test func `an exception counts before a listed host, and a port may belong to either`() throws {
        let rules = try rules(hosts: try list("*.test", "b.example:8443"), except: try list("x.test"))
        #expect(rules.decision("a.test", 443) == .intercepted)
        #expect(rules.decision("x.test", 443) == .excepted)
        #expect(rules.decision("b.example", 8443) == .intercepted)
        #expect(rules.decision("b.example", 443) == .notListed)
        #expect(
            try self.rules(hosts: HostList([], isAll: true), except: try list("x.test")).decision("x.test", 1)
                == .excepted)
    }

    @Test func `an address is intercepted if names are listed, because the handshake may name one`() throws {
        let named = try rules(hosts: try list("a.test"), except: try list("192.0.2.7"))
        #expect(named.reasonToPass("a.test", 443) == nil)
        #expect(named.reasonToPass("b.test", 443) == .notListed)
        #expect(named.reasonToPass("192.0.2.1", 443) == nil)
        #expect(named.reasonToPass("[2001:db8::1]", 443) == nil)
        #expect(named.reasonToPass("192.0.2.7", 443) == .excepted)
        #expect(try rules(hosts: HostList([])).reasonToPass("192.0.2.1", 443) == .notListed)
    }

    @Test func `a tunnel to a forbidden destination is refused with its reason`() throws {
        let rules = try rules(hosts: HostList([], isAll: true), reaches: { host, _ in host != "lost.test" })
        var forward = ForwardRules()
        func refusal(_ host: String, _ port: UInt16 = 443) -> GatewayError.Fault? {
            rules.refusal(ofTunnelTo: host, port, by: forward)?.fault
        }
        #expect(refusal("a.test") == nil)
        #expect(refusal("a.test", 25) == .requestDenied)
        #expect(refusal("lost.test") == .requestDenied)
        for host in ["*.test", "-a.test", "127.1"] { #expect(refusal(host) != nil, "\(host)") }
        for host in ["localhost", "10.0.0.1", "[::1]"] { #expect(refusal(host) == .destinationProhibited, "\(host)") }
        forward.deniesPrivate = false
        for host in ["localhost", "10.0.0.1", "[::1]", "169.254.169.254"] { #expect(refusal(host) == nil, "\(host)") }
        forward.deniesMetadata = true
        #expect(refusal("169.254.169.254") == .destinationProhibited)
        #expect(refusal("10.0.0.1") == nil)
    }
}
