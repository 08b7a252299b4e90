import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct InterceptedTunnelTests {
    private let get = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"

    @Test func `TLS in a tunnel gets a certificate for the host, and its requests are exchanges`() throws {
        let stage = try InterceptStage()
        let client = try stage.tunnel()
        let session = try stage.session(client, for: "a.test")
        #expect(stage.shake(session) == .bytes(0))
        _ = TlsPair.write(session, get)
        stage.turn()
        let stream = try #require(stage.origin.streams.last)
        #expect(stream.request?.host == "a.test" && stream.endpoint.key.port == 443)
        stream.respond(text: "hi")
        stage.turn()
        #expect(TlsPair.read(session).1.hasSuffix("\r\n\r\nhi"))
    }

    @Test func `a request for another host than its tunnel's is refused with 421`() throws {
        let stage = try InterceptStage()
        let client = try stage.tunnel()
        let session = try stage.session(client, for: "a.test")
        _ = stage.shake(session)
        _ = TlsPair.write(session, "GET / HTTP/1.1\r\nHost: b.test\r\n\r\n")
        stage.turn()
        #expect(TlsPair.read(session).1.hasPrefix("HTTP/1.1 421 "))
        #expect(stage.origin.streams.isEmpty)
    }

    @Test func `in a tunnel to an address, the name in the handshake is the host`() throws {
        let names = HostList([try HostPattern(optionText: "a.test")])
        let stage = try InterceptStage(hosts: names)
        let client = try stage.tunnel(to: "192.0.2.1:443")
        let session = try stage.session(client, for: "a.test")
        #expect(stage.shake(session) == .bytes(0))
        _ = TlsPair.write(session, get)
        stage.turn()
        #expect(stage.origin.streams.last?.request?.host == "a.test")
    }

    @Test func `in a tunnel to an address, a name that is not listed passes unread`() throws {
        let stage = try InterceptStage(hosts: HostList([try HostPattern(optionText: "a.test")]))
        let client = try stage.tunnel(to: "192.0.2.1:443")
        _ = stage.shake(try stage.session(client, for: "b.test"))
        let stream = try #require(stage.origin.streams.last)
        #expect(TunnelProtocol.of(stream.content) == .tls(serverName: "b.test"))
    }

    @Test func `a client that refuses the certificate twice passes unread from then on`() throws {
        let stage = try InterceptStage(authority: try InterceptStage.makeAuthority())
        stage.advance(by: .seconds(1))
        for count in 1...2 {
            let client = try stage.tunnel()
            #expect(stage.shake(try stage.session(client, for: "a.test", trusts: false)) == .failed)
            stage.turn()
            #expect(stage.handshakes.count == count)
        }
        #expect(stage.handshakes == [.refused, .tunnelled])
        #expect(stage.origin.streams.isEmpty)
        let client = try stage.tunnel()
        _ = stage.shake(try stage.session(client, for: "a.test", trusts: false))
        #expect(TunnelProtocol.of(stage.origin.streams.last?.content ?? []) == .tls(serverName: "a.test"))
        #expect(stage.rules.pinned.passing(at: stage.hand.loop.now.nanoseconds).map(\.tunnels) == [1])
    }

    @Test func `a client that accepted the certificate before is intercepted, whatever another program refuses`() throws
    {
        let stage = try InterceptStage(authority: try InterceptStage.makeAuthority())
        for trusts in [true, false, false, false] {
            let client = try stage.tunnel()
            _ = stage.shake(try stage.session(client, for: "a.test", trusts: trusts))
            client.close()
            stage.turn()
        }
        #expect(stage.handshakes == [.refusedByOne, .refusedByOne, .refusedByOne])
    }

    @Test func `a handshake that is cut off shows nothing about the client`() throws {
        let stage = try InterceptStage(authority: try InterceptStage.makeAuthority())
        for _ in 1...3 {
            let client = try stage.tunnel()
            client.send(TunnelProtocolTests.hello("a.test"))
            stage.turn()
            client.close()
            stage.turn()
        }
        #expect(stage.handshakes.allSatisfy { $0 == .failed })
        #expect(stage.server.connectionCount == 0)
    }

    @Test func `a listener that drains closes a handshake in a tunnel`() throws {
        let stage = try InterceptStage()
        let client = try stage.tunnel()
        let session = try stage.session(client, for: "a.test")
        _ = session.handshake()
        stage.turn()
        #expect(stage.server.connectionCount == 1)
        stage.server.drain()
        stage.turn()
        #expect(stage.server.connectionCount == 0)
    }
}
