import Glibc
import HttpWare

/// Receives the events of a connection to a Redis server. Called on the loop's thread.
protocol RedisConnectionOwner: AnyObject {
    /// The connection is made: commands can be sent.
    func connectionStands()
    func received(_ reply: RedisReply)
    /// The connection has failed and is closed. Called once, and not after `close()`.
    func connectionEnded(_ reason: String)
}

/// One connection to a Redis server: it sends commands and receives replies. Used on its loop's thread only.
///
/// The bytes pass through this loop's own events, sockets and TLS; hiredis encodes and decodes them. The asynchronous half of
/// hiredis (0.14) is not used. It ends the process by `assert` if a server sends an unexpected reply or an invalid message,
/// it does its own name lookup, and it has no TLS.
final class RedisConnection: SocketEventHandler, LoopTurnHandler {
    private let loop: EventLoop
    private let socket: SocketEvents
    private let reader: RedisReplyReader
    /// TLS over the socket; `nil` for clear text.
    private let tls: TlsSession?
    /// Whether the socket is connected, and the TLS handshake has begun but not ended.
    private(set) var isShakingHands = false
    /// Under TLS: whether reading continues when the socket is writable.
    private var readWaitsForWriting = false
    private var stands = false
    private var output: [UInt8] = []
    private var written = 0
    private var isFlushing = false
    /// The time of the last received bytes, or the time when the connection was made.
    private(set) var lastReceived: LoopInstant
    private(set) var isClosed = false
    /// The receiver of events, which owns the connection.
    weak var owner: (any RedisConnectionOwner)?

    /// An empty output buffer larger than this is released, in bytes.
    private static let keptOutput = 64 << 10

    /// Starts to connect; `nil` if that fails at once.
    init?(
        to address: SocketAddress, security: RedisSecurity, loop: EventLoop, owner: any RedisConnectionOwner
    ) {
        if case .broken = security { return nil }
        guard let reader = RedisReplyReader() else { return nil }
        switch Socket.connect(to: address) {
        case .connected(let descriptor), .inProgress(let descriptor):
            socket = SocketEvents(loop: loop, descriptor: descriptor)
        case .failed: return nil
        }
        if case .tls(let peer) = security {
            guard let session = TlsSession(client: peer, descriptor: socket.descriptor) else {
                socket.close()
                return nil
            }
            tls = session
        } else {
            tls = nil
        }
        self.loop = loop
        self.reader = reader
        self.owner = owner
        lastReceived = loop.now
        socket.handler = self
        // A connect ends by becoming writable, whether it succeeded or not. A finished one is writable at once.
        guard socket.enableWriting() else {
            socket.close()
            return nil
        }
    }

    /// The server's address; `nil` for a Unix socket, or if the connection is closed.
    var peer: IPAddress? { isClosed ? nil : Socket.peerAddress(socket.descriptor)?.address }

    /// Sends a command after earlier ones. All commands are written together when the loop has handled all ready events.
    func send(_ command: [UInt8]) {
        guard !isClosed else { return }
        output += command
        guard stands, !isFlushing, !socket.isWriting else { return }
        isFlushing = true
        loop.whenTurnEnds(self)
    }

    /// Closes the connection without notifying the owner. Can be called more than once.
    func close() {
        isClosed = true
        owner = nil
        output = []
        if socket.descriptor >= 0 { tls?.shutdown() }
        socket.close()
    }

    private func end(_ reason: String) {
        let owner = owner
        close()
        owner?.connectionEnded(reason)
    }

    func turnEnded() {
        isFlushing = false
        flush()
    }

    private func flush() {
        while !isClosed, written < output.count {
            let result = output.withUnsafeBytes { write(UnsafeRawBufferPointer(rebasing: $0[written...])) }
            switch result {
            case .bytes(let count): written += count
            case .wouldBlock:
                if !socket.enableWriting() { end("the connection cannot be watched") }
                return
            case .end: return end(tls.map(reasonOfFailedWrite) ?? "the connection ended")
            case .failed(let code): return end(SystemError.text(of: code))
            }
        }
        guard !isClosed else { return }
        output.removeAll(keepingCapacity: output.count <= RedisConnection.keptOutput)
        written = 0
        if !readWaitsForWriting { socket.disableWriting() }
    }

