import Testing

@testable import HttpWare

@Suite struct EndpointTests {
    @Test func `endpoints share a pool only if they speak the same TLS, with the same name`() throws {
        let (one, other) = (try TlsContext(client: .init()), try TlsContext(client: .init()))
        let plain = Endpoint(host: "a.test", port: 443)
        let secure = Endpoint(host: "a.test", port: 443, tls: one)
        #expect(plain.key != secure.key)
        #expect(secure.key == Endpoint(host: "a.test", port: 443, tls: one).key)
        #expect(secure.key != Endpoint(host: "a.test", port: 443, tls: other).key)
        #expect(secure.key != Endpoint(host: "a.test", port: 443, tls: one, serverName: "b.test").key)
    }

    @Test func `Host names the port unless it is the scheme's usual one`() throws {
        let context = try TlsContext(client: .init())
        #expect(Endpoint(host: "a.test", port: 80).authority == "a.test")
        #expect(Endpoint(host: "a.test", port: 443).authority == "a.test:443")
        #expect(Endpoint(host: "a.test", port: 443, tls: context).authority == "a.test")
        #expect(Endpoint(host: "[::1]", port: 80, tls: context).authority == "[::1]:80")
    }

    @Test func `a request of a forward proxy's client over TLS has another endpoint than one in clear text`() throws {
        let context = try TlsContext(client: .init())
        var endpoints = PassingEndpoints()
        func endpoint(_ tls: TlsContext?) -> Endpoint {
            Array("a.test".utf8).withUnsafeBytes { endpoints.endpoint($0, port: 8443, tls: tls, deniesPrivate: false) }
        }
        let plain = endpoint(nil)
        let secure = endpoint(context)
        #expect(plain.tls == nil)
        #expect(secure.tls?.name == "a.test")
        #expect(endpoint(nil).tls == nil && endpoint(context).tls != nil)
    }

    @Test func `which version the next connection speaks is open only where TLS lets both sides agree`() throws {
        let context = try TlsContext(client: .init())
        #expect(Endpoint(host: "a.test", port: 80).agreement == .h1)
        #expect(Endpoint(host: "a.test", port: 80, speaks: .h2).agreement == .h2)
        #expect(Endpoint(host: "a.test", port: 443, speaks: .h1, tls: context).agreement == .h1)
        #expect(Endpoint(host: "a.test", port: 443, speaks: .h2, tls: context).agreement == .h2)
        #expect(Endpoint(unixPath: "/a").agreement == .h1)
        let open = Endpoint(host: "a.test", port: 443, tls: context)
        #expect(open.negotiates && open.agreement == .unknown)
        open.agree(on: .h2)
        #expect(open.agreement == .h2)
    }

    @Test func `all copies of an endpoint know that its origin server requires HTTP/1.1`() throws {
        let context = try TlsContext(client: .init())
        let endpoint = Endpoint(host: "a.test", port: 443, tls: context)
        let copy = endpoint.fixed(at: [.ip(IPAddress(ipv4: 0x7f00_0001), port: 443)])
        #expect(!endpoint.requiresHttp1 && !copy.requiresHttp1)
        #expect(copy.requireHttp1())
        #expect(endpoint.requiresHttp1 && copy.requiresHttp1 && endpoint.unpooled().requiresHttp1)
        #expect(!Endpoint(host: "a.test", port: 443, tls: context).requiresHttp1)
        // Where the version cannot be chosen, the requirement cannot be met.
        let always = Endpoint(host: "a.test", port: 443, speaks: .h2, tls: context)
        #expect(!always.requireHttp1() && !always.requiresHttp1)
    }
}
