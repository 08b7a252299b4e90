import HttpWareTesting
import Testing

@testable import HttpWare

/// Clients that connect to hosts themselves, and are led to the listener without a CONNECT.
@Suite struct DirectDestinationTests {
    private let named = DirectDestination(name: "a.test", port: 443)
    private let bare = DirectDestination(address: IPAddress(ipv4: 0xc000_0201), port: 443)

    @Test func `an IPv4-mapped address is the IPv4 address, and an IPv6 address is in brackets`() throws {
        let mapped = try #require(IPAddress("::ffff:192.0.2.1"))
        #expect(DirectDestination(address: mapped, port: 80).host == "192.0.2.1")
        let other = DirectDestination(address: try #require(IPAddress("2001:db8::1")), port: 80)
        #expect(other.host == "[2001:db8::1]" && !other.isNamed)
    }

    @Test func `a handshake for the name that was looked up is intercepted`() throws {
        let stage = try InterceptStage()
        let client = try stage.direct(to: named)
        defer { client.close() }
        let session = try stage.session(client, for: "a.test")
        #expect(stage.shake(session) == .bytes(0))
        _ = TlsPair.write(session, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        stage.turn()
        let stream = try #require(stage.origin.streams.last)
        #expect(stream.request?.host == "a.test" && stream.endpoint.key.port == 443)
    }

    @Test func `a handshake for another name is refused, and the record names both`() throws {
        let stage = try InterceptStage()
        let client = try stage.direct(to: named)
        #expect(stage.shake(try stage.session(client, for: "b.test")) == .failed)
        #expect(stage.origin.streams.isEmpty && stage.server.connectionCount == 0)
        #expect(stage.failures == ["the handshake names b.test, but the client connected to a.test"])
    }

    @Test func `a request for another host than the handshake's is refused with 421`() throws {
        let stage = try InterceptStage()
        let client = try stage.direct(to: named)
        defer { client.close() }
        let session = try stage.session(client, for: "a.test")
        _ = stage.shake(session)
        _ = TlsPair.write(session, "GET / HTTP/1.1\r\nHost: b.test\r\n\r\n")
        stage.turn()
        #expect(TlsPair.read(session).1.hasPrefix("HTTP/1.1 421 "))
        #expect(stage.origin.streams.isEmpty)
    }

    @Test func `a handshake at an address leads to the host that it names, not to the address`() throws {
        let stage = try InterceptStage()
        let client = try stage.direct(to: bare)
        defer { client.close() }
        let session = try stage.session(client, for: "a.test")
        #expect(stage.shake(session) == .bytes(0))
        _ = TlsPair.write(session, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        stage.turn()
        let stream = try #require(stage.origin.streams.last)
        #expect(stream.endpoint.key.host == "a.test" && stream.endpoint.key.port == 443)
        _ = TlsPair.write(session, "GET / HTTP/1.1\r\nHost: b.test\r\n\r\n")
        stream.respond(text: "hi")
        stage.turn()
        #expect(TlsPair.read(session).1.contains("HTTP/1.1 421 "))
    }

    @Test func `HTTP without TLS must name the host that was looked up`() throws {
        let stage = try InterceptStage()
        let client = try stage.direct(to: DirectDestination(name: "a.test", port: 80))
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        stage.turn()
        #expect(stage.origin.streams.last?.request?.host == "a.test")
        let other = try stage.direct(to: DirectDestination(name: "a.test", port: 80))
        other.send("GET / HTTP/1.1\r\nHost: b.test\r\n\r\n")
        stage.turn()
        #expect(other.readTexts().joined().hasPrefix("HTTP/1.1 421 "))
        #expect(stage.origin.streams.count == 1)
    }

    @Test func `HTTP at an address leads to the host that the request names`() throws {
        let stage = try InterceptStage()
        let client = try stage.direct(to: DirectDestination(address: IPAddress(ipv4: 0xc000_0201), port: 80))
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        stage.turn()
        #expect(stage.origin.streams.last?.endpoint.key.host == "a.test")
    }

    @Test func `other protocols pass only to hosts whose tunnels may pass unread`() throws {
        let stage = try InterceptStage(unread: HostList([try HostPattern(optionText: "a.test")]))
        let client = try stage.direct(to: named)
        client.send("SSH-2.0-client\r\n")
        stage.turn()
        #expect(stage.origin.streams.last?.endpoint.key.host == "a.test")
        let other = try stage.direct(to: DirectDestination(name: "b.test", port: 443))
        other.send("SSH-2.0-client\r\n")
        stage.turn()
        #expect(other.read().isEmpty && other.isEnded && stage.origin.streams.count == 1)
        #expect(stage.failures.last?.contains("list the host in intercept.allowOpaque") == true)
    }

    @Test func `a client that refuses the certificate never passes unread if its host is not listed`() throws {
        let stage = try InterceptStage(authority: try InterceptStage.makeAuthority(), unread: HostList([]))
        stage.advance(by: .seconds(1))
        for _ in 1...3 {
            let client = try stage.direct(to: named)
            #expect(stage.shake(try stage.session(client, for: "a.test", trusts: false)) == .failed)
            stage.turn()
        }
        #expect(stage.handshakes == [.refused, .refused, .refused] && stage.origin.streams.isEmpty)
    }

    @Test func `a listener that intercepts nothing closes the connection`() throws {
        let stage = try InterceptStage()
        stage.server.update(
            name: "proxy", settings: stage.server.settings, forward: ForwardRules(), trustedProxies: [],
            router: stage.server.router)
        let client = try stage.direct(to: named)
        stage.turn()
        #expect(client.read().isEmpty && client.isEnded && stage.server.connectionCount == 0)
    }

    @Test(arguments: ["*.test", "a b", "-a.test", ""])
    func `a name that no host can have is refused`(name: String) throws {
        let stage = try InterceptStage()
        let client = try stage.direct(to: DirectDestination(name: name, port: 443))
        #expect(client.read().isEmpty && client.isEnded && stage.server.connectionCount == 0)
    }
}
