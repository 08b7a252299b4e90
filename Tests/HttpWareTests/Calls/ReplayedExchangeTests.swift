import Testing

@testable import HttpWare

/// Requests that are sent again through a listener of a proxy.
@Suite struct ReplayedExchangeTests {
    /// The path and query that go upstream.
    private func sent(_ url: [UInt8], _ method: HttpMethod = .get) throws -> [UInt8] {
        let stage = try InterceptStage()
        let order = ReplayedExchange.Order(mark: ReplayMark(id: 2, original: 1), method: method, url: url)
        try ReplayedExchange.start(order, on: stage.server)
        stage.turn()
        return try #require(stage.origin.streams.last?.request).upstreamTargetBytes
    }

    @Test(arguments: ["/100%", "/a%00b", "/../up", "/a/%2e%2e/%2e%2e/b", "/a|b?c={d}", "/a//b/./c", "/"])
    func `every path that passes can be sent again, as it was`(path: String) throws {
        for scheme in ["http", "https", "HTTP", "hTTpS"] {
            #expect(try sent(Array("\(scheme)://LOCALHOST\(path)".utf8)) == Array(path.utf8))
        }
    }

    @Test func `bytes that are not UTF-8 are sent as they are`() throws {
        for scheme in ["http", "https"] {
            let path: [UInt8] = Array("/l".utf8) + [0xe9] + Array("?q=".utf8) + [0xff, 0xc3]
            #expect(try sent(Array("\(scheme)://a.test".utf8) + path) == path)
        }
    }

    @Test func `OPTIONS for the server is sent again as such, RFC 9112 §3.2.4`() throws {
        for scheme in ["http", "https"] {
            #expect(try sent(Array("\(scheme)://a.test".utf8), .options) == Array("*".utf8))
            #expect(try sent(Array("\(scheme)://a.test/".utf8), .options) == Array("/".utf8))
        }
    }

    @Test(arguments: ["/a", "a.test/", "ftp://a.test/", "http://", "http://[::1/", "http://a.test/a b", ""])
    func `another URL is refused`(url: String) {
        #expect(throws: GatewayError.self) { try sent(Array(url.utf8)) }
    }
}
