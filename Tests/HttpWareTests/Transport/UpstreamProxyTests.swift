import Testing

@testable import HttpWare

@Suite struct UpstreamProxyTests {
    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1", true), ("localhost", "127.0.0.1", true), ("localhost", "0.0.0.0", true),
        ("127.0.0.1", "0.0.0.0", true), ("127.0.0.1", "[::]", true), ("::1", "[::]", true), ("::1", "[::1]", true),
        ("0.0.0.0", "127.0.0.1", true), ("localhost", "192.0.2.1", false), ("127.0.0.1", "192.0.2.1", false),
        ("192.0.2.1", "192.0.2.1", true), ("proxy.corp", "127.0.0.1", false), ("127.0.0.2", "127.0.0.1", false),
    ])
    func `a proxy at the address of a listener is the listener itself`(host: String, bind: String, isSelf: Bool) throws
    {
        let hop = UpstreamProxy.Hop(host: host, port: 8888)
        #expect(hop.leads(to: try #require(SocketAddress("\(bind):8888"))) == isSelf)
        #expect(!hop.leads(to: try #require(SocketAddress("\(bind):8889"))))
        #expect(!hop.leads(to: try #require(SocketAddress("\(bind):0"))))
        #expect(!hop.leads(to: .unix(path: "/run/x")))
    }

    @Test(arguments: ["socks5://127.0.0.1:1080", "SOCKS5H://u:p@a:1", "socks4://a:1", "socks4a://a:1", "socks://a:1"])
    func `a SOCKS proxy is refused as such, without its password`(url: String) {
        var reader = OptionsReader(["url": ConfigNode(.scalar(url, isQuoted: true))], keyPath: "upstreamProxy")
        var value: ProxyUrl?
        reader.read("url", into: &value)
        let message = reader.finish().map(\.message).joined()
        #expect(message.contains("SOCKS is not supported") && message.contains("http://"), "\(message)")
        #expect(!message.contains("u:p"))
    }

    @Test(arguments: ["%+1", "%-1", "% 1", "%1", "%"])
    func `a percent sign in user information needs two hexadecimal digits`(text: String) {
        let url = ConfigNode(.scalar("http://u:p\(text)@a:1", isQuoted: true))
        var reader = OptionsReader(["url": url], keyPath: "upstreamProxy")
        var value: ProxyUrl?
        reader.read("url", into: &value)
        #expect(!reader.finish().isEmpty)
    }

    @Test func `any other mistake in the URL of a proxy does not show it`() {
        var reader = OptionsReader(["url": "ftp://user:hunter@proxy.test"], keyPath: "upstreamProxy")
        var value: ProxyUrl?
        reader.read("url", into: &value)
        let message = reader.finish().map(\.message).joined()
        #expect(message.contains("the secret value is not a proxy URL") && !message.contains("hunter"), "\(message)")
    }
}
