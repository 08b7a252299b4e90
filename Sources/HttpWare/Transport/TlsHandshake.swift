import Glibc

/// Who began a handshake, and gets the connection.
protocol TlsHandshakeOwner: AnyObject {
    /// It is done: the socket, which is being read, and the session are the owner's.
    func handshakeDone(_ handshake: TlsHandshake)
    /// It failed, or took too long; the socket may stay open for a while, so that the peer learns why.
    func handshakeFailed(_ handshake: TlsHandshake, _ fault: TlsFault)
    /// The socket is closed: to be let go.
    func handshakeClosed(_ handshake: TlsHandshake)
}

/// A TLS handshake on a socket, of either side, with a deadline. Used on its loop's thread only; its owner keeps it alive.
final class TlsHandshake: SocketEventHandler, LoopTimerHandler {
    let socket: SocketEvents
    let session: TlsSession
    /// The other end of a client's connection.
    let peer: SocketAddress?
    private let timer: LoopTimer
    private weak var owner: (any TlsHandshakeOwner)?
    private let isServer: Bool
    /// It failed; what the peer still sends is thrown away until it has read the alert and closes.
    private var isLingering = false
    private var isHandedOver = false
    private var discarded = 0

    private static let lingerNanoseconds: Int64 = 1_000_000_000
    private static let lingerBytes = 64 * 1024

    init(
        socket: SocketEvents, session: TlsSession, isServer: Bool, peer: SocketAddress? = nil,
        owner: any TlsHandshakeOwner
    ) {
        self.socket = socket
        self.session = session
        self.isServer = isServer
        self.peer = peer
        self.owner = owner
        timer = LoopTimer(loop: socket.loop)
        socket.handler = self
        timer.handler = self
    }

    /// Begins: a client at once, a server when the client does, or has.
    func start(dueNanoseconds due: Int64, hasReceived: Bool = false) {
        timer.set(dueNanoseconds: due)
        if !isServer || hasReceived { return goOn() }
        if !socket.enableReading() { fail(TlsFault(.broken(ENOMEM), SystemError.text(of: ENOMEM).lowercased())) }
    }

    func socketReadable() { isLingering ? discard() : goOn() }
    func socketWritable() { isLingering ? socket.disableWriting() : goOn() }

    private func goOn() {
        switch session.handshake() {
        case .bytes, .end: succeed()
        case .wantsRead:
            socket.disableWriting()
            socket.enableReading()
        case .wantsWrite:
            socket.disableReading()
            socket.enableWriting()
        case .failed: fail(session.fault ?? TlsFault(.protocolError, "the handshake failed"))
        }
    }

    private func succeed() {
        timer.cancel()
        socket.disableWriting()
        socket.enableReading()
        isHandedOver = true
        owner?.handshakeDone(self)
    }

    private func fail(_ fault: TlsFault) {
        owner?.handshakeFailed(self, fault)
        guard isServer, socket.descriptor >= 0 else { return close() }
        if fault.kind == .plainHttp {
            _ = PlainHttpAnswer.bytes.withUnsafeBytes { Socket.write(socket.descriptor, $0) }
        }
        // A close with bytes unread would be a reset, and take the alert along.
        isLingering = true
        Socket.shutdownWriting(socket.descriptor)
        timer.set(dueNanoseconds: socket.loop.now.nanoseconds &+ TlsHandshake.lingerNanoseconds)
        socket.disableWriting()
        socket.enableReading()
    }

    private func discard() {
        switch Socket.read(socket.descriptor, into: socket.loop.readBuffer) {
        case .bytes(let count):
            discarded += count
            if discarded > TlsHandshake.lingerBytes { close() }
        case .wouldBlock: break
        case .end, .failed: close()
        }
    }

    func timerFired(_ timer: LoopTimer) {
        if isLingering { return close() }
        owner?.handshakeFailed(self, TlsFault(.protocolError, "the TLS handshake took too long"))
        close()
    }

    /// Ends it, unless it was handed over.
    func close() {
        guard !isHandedOver, socket.descriptor >= 0 else { return }
        timer.cancel()
        socket.close()
        owner?.handshakeClosed(self)
    }
}