    /// Writes bytes. `.end` under TLS means that the session has failed.
    private func write(_ bytes: UnsafeRawBufferPointer) -> Socket.Transfer {
        guard let tls else { return Socket.write(socket.descriptor, bytes) }
        return switch tls.write(bytes) {
        case .bytes(let count): .bytes(count)
        // Writing never waits for reading: there is no renegotiation.
        case .wantsRead, .wantsWrite: .wouldBlock
        case .end, .failed: .end
        }
    }

    func socketWritable() {
        if isShakingHands { return shakeHands() }
        if readWaitsForWriting {
            readWaitsForWriting = false
            socketReadable()
            guard !isClosed else { return }
        }
        guard !stands else { return flush() }
        let code = Socket.pendingError(socket.descriptor)
        guard code == 0 else { return end(SystemError.text(of: code)) }
        guard socket.enableReading() else { return end("the connection cannot be watched") }
        isShakingHands = tls != nil
        isShakingHands ? shakeHands() : begin()
    }

    private func begin() {
        stands = true
        owner?.connectionStands()
        flush()
    }

    func socketReadable() {
        if isShakingHands { return shakeHands() }
        if let tls { return readSecurely(tls) }
        switch Socket.read(socket.descriptor, into: loop.readBuffer) {
        case .bytes(let count): take(count)
        case .end: end("it closed the connection")
        case .wouldBlock: return
        case .failed(let code): end(SystemError.text(of: code))
        }
    }

    /// Decodes the first bytes of the loop's read buffer.
    private func take(_ count: Int) {
        lastReceived = loop.now
        do throws(RedisReplyReader.Fault) {
            try reader.feed(UnsafeRawBufferPointer(rebasing: loop.readBuffer[..<count]))
            // The owner may close the connection.
            while !isClosed, let reply = try reader.next() { owner?.received(reply) }
        } catch {
            end("its answer is not a Redis reply, or is too large")
        }
    }

    // MARK: TLS

    private func shakeHands() {
        guard let tls, !isClosed else { return }
        switch tls.handshake() {
        case .bytes, .end:
            isShakingHands = false
            begin()
            // The first bytes may have come with the end of the handshake.
            if !isClosed, tls.hasPending { readOn() }
        case .wantsRead: socket.disableWriting()
        case .wantsWrite: if !socket.enableWriting() { end("the connection cannot be watched") }
        case .failed: end(RedisConnection.reason(tls.fault, isEarly: true))
        }
    }

    /// Reads all available bytes, up to the size of the loop's buffer. OpenSSL may have read more than that from the socket, which
    /// then does not report it.
    private func readSecurely(_ tls: TlsSession) {
        var count = 0
        var outcome = TlsSession.Outcome.wantsRead
        repeat {
            outcome = tls.read(into: UnsafeMutableRawBufferPointer(rebasing: loop.readBuffer[count...]))
            guard case .bytes(let more) = outcome else { break }
            count += more
        } while count < loop.readBuffer.count && tls.hasPending
        if count > 0 { take(count) }
        guard !isClosed else { return }
        switch outcome {
        case .bytes: if tls.hasPending { readOn() }
        case .wantsRead: return
        case .wantsWrite:
            readWaitsForWriting = true
            if !socket.enableWriting() { end("the connection cannot be watched") }
        case .end: end("it closed the connection")
        case .failed: end(RedisConnection.reason(tls.fault, isEarly: false))
        }
    }

    /// Continues reading after other connections had a turn.
    private func readOn() {
        loop.later { [weak self] in
            guard let self, !self.isClosed, !self.isShakingHands else { return }
            self.socketReadable()
        }
    }

    /// A server that refuses the client's certificate says so by an alert, which is read before the failure of a write is reported.
    private func reasonOfFailedWrite(_ tls: TlsSession) -> String {
        if case .failed = tls.read(into: loop.readBuffer) { return RedisConnection.reason(tls.fault, isEarly: false) }
        return RedisConnection.reason(tls.writeFault, isEarly: false)
    }

    /// The reason of a failed session. `isEarly`: during the handshake.
    private static func reason(_ fault: TlsFault?, isEarly: Bool) -> String {
        guard let fault else { return "TLS failed" }
        return switch fault.kind {
        case .certificate: "its certificate is refused: \(fault.reason)"
        case .alert: "it refuses TLS: \(fault.reason)"
        case .truncated where !isEarly: "it closed the connection"
        case .broken where !isEarly: fault.reason
        default: "the TLS handshake failed: \(fault.reason); does the port speak TLS?"
        }
    }
}
