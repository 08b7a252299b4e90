import Testing

@testable import HttpWare

@Suite struct TlsHandshakeTests {
    private let stage: HandTurnedLoop
    private let files = TestCertificates.shared

    init() throws { stage = try HandTurnedLoop() }

    private final class Owner: TlsHandshakeOwner {
        var events: [String] = []
        var fault: TlsFault?
        /// An owner keeps its handshake alive.
        var handshake: TlsHandshake?

        func handshakeDone(_ handshake: TlsHandshake) { events.append("done") }
        func handshakeFailed(_ handshake: TlsHandshake, _ fault: TlsFault) {
            events.append("failed")
            self.fault = fault
        }
        func handshakeClosed(_ handshake: TlsHandshake) { events.append("closed") }
    }

    /// A server's handshake that was started, and may take ten seconds.
    private func server(_ owner: Owner) throws -> (handshake: TlsHandshake, far: FarEnd) {
        let (near, far) = try stage.pair()
        let context = try TlsContext(server: TlsContext.Server(identities: [files.identity("a")]))
        let way = try #require(stage.transport.tlsSocket)
        let session = try #require(TlsSession(server: context, socket: way, descriptor: near.descriptor))
        let handshake = TlsHandshake(socket: near, session: session, isServer: true, owner: owner)
        owner.handshake = handshake
        handshake.start(dueNanoseconds: stage.loop.now.nanoseconds + 10_000_000_000)
        return (handshake, far)
    }

    private func peer(_ name: String = "a.test") throws -> TlsPeer {
        var options = TlsContext.Client()
        options.authorities = files.file("ca.pem")
        return TlsPeer(try TlsContext(client: options), name: name)
    }

    @Test func `the socket is handed over when the handshake is done, and the deadline does not count any more`() throws
    {
        let owner = Owner()
        let (handshake, far) = try server(owner)
        let client = try #require(
            TlsSession(client: try peer(), offering: [.http11], descriptor: far.descriptor))
        for _ in 0..<6 {
            _ = client.handshake()
            stage.turn()
        }
        #expect(owner.events == ["done"])
        #expect(handshake.socket.isReading)
        stage.advance(by: .seconds(60))
        handshake.close()
        #expect(owner.events == ["done"])
        #expect(handshake.socket.descriptor >= 0)
        handshake.socket.close()
    }

    @Test func `a client that speaks plain HTTP is answered in plain text, and closed when it closes`() throws {
        let owner = Owner()
        let (_, far) = try server(owner)
        far.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        stage.turn()
        #expect(owner.events == ["failed"] && owner.fault?.kind == .plainHttp)
        #expect(far.read() == PlainHttpAnswer.bytes)
        far.close()
        stage.turn()
        #expect(owner.events == ["failed", "closed"])
    }

    @Test func `a client that does not read the alert is closed after a second`() throws {
        let owner = Owner()
        let (_, far) = try server(owner)
        far.send([22, 3, 1, 0, 4, 9, 9, 9, 9])
        stage.turn()
        #expect(owner.events == ["failed"] && owner.fault?.kind == .protocolError)
        stage.advance(by: .milliseconds(999))
        #expect(owner.events == ["failed"])
        stage.advance(by: .milliseconds(1))
        #expect(owner.events == ["failed", "closed"])
    }

    @Test func `a client that goes on sending after a failed handshake is closed after 64 KiB`() throws {
        let owner = Owner()
        let (_, far) = try server(owner)
        far.send([22, 3, 1, 0, 4, 9, 9, 9, 9])
        stage.turn()
        for _ in 0..<4 {
            #expect(owner.events == ["failed"])
            #expect(far.send([UInt8](repeating: 0, count: 16 * 1024)))
            stage.turn()
        }
        #expect(owner.events == ["failed"])
        far.send("x")
        stage.turn()
        #expect(owner.events == ["failed", "closed"])
    }

    @Test func `a client that sends nothing is closed at the deadline`() throws {
        let owner = Owner()
        let (_, far) = try server(owner)
        stage.advance(by: .milliseconds(9999))
        #expect(owner.events.isEmpty)
        stage.advance(by: .milliseconds(1))
        #expect(owner.events == ["failed", "closed"])
        #expect(owner.fault?.reason == "the TLS handshake took too long")
        #expect(far.read().isEmpty && far.isEnded)
    }

    @Test func `a server whose part does not fit into the socket goes on when the client reads`() throws {
        let owner = Owner()
        let (handshake, far) = try server(owner)
        let client = try #require(TlsSession(client: try peer(), offering: [.http11], descriptor: far.descriptor))
        #expect(client.handshake() == .wantsRead)
        // The server has said nothing yet: these bytes are in its way.
        var filled = 0
        let filling = [UInt8](repeating: 0, count: 4096)
        while case .bytes(let count) = filling.withUnsafeBytes({ Socket.write(handshake.socket.descriptor, $0) }) {
            filled += count
        }
        stage.turn()
        #expect(owner.events.isEmpty)
        #expect(handshake.socket.isWriting && !handshake.socket.isReading)
        while filled > 0 {
            var buffer = [UInt8](repeating: 0, count: min(filled, 65536))
            guard case .bytes(let count) = buffer.withUnsafeMutableBytes({ Socket.read(far.descriptor, into: $0) })
            else {
                break
            }
            filled -= count
        }
        #expect(filled == 0)
        for _ in 0..<6 {
            stage.turn()
            _ = client.handshake()
        }
        stage.turn()
        #expect(owner.events == ["done"] && !handshake.socket.isWriting)
        handshake.socket.close()
    }

    @Test func `a client that stalls inside its handshake is closed at the deadline`() throws {
        let owner = Owner()
        let (_, far) = try server(owner)
        let client = try #require(TlsSession(client: try peer(), offering: [.http11], descriptor: far.descriptor))
        #expect(client.handshake() == .wantsRead)
        stage.advance(by: .milliseconds(9999))
        #expect(owner.events.isEmpty && !far.isEnded)
        stage.advance(by: .milliseconds(1))
        #expect(owner.events == ["failed", "closed"])
        #expect(owner.fault?.reason == "the TLS handshake took too long")
    }

    @Test func `a client's handshake begins at once, and closes when the server refuses it`() throws {
        let owner = Owner()
        let (near, far) = try stage.pair()
        let session = try #require(
            TlsSession(client: try peer(), offering: [.http11], descriptor: near.descriptor))
        let handshake = TlsHandshake(socket: near, session: session, isServer: false, owner: owner)
        owner.handshake = handshake
        handshake.start(dueNanoseconds: .max)
        // A record of a handshake. RFC 8446 §5.1.
        #expect(far.read().first == 22)
        far.send("HTTP/1.1 400 Bad Request\r\n\r\n")
        stage.turn()
        #expect(owner.events == ["failed", "closed"])
        #expect(near.descriptor == -1)
    }
}
