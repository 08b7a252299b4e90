import Glibc
import HttpWareTesting

@testable import HttpWare

/// A loop that turns only when a test says so, on the test's own thread. The other ends are Unix sockets, whose bytes arrive at
/// once, so a test decides what happens in which order and waits for nothing.
final class HandTurnedLoop {
    let clock = ManualClock()
    let loop: EventLoop
    let transport: LoopTransport

    init() throws {
        loop = try EventLoop(name: "by hand", clock: clock)
        transport = LoopTransport(loop: loop, resolver: nil)
    }

    /// Handles all that is ready, and what follows from it.
    func turn() { for _ in 0..<8 { loop.turn() } }

    /// Moves the clock, and handles what is due then.
    func advance(by duration: Duration) {
        clock.advance(by: duration)
        turn()
    }

    /// A socket of the loop and its other end. Packets keep their bounds, so that each write is seen by itself.
    func pair(inPackets: Bool = false) throws -> (near: SocketEvents, far: FarEnd) {
        var ends: [Int32] = [-1, -1]
        let type = Int32(
            (inPackets ? SOCK_SEQPACKET : SOCK_STREAM).rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw SystemError("socketpair") }
        return (SocketEvents(loop: loop, descriptor: ends[0]), FarEnd(ends[1]))
    }

    /// A client's connection over HTTP/2, started, and its other end.
    func http2Client(of source: RecordingSource) throws -> (Http2DownstreamConnection, FarHttp2) {
        let (near, far) = try pair()
        let connection = Http2DownstreamConnection(
            transport: transport, socket: near, tls: nil, peer: nil, source: source)
        connection.start(UnsafeRawBufferPointer(start: nil, count: 0))
        return (connection, FarHttp2(.client, far, self))
    }
}

/// The other end of a connection.
final class FarEnd {
    private(set) var descriptor: Int32
    /// The near end sends no more, and all that it sent was read.
    private(set) var isEnded = false

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close() }

    func close() {
        if descriptor >= 0 { Glibc.close(descriptor) }
        descriptor = -1
    }

    /// Says that nothing more comes.
    func endSending() { Socket.shutdownWriting(descriptor) }

    /// Sends bytes; answers whether the socket took them all.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        bytes.isEmpty || bytes.withUnsafeBytes { Socket.write(descriptor, $0) } == .bytes(bytes.count)
    }

    @discardableResult
    func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    /// The bytes of each read, until nothing is left.
    func readPieces() -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        while true {
            switch buffer.withUnsafeMutableBytes({ Socket.read(descriptor, into: $0) }) {
            case .bytes(let count): pieces.append(Array(buffer[..<count]))
            case .wouldBlock: return pieces
            case .end, .failed:
                isEnded = true
                return pieces
            }
        }
    }

    func readTexts() -> [String] { readPieces().map { String(decoding: $0, as: UTF8.self) } }

    /// All that is there.
    func read() -> [UInt8] { readPieces().reduce([], +) }
}

/// A Unix socket that connections are made to at once.
final class UnixOrigin {
    let path = "/tmp/httpware-origin-\(getpid())-\(UInt64.random(in: 0 ... .max))"
    private var listener: Int32

    init() throws { listener = try Socket.listen(on: .unix(path: path)) }

    deinit { stop() }

    var address: SocketAddress { .unix(path: path) }

    /// The next connection that was made.
    func accept() -> FarEnd? {
        guard case .accepted(let descriptor, _) = Socket.accept(listener) else { return nil }
        return FarEnd(descriptor)
    }

    /// Connections are refused from now on.
    func stop() {
        guard listener >= 0 else { return }
        Socket.close(listener)
        unlink(path)
        listener = -1
    }
}

/// The other end of a connection of HTTP/2.
final class FarHttp2 {
    let end: SessionEnd
    let socket: FarEnd
    private let stage: HandTurnedLoop

    init(_ role: Http2Session.Role, _ socket: FarEnd, _ stage: HandTurnedLoop) {
        end = SessionEnd(role)
        self.socket = socket
        self.stage = stage
    }

    /// Until neither side has anything left to say.
    func talk() {
        for _ in 0..<6 {
            end.session.send()
            _ = end.takeFrames()
            socket.send(end.output)
            end.output = []
            stage.turn()
            let bytes = socket.read()
            if !bytes.isEmpty { _ = bytes.withUnsafeBytes { end.session.receive($0) } }
        }
    }

    /// Sends a frame of RFC 9113 §4.1 that is unknown to the session.
    func send(frame type: UInt8, stream: UInt8, _ payload: [UInt8]) {
        socket.send([0, 0, UInt8(payload.count), type, 0, 0, 0, 0, stream] + payload)
        stage.turn()
    }

    /// The types of the frames that came since, about which the session learns nothing.
    func readFrames() -> [UInt8] {
        stage.turn()
        var frames: [UInt8] = []
        var rest = socket.read()[...]
        if rest.starts(with: "PRI".utf8) { rest = rest.dropFirst(Http2Preface.count) }
        while rest.count >= 9 {
            let head = Array(rest.prefix(9))
            frames.append(head[3])
            rest = rest.dropFirst(9 + Int(head[0]) << 16 + Int(head[1]) << 8 + Int(head[2]))
        }
        return frames
    }
}

/// Takes connections as an exchange does.
final class RecordingWaiter: ConnectionWaiter {
    private(set) var stream: (any UpstreamStream)?
    private(set) var error: GatewayError?
    /// How often it was answered.
    private(set) var answers = 0
    /// Called when there is no connection.
    var whenFailed: () -> Void = {}

    func connectionReady(_ stream: any UpstreamStream, _ times: Connector.Times?) {
        answers += 1
        self.stream = stream
    }

    func connectionFailed(_ error: GatewayError) {
        answers += 1
        self.error = error
        whenFailed()
    }
}

/// Takes a response as an exchange does.
final class RecordingResponse: ResponseReceiver {
    private(set) var interim: [Int] = []
    private(set) var head: HttpResponse?
    private(set) var content: [UInt8] = []
    private(set) var trailers: HttpFields?
    private(set) var ends = 0
    private(set) var error: GatewayError?
    private(set) var drains = 0
    private(set) var tunnel: [UInt8] = []
    /// Called when the head comes.
    var whenStarted: () -> Void = {}

    var text: String { String(decoding: content, as: UTF8.self) }
    var responseRelay: SocketConnection? { nil }

    func responseInterim(_ response: inout HttpResponse) { interim.append(response.status.code) }
    func responseStarted(_ response: inout HttpResponse) {
        head = response
        whenStarted()
    }
    func responseRelayed(_ count: Int) {}
    func responseContent(_ bytes: UnsafeRawBufferPointer) { content.append(contentsOf: bytes) }
    func responseEnded(_ trailers: HttpFields?) {
        ends += 1
        self.trailers = trailers
    }
    func upstreamFailed(_ error: GatewayError) { self.error = error }
    func upstreamDrained() { drains += 1 }
    func tunnelReceived(_ bytes: UnsafeRawBufferPointer) { tunnel.append(contentsOf: bytes) }
    func tunnelReceivedEnd() {}
}
