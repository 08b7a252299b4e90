import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct TunnelFactsTests {
    private let tunnel: TunnelFacts = {
        var connect = HttpRequest()
        connect.proxyAuthorization = "Basic YTpi"
        return TunnelFacts(connect, host: "a.test", port: 443)
    }()

    @Test(arguments: [
        ("https://a.test/", true, true), ("https://a.test:443/", true, true), ("http://a.test:443/", false, true),
        ("http://a.test/", false, false), ("https://a.test/", false, false), ("http://a.test:443/", true, false),
        ("https://a.test:444/", true, false), ("https://b.test/", true, false), ("https://a.test.test/", true, false),
    ])
    func `RFC 9110 §15.5.20, a request belongs in a tunnel to its own host, port and scheme`(
        url: String, isSecure: Bool, belongs: Bool
    ) {
        var request = HttpRequest.get(url)
        #expect(tunnel.take(&request, isSecure: isSecure)?.fault == (belongs ? nil : .misdirected))
        #expect(request.proxyAuthorization == "Basic YTpi")
    }

    @Test func `a request that names no host is for the tunnel's`() {
        var request = HttpRequest()
        #expect(tunnel.take(&request, isSecure: true) == nil)
        #expect(request.host == "a.test" && request.port == 443)
    }
}
