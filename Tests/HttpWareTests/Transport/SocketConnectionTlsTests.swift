import Glibc
import Testing

@testable import HttpWare

/// Bytes under TLS, between a connection of the loop and a session that the test drives itself.
@Suite struct SocketConnectionTlsTests {
    private let stage: HandTurnedLoop
    private let files = TestCertificates.shared

    init() throws { stage = try HandTurnedLoop() }

    /// Keeps what it is told.
    private final class Recorder: SocketConnection {
        var pieces: [String] = []
        var ends = 0
        var failures: [Int32] = []
        var drains = 0
        /// Reading is paused after each piece.
        var pauses = false

        var text: String { pieces.joined() }

        override func received(_ bytes: UnsafeRawBufferPointer) {
            pieces.append(String(decoding: bytes, as: UTF8.self))
            if pauses { socket.disableReading() }
        }
        override func receivedEnd() {
            ends += 1
            socket.disableReading()
        }
        override func failed(_ error: Int32) {
            failures.append(error)
            socket.disableReading()
        }
        override func outputDrained() { drains += 1 }
    }

    /// The other end: its session, and the socket below it.
    private final class Far {
        let session: TlsSession
        let socket: FarEnd

        init(_ session: TlsSession, _ socket: FarEnd) {
            self.session = session
            self.socket = socket
        }

        func write(_ text: String) { #expect(TlsPair.write(session, text) == .bytes(text.utf8.count)) }

        /// All that is there, and what came behind it.
        func read() -> (bytes: [UInt8], behind: TlsSession.Outcome) {
            var all: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: TlsSession.recordSize)
            while true {
                let outcome = buffer.withUnsafeMutableBytes { session.read(into: $0) }
                guard case .bytes(let count) = outcome else { return (all, outcome) }
                all += buffer[..<count]
            }
        }

        /// The lengths of the records that came, about which the session learns nothing. RFC 8446 §5.1.
        func records() -> [Int] {
            var lengths: [Int] = []
            var rest = socket.read()[...]
            while rest.count >= 5 {
                let head = Array(rest.prefix(5))
                lengths.append(Int(head[3]) << 8 + Int(head[4]))
                rest = rest.dropFirst(5 + lengths[lengths.count - 1])
            }
            return lengths
        }
    }

