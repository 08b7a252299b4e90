import HttpWareTesting
import Testing

@testable import HttpWare

/// The exchange of a tunnel that passes unread, behind the client's opening.
@Suite struct UnreadTunnelTests {
    private let hello = "SSH-2.0-client\r\n"

    /// A tunnel that passes unread, and the host's end of it.
    private func passing(_ stage: InterceptStage) throws -> (FarEnd, ScriptedStream) {
        let client = try stage.tunnel()
        client.send(hello)
        stage.turn()
        return (client, try #require(stage.origin.streams.last))
    }

    @Test func `the host's bytes come without a second response, and the exchange is counted once`() throws {
        let stage = try InterceptStage()
        let (client, stream) = try passing(stage)
        stream.tunnel("one")
        stream.tunnel("two")
        stage.turn()
        #expect(client.readTexts().joined() == "onetwo")
        #expect(stage.server.backgroundCount == 0 && stage.server.connectionCount == 1)
        #expect(stage.failures.isEmpty && stage.origin.streams.count == 1)
    }

    @Test func `a client that does not read pauses the host, until it reads`() throws {
        let stage = try InterceptStage()
        let (client, stream) = try passing(stage)
        let piece = String(repeating: "a", count: 64 << 10)
        var sent = 0
        while !stream.isPaused, sent < 256 {
            stream.tunnel(piece)
            sent += 1
            stage.turn()
        }
        #expect(stream.isPaused)
        var received = 0
        for _ in 0..<sent where received < sent * piece.utf8.count {
            received += client.readTexts().joined().utf8.count
            stage.turn()
        }
        #expect(received == sent * piece.utf8.count && !stream.isPaused)
    }

    @Test func `a client that has left drops the connection to the host with the host's next bytes`() throws {
        let stage = try InterceptStage()
        let (client, stream) = try passing(stage)
        client.close()
        stage.turn()
        // A client may end its side and still read.
        #expect(stream.ends == 1 && !stream.isCancelled)
        stream.tunnel("one")
        stage.turn()
        #expect(stream.isCancelled && stage.server.connectionCount == 0)
    }

    @Test func `a host that fails closes the client's side`() throws {
        let stage = try InterceptStage()
        let (client, stream) = try passing(stage)
        stream.tunnel("one")
        stream.fail()
        stage.turn()
        #expect(client.readTexts() == ["one"])
        #expect(client.isEnded && stage.server.connectionCount == 0)
    }

    @Test func `a client that begins while the host is being connected leaves no exchange behind`() throws {
        let stage = try InterceptStage()
        stage.origin.isSlow = true
        let client = try stage.tunnel()
        stage.advance(by: .seconds(1))
        #expect(stage.server.backgroundCount == 1)
        client.send("GET / HTTP/1.1\r\nHost: a.test:443\r\n\r\n")
        stage.turn()
        #expect(stage.server.backgroundCount == 0)
        stage.origin.admit()
        stage.turn()
        // The connection of the unread tunnel was given up: only the request inside gets one.
        #expect(stage.origin.streams.map { $0.request?.host } == ["a.test"])
    }
}
