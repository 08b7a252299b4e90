import Testing

@testable import HttpWare

@Suite struct Http2ConnectionTests {
    private let stage: HandTurnedLoop

    init() throws { stage = try HandTurnedLoop() }

    /// Sends its frames whenever it may.
    private final class Recorder: Http2Connection {
        var frames: [[UInt8]] = []
        /// How often it was asked to send.
        var turns = 0
        var received: [String] = []
        /// Called inside each turn.
        var whenAsked: () -> Void = {}

        override func sendAll() {
            turns += 1
            whenAsked()
            while !isOutputFull, !frames.isEmpty { frames.removeFirst().withUnsafeBytes { write($0) } }
        }
        override func received(_ bytes: UnsafeRawBufferPointer) {
            received.append(String(decoding: bytes, as: UTF8.self))
        }
    }

    private func connect(inPackets: Bool = false) throws -> (near: Recorder, far: FarEnd) {
        let (socket, far) = try stage.pair(inPackets: inPackets)
        return (Recorder(transport: stage.transport, socket: socket, tls: nil), far)
    }

    @Test func `frames of all streams leave in one write at the end of the turn`() throws {
        let (near, far) = try connect(inPackets: true)
        near.frames = ["one ", "two ", "three"].map { Array($0.utf8) }
        for _ in 0..<3 { near.wantsToSend() }
        #expect(near.turns == 0 && far.readPieces().isEmpty)
        stage.turn()
        #expect(near.turns == 1)
        #expect(far.readTexts() == ["one two three"])
        near.close()
    }

    @Test func `frames that are queued while it sends wait for the next turn`() throws {
        let (near, _) = try connect()
        near.whenAsked = { [unowned near] in if near.turns == 1 { near.wantsToSend() } }
        near.wantsToSend()
        stage.turn()
        #expect(near.turns == 2)
        near.close()
    }

    @Test func `a connection that closes before the end of the turn sends no more`() throws {
        let (near, far) = try connect()
        near.frames = [Array("never".utf8)]
        near.wantsToSend()
        near.close()
        stage.turn()
        near.wantsToSend()
        stage.turn()
        #expect(near.turns == 0 && far.read().isEmpty && far.isEnded)
        #expect(near.isOutputFull)
    }

    @Test func `no more frames are wanted while the peer takes none`() throws {
        let (near, far) = try connect()
        near.frames = Array(repeating: [UInt8](repeating: 0x78, count: 16_384), count: 64)
        near.wantsToSend()
        stage.turn()
        #expect(near.isOutputFull)
        let left = near.frames.count
        #expect(left > 0)
        // At most what one batch gathers goes beyond what the socket takes.
        #expect(near.pendingCount <= OutputBatch.mostPieces * 16_384)
        var count = 0
        for _ in 0..<1000 where near.isBlocked {
            count += far.read().count
            stage.turn()
        }
        #expect(!near.isOutputFull)
        #expect(count + far.read().count == (64 - left) * 16_384)
        near.close()
    }

    @Test func `frames that came with the end of the TLS handshake are received without another event`() throws {
        let files = TestCertificates.shared
        let (socket, far) = try stage.pair()
        var trust = TlsContext.Client()
        trust.authorities = files.file("ca.pem")
        let way = try #require(stage.transport.tlsSocket)
        let server = try #require(
            TlsSession(
                server: try TlsContext(server: TlsContext.Server(identities: [files.identity("a")])), socket: way,
                descriptor: socket.descriptor))
        let client = try #require(
            TlsSession(
                client: TlsPeer(try TlsContext(client: trust), name: "a.test"), offering: [.http11],
                descriptor: far.descriptor))
        _ = client.handshake()
        _ = server.handshake()
        #expect(client.handshake() == .bytes(0))
        #expect(TlsPair.write(client, "PRI *") == .bytes(5))
        #expect(server.handshake() == .bytes(0))
        socket.enableReading()
        let near = Recorder(transport: stage.transport, socket: socket, tls: server)
        stage.turn()
        #expect(near.received == ["PRI *"])
        near.close()
    }
}