    /// A connection of one side, its handshake done, and the other side. `isWhole` false leaves the last step of the handshake to
    /// a server that is the other side.
    private func connect(
        asServer isServer: Bool, isWhole: Bool = true, _ change: (inout TlsContext.Server) -> Void = { _ in }
    ) throws -> (near: Recorder, far: Far) {
        let (socket, end) = try stage.pair()
        var options = TlsContext.Server(identities: [files.identity("a")])
        change(&options)
        var trust = TlsContext.Client()
        trust.authorities = files.file("ca.pem")
        let (nearWay, farWay) = (try #require(stage.transport.tlsSocket), try #require(TlsSocket()))
        let server = try #require(
            TlsSession(
                server: try TlsContext(server: options), socket: isServer ? nearWay : farWay,
                descriptor: isServer ? socket.descriptor : end.descriptor))
        let client = try #require(
            TlsSession(
                client: TlsPeer(try TlsContext(client: trust), name: "a.test"), offering: [.http11],
                socket: isServer ? farWay : nearWay, descriptor: isServer ? end.descriptor : socket.descriptor))
        #expect(client.handshake() == .wantsRead)
        #expect(server.handshake() == .wantsRead)
        #expect(client.handshake() == .bytes(0))
        if isWhole { #expect(server.handshake() == .bytes(0)) }
        let near = Recorder(transport: stage.transport, socket: socket, tls: isServer ? server : client)
        socket.enableReading()
        let far = Far(isServer ? client : server, end)
        // The server's tickets are not content.
        if isServer { #expect(far.read() == ([], .wantsRead)) }
        return (near, far)
    }

    private func send(_ pieces: [[UInt8]], on near: SocketConnection) {
        stage.transport.inEvent { for piece in pieces { piece.withUnsafeBytes { near.send($0) } } }
    }

    /// Content in which no stretch is like another one.
    private func content(_ count: Int) -> [UInt8] {
        var content = [UInt8](repeating: 0, count: count)
        content.withUnsafeMutableBytes { bytes in
            for index in 0..<(count / 4) {
                bytes.storeBytes(of: UInt32(index).bigEndian, toByteOffset: index * 4, as: UInt32.self)
            }
        }
        return content
    }

    /// Lets the other side read until nothing more comes; answers all of it, and what came behind it.
    private func readAll(_ far: Far) -> (bytes: [UInt8], behind: TlsSession.Outcome) {
        var all: [UInt8] = []
        while true {
            let (bytes, behind) = far.read()
            all += bytes
            if bytes.isEmpty || behind != .wantsRead { return (all, behind) }
            stage.turn()
        }
    }

    // MARK: Reading

    @Test func `records that are there together are received as one piece`() throws {
        let (near, far) = try connect(asServer: true)
        for text in ["one ", "two ", "three"] { far.write(text) }
        stage.turn()
        #expect(near.pieces == ["one two three"])
        near.close()
    }

    @Test func `the end behind content waits while reading is paused`() throws {
        let (near, far) = try connect(asServer: false)
        near.pauses = true
        far.write("last")
        far.session.shutdown()
        stage.turn()
        #expect(near.pieces == ["last"] && near.ends == 0)
        stage.turn()
        #expect(near.ends == 0)
        // The socket has nothing more to tell: TLS has read the end already.
        near.startReading()
        stage.turn()
        #expect(near.ends == 1 && !near.isTruncated && near.failures.isEmpty)
        near.close()
    }

    @Test(arguments: [true, false])
    func `a peer that closes without close_notify leaves a response cut off, but not a request`(asServer: Bool) throws {
        let (near, far) = try connect(asServer: asServer)
        far.write("some")
        far.socket.close()
        stage.turn()
        #expect(near.pieces == ["some"])
        #expect(near.ends == 1 && near.isTruncated == !asServer && near.failures.isEmpty)
        near.close()
    }

    @Test func `an alert breaks the connection, and says so`() throws {
        let (near, far) = try connect(asServer: false, isWhole: false) {
            $0.clientAuthorities = files.file("ca.pem")
        }
        #expect(far.session.handshake() == .failed)
        stage.turn()
        #expect(near.failures == [EPROTO] && near.ends == 0)
        #expect(near.tls?.fault?.kind == .alert)
        near.close()
    }

    @Test func `bytes that are not a record break the connection`() throws {
        let (near, far) = try connect(asServer: true)
        far.write("whole")
        far.socket.send("HTTP/1.1 200 OK\r\n\r\n")
        stage.turn()
        #expect(near.pieces == ["whole"])
        #expect(near.failures == [EPROTO] && near.ends == 0)
        near.close()
    }

    @Test func `a read that waited for the socket to be writable goes on then`() throws {
        let (near, far) = try connect(asServer: true)
        near.socket.disableReading()
        far.write("late")
        stage.turn()
        #expect(near.pieces.isEmpty)
        near.readWaitsForWriting = true
        near.socket.enableWriting()
        stage.turn()
        #expect(near.pieces == ["late"])
        #expect(!near.readWaitsForWriting && !near.socket.isWriting)
        near.close()
    }

    @Test func `a connection is quiet until content or an end comes; a session ticket is neither`() throws {
        for ends in [true, false] {
            let (near, far) = try connect(asServer: false)
            // The server's tickets are there, and unread.
            #expect(near.isQuiet)
            if ends { far.session.shutdown() } else { far.write("x") }
            #expect(!near.isQuiet)
            near.close()
        }
    }

    // MARK: Writing

    @Test func `small pieces of one event leave in one record, and no record is longer than 16 KiB`() throws {
        let (near, far) = try connect(asServer: true)
        // A record of TLS 1.3 has a byte for its type and a tag of 16. RFC 8446 §5.2.
        let more = 17
        send([[1], [2], [3]], on: near)
        #expect(far.records() == [3 + more])
        send([Array("head".utf8), [UInt8](repeating: 0x78, count: 40_000)], on: near)
        #expect(far.records() == [16384 + more, 16384 + more, 40_004 - 2 * 16384 + more])
        near.reset()
    }

    @Test(arguments: [700, 20_000])
    func `output that the peer does not take at once arrives in order when it does`(size: Int) throws {
        let (near, far) = try connect(asServer: true)
        let content = content(1 << 20)
        send(
            stride(from: 0, to: content.count, by: size).map { Array(content[$0..<min($0 + size, content.count)]) },
            on: near)
        #expect(near.isBlocked && near.drains == 0)
        let (bytes, behind) = readAll(far)
        let isSame = bytes == content
        #expect(isSame && behind == .wantsRead)
        #expect(!near.isBlocked && near.drains == 1 && !near.socket.isWriting)
        // Nothing of what was begun is in the way of what follows.
        send([Array("next".utf8)], on: near)
        #expect(far.read().bytes == Array("next".utf8))
        near.close()
    }

    @Test func `a peer that has closed takes no output, but what it sent before is still received`() throws {
        let (near, far) = try connect(asServer: true)
        far.write("bye")
        far.socket.close()
        send([Array("late".utf8)], on: near)
        #expect(near.hasFailedOutput && near.failures == [EPIPE])
        near.socket.enableReading()
        stage.turn()
        #expect(near.pieces == ["bye"])
        near.close()
    }

    // MARK: Ending

    @Test func `a connection that closes says so when all was sent, and only then`() throws {
        let (near, far) = try connect(asServer: true)
        send([Array("all".utf8)], on: near)
        near.close()
        #expect(far.read() == (Array("all".utf8), .end))

        let (cut, other) = try connect(asServer: true)
        send([content(1 << 20)], on: cut)
        #expect(cut.isBlocked)
        cut.close()
        let (bytes, behind) = readAll(other)
        #expect(bytes.count < 1 << 20)
        #expect(behind == .failed && other.session.fault?.kind == .truncated)
    }

    @Test func `a connection that is reset does not end as if it were whole`() throws {
        let (near, far) = try connect(asServer: true)
        send([Array("some".utf8)], on: near)
        near.reset()
        #expect(far.read() == (Array("some".utf8), .failed))
    }

    @Test func `the end of output follows all output, and input still comes`() throws {
        let (near, far) = try connect(asServer: true)
        send([content(1 << 20)], on: near)
        near.endSending()
        #expect(near.isBlocked)
        let (bytes, behind) = readAll(far)
        #expect(bytes.count == 1 << 20 && behind == .end)
        far.write("more")
        stage.turn()
        #expect(near.pieces == ["more"] && near.failures.isEmpty)
        send([Array("never".utf8)], on: near)
        #expect(far.read().bytes.isEmpty)
        near.close()
    }
}
