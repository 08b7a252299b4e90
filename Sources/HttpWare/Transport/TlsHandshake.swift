import Glibc

/// Starts a handshake, and receives its connection.
protocol TlsHandshakeOwner: AnyObject {
    /// The handshake is done: the socket, which is being read, and the session belong to the owner.
    func handshakeDone(_ handshake: TlsHandshake)
    /// The handshake failed, or took too long. The socket may stay open for a while, so that the peer can read the alert.
    func handshakeFailed(_ handshake: TlsHandshake, _ fault: TlsFault)
    /// The socket is closed: the owner must release the handshake.
    func handshakeClosed(_ handshake: TlsHandshake)
}

/// A TLS handshake on a socket, on either side, with a deadline. Used on its loop's thread only; its owner keeps it alive.
final class TlsHandshake: SocketEventHandler, LoopTimerHandler {
    let socket: SocketEvents
    let session: TlsSession
    /// The address of a client's connection.
    let peer: SocketAddress?
    private let timer: LoopTimer
    private weak var owner: (any TlsHandshakeOwner)?
    private let isServer: Bool
    /// Whether the handshake failed: further input is discarded until the peer has read the alert and closes.
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

    /// Starts: a client sends at once, a server waits for the client's bytes unless they are there.
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
        // A close with unread bytes would send a reset, which could destroy the alert.
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

    /// Closes the socket, unless it was handed over.
    func close() {
        guard !isHandedOver, socket.descriptor >= 0 else { return }
        timer.cancel()
        socket.close()
        owner?.handshakeClosed(self)
    }
}
