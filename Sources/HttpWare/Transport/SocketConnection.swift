import Glibc

// One file: reading, writing, TLS and tunnels share one socket, one queue of unsent bytes and one timer.
/// A connection's socket, its output and its timer: the common part of server and client connections.
///
/// It owns no buffer unless something is incomplete. Reads go to the loop's buffer; only bytes that a socket does not take, or
/// the unread rest of a message, are kept. Used on its loop's thread only.
class SocketConnection: SocketEventHandler, LoopTimerHandler {
    let transport: LoopTransport
    /// The transport's loop. A copy, like `output`, because reaching it through another object counts a reference.
    final let loop: EventLoop
    private let output: OutputBatch
    let socket: SocketEvents
    let timer: LoopTimer
    /// TLS over the socket; `nil` without TLS.
    let tls: TlsSession?
    /// Whether a tunnel's bytes came in large pieces recently: the next ones go through a pipe.
    private(set) final var isBulk = false
    /// Whether the last piece through the pipe was small: the end of a message, or of a series of large ones.
    private final var wasSmall = false
    /// Under TLS: whether more bytes are pending than the socket reports.
    var hasUnread = false
    /// Under TLS: whether reading continues when the socket is writable.
    var readWaitsForWriting = false
    /// The bytes that could not be sent yet, and how many of them were sent since.
    private var pending: [UInt8] = []
    private var pendingStart = 0
    /// Output before `pending` that was never in this process's buffers: from another connection's socket, or in separate pages.
    private var unseen: (any UnseenBytes)?
    private(set) var isClosed = false
    /// Whether to close when everything is sent.
    private var closesWhenSent = false
    /// Whether to call `outputDrained` after other connections had a turn.
    private var isTakingTurns = false
    /// Whether to end the sending side when everything is sent.
    private var endsWhenSent = false
    /// The time since which output has waited for the socket; `.max` once the peer took it fast.
    private var waitsSince = Int64.min
    /// A peer that takes half of `Socket.mostUnsent` in this time, in nanoseconds, counts as fast.
    private static let fast: Int64 = 50_000_000
    /// Whether the peer failed to take all output.
    private(set) var hasFailedOutput = false

    init(transport: LoopTransport, socket: SocketEvents, tls: TlsSession?) {
        self.transport = transport
        loop = transport.loop
        output = transport.output
        self.socket = socket
        self.tls = tls
        timer = LoopTimer(loop: loop)
        socket.handler = self
        timer.handler = self
    }

    /// Whether output waits for the socket.
    final var isBlocked: Bool { !pending.isEmpty || unseen != nil }
    /// The number of bytes that wait for the socket.
    final var pendingCount: Int { pending.count - pendingStart + (unseen?.count ?? 0) }

    // MARK: For subclasses

    /// Bytes were received; they are in the loop's read buffer and valid during the call.
    func received(_ bytes: UnsafeRawBufferPointer) {}
    /// The peer will send no more.
    func receivedEnd() {}
    /// The connection broke.
    func failed(_ error: Int32) {}
    /// The socket has taken all output.
    func outputDrained() {}
    /// The timer fired.
    func timedOut() {}
    /// The destination of the next bytes if they may go unseen, and their maximum number; `nil` if they are needed here.
    func relay() -> Relay? { nil }
    /// This many bytes are about to be relayed.
    func relaying(_ count: Int) {}
    /// This many bytes were relayed.
    func relayed(_ count: Int) {}
    /// The socket is writable. Called before output is sent, for instance when a connect has ended.
    func becameWritable() -> Bool { true }

    // MARK: Events

    /// Continues reading; bytes that TLS has already read do not make the socket readable.
    @inline(__always)
    final func startReading() {
        socket.enableReading()
        if hasUnread { readOn() }
    }

    final func socketReadable() {
        transport.inEvent {
            if let tls { return readSecurely(tls) }
            if let relay = relay(), pass(relay) { return }
            switch Socket.read(socket.descriptor, into: loop.readBuffer) {
            case .bytes(let count):
                received(UnsafeRawBufferPointer(rebasing: loop.readBuffer[..<count]))
            case .end: receivedEnd()
            case .wouldBlock: break
            case .failed(let error): failed(error)
            }
        }
    }

    /// Moves the available bytes to the other connection; false if they have to be read here.
    private func pass(_ relay: Relay) -> Bool {
        output.flush()
        guard !isClosed, let pipe = relay.target.takePipe() else { return false }
        switch pipe.fill(from: socket.descriptor, atMost: relay.most) {
        case .bytes(let count):
            relaying(count)
            relay.target.send(pipe)
            relayed(count)
            return true
        case .end: receivedEnd()
        case .wouldBlock: break
        case .failed(EINVAL): return false
        case .failed(let error): failed(error)
        }
        transport.spare(pipe)
        return true
    }

    /// Records the size of a tunnel's piece. Small pieces cost less when read and written, large ones when moved through a pipe.
    /// After two small pieces the pipe is not used any more: a single one is usually the end of a large message.
    final func noteTunnelPiece(_ count: Int) {
        let isSmall = count < Relay.leastTunnelPiece
        isBulk = !isSmall || isBulk && !wasSmall
        wasSmall = isSmall
    }

    /// An empty pipe whose bytes can be sent at once; `nil` if other output waits, or no pipe is available.
    private func takePipe() -> Pipe? {
        sendsUnseen ? transport.takePipe() : nil
    }

    /// Sends pages directly from their memory; false if that is impossible now, and they have to be sent like other bytes. Calls
    /// `sending` just before.
    final func send(_ memory: PageMemory, _ range: Range<Int>, sending: () -> Void) -> Bool {
        guard tls == nil else { return false }
        // The head is sent separately: with pages in its segment, the response costs a third more (Architecture).
        output.flush()
        guard let pipe = takePipe() else { return false }
        sending()
        send(PagesOnTheirWay(memory, range, through: pipe))
        return true
    }

    /// Whether unseen bytes can be sent here: only through a socket of the system, not through TLS, and not after pending output.
    final var sendsUnseen: Bool {
        tls == nil && !isClosed && !isBlocked && !hasFailedOutput && !Socket.isStandIn(socket.descriptor)
    }

    /// Sends a part of a file directly; false if that is impossible now, and it has to be sent like other bytes. Calls
    /// `sending` just before.
    final func send(_ file: OpenedFile, _ range: Range<Int>, sending: () -> Void) -> Bool {
        output.flush()
        guard sendsUnseen else { return false }
        sending()
        send(FileOnItsWay(file, range))
        // Also if the socket took no bytes: from now on there is output to wait for.
        if isBlocked { progressed() }
        return true
    }

    private func send(_ unseen: any UnseenBytes) {
        self.unseen = unseen
        if drainUnseen() { return }
        if !hasFailedOutput, !socket.isWriting { awaitWriting() }
    }

    /// Sends the unseen bytes. Returns whether all were sent; the pipe is then given back.
    private func drainUnseen() -> Bool {
        guard let unseen else { return true }
        while unseen.count > 0 {
            switch unseen.drain(to: socket.descriptor) {
            case .bytes(let count) where count > 0: progressed()
            case .bytes, .end, .wouldBlock: return false
            case .failed(let error):
                outputFailed(error)
                return false
            }
        }
        self.unseen = nil
        if let pipe = unseen.pipe { transport.spare(pipe) }
        return true
    }

    final func socketWritable() {
        transport.inEvent {
            guard becameWritable(), !isClosed else { return }
            if let tls, readWaitsForWriting {
                readWaitsForWriting = false
                readSecurely(tls)
                guard !isClosed else { return }
            }
            guard isBlocked else {
                if isTakingTurns { drained() }
                return stopWriting()
            }
            if waitsSince != .max { noteTaken() }
            if unseen != nil {
                guard drainUnseen() else { return }
                guard !pending.isEmpty else { return sentAll() }
            }
            let result = pending.withUnsafeBytes { write(UnsafeRawBufferPointer(rebasing: $0[pendingStart...])) }
            switch result {
            case .bytes(let count):
                pendingStart += count
                progressed()
                guard pendingStart == pending.count else { return }
                pending = []
                pendingStart = 0
                sentAll()
            case .end, .wouldBlock: break
            case .failed(let error): outputFailed(error)
            }
        }
    }

    private func awaitWriting() {
        if waitsSince != .max { waitsSince = loop.now.nanoseconds }
        socket.enableWriting()
    }

    /// The socket takes more. A fast peer gets its whole send buffer from now on, because filling it takes fewer turns.
    private func noteTaken() {
        let now = loop.now.nanoseconds
        if now &- waitsSince < SocketConnection.fast {
            Socket.liftUnsentLimit(socket.descriptor)
            waitsSince = .max
        } else {
            waitsSince = now
        }
    }

    /// Enables TCP keep-alive, which detects a silent dead peer.
    func keepAlive() { Socket.keepAlive(socket.descriptor) }

    private func sentAll() {
        if closesWhenSent { return close() }
        if endsWhenSent { endOutput() }
        drained()
        stopWriting()
    }

    /// Stops the write event, unless more bytes wait already, as in the middle of a large file. There, removing and adding the
    /// event would cost two calls for each part.
    private func stopWriting() {
        if !isClosed, !isBlocked, !isTakingTurns, !readWaitsForWriting { socket.disableWriting() }
    }

    private func drained() {
        isTakingTurns = false
        outputDrained()
    }

    /// Gives other connections a turn: `outputDrained` is called when the socket takes more, which may be already the case.
    final func takeTurns() {
        isTakingTurns = true
        if !isBlocked { socket.enableWriting() }
    }

    final func timerFired(_ timer: LoopTimer) { transport.inEvent { if !isClosed { timedOut() } } }

    /// Output made progress: its deadline moves.
    func progressed() {}

    // MARK: Output

    /// Sends bytes after all others. They are valid until the end of the event.
    final func send(_ bytes: UnsafeRawBufferPointer) {
        guard !isClosed, !hasFailedOutput else { return }
        if !isBlocked { output.append(bytes, for: self) } else { keep(bytes) }
    }

    /// Sends an array's bytes after all others, without copying large ones.
    final func send(_ bytes: [UInt8]) {
        guard !isClosed, !hasFailedOutput else { return }
        if !isBlocked { output.append(bytes, for: self) } else { bytes.withUnsafeBytes { keep($0) } }
    }

    /// Sends the bytes that `body` writes, at most `atMost`. Inlined, so that the closure captures no copies.
    @inline(__always)
    final func sendHead(_ atMost: Int, _ body: (inout HeadEncoder) -> Void) {
        guard !isClosed, !hasFailedOutput else { return }
        let own = ownRoom(atMost)
        var encoder = HeadEncoder(own ?? output.room(for: self))
        body(&encoder)
        if own == nil, !encoder.isOverflown {
            output.wrote(encoder.count)
        } else {
            keepHead(encoder, in: own)
        }
    }

    /// Memory for a head that cannot go to the loop's buffer, because other output is pending or it is too long. `keepHead` takes
    /// it back.
    @inline(__always)
    private func ownRoom(_ atMost: Int) -> UnsafeMutableRawBufferPointer? {
        !isBlocked && output.hasRoom(atMost, for: self) ? nil : makeRoom(atMost)
    }

    private func makeRoom(_ atMost: Int) -> UnsafeMutableRawBufferPointer? {
        if !isBlocked {
            output.flush()
            if !isBlocked, output.hasRoom(atMost, for: self) { return nil }
        }
        return .allocate(byteCount: max(1, atMost), alignment: 1)
    }

    private func keepHead(_ encoder: HeadEncoder, in own: UnsafeMutableRawBufferPointer?) {
        defer { own?.deallocate() }
        // Too long: the bound was wrong, and a partial head must not be sent.
        guard let own, !encoder.isOverflown else { return outputFailed(EMSGSIZE) }
        keep(UnsafeRawBufferPointer(rebasing: own[..<encoder.count]))
    }

    private func keep(_ bytes: UnsafeRawBufferPointer) {
        if pendingStart > 65536 {
            pending.removeFirst(pendingStart)
            pendingStart = 0
        }
        pending.append(contentsOf: bytes)
        if !socket.isWriting { awaitWriting() }
    }

    /// Sends gathered pieces. Called by the batch.
    final func write(_ pieces: UnsafeMutableBufferPointer<iovec>) {
        guard !isClosed, !hasFailedOutput else { return }
        var sent = 0
        if !isBlocked {
            let result =
                pieces.count == 1
                ? write(UnsafeRawBufferPointer(start: pieces[0].iov_base, count: pieces[0].iov_len))
                : tls.map { writeSecurely($0, pieces) }
                    ?? Socket.write(socket.descriptor, pieces: UnsafeBufferPointer(pieces))
            switch result {
            case .bytes(let count): sent = count
            case .end, .wouldBlock: break
            case .failed(let error): return outputFailed(error)
            }
        }
        for piece in pieces {
            if sent >= piece.iov_len {
                sent -= piece.iov_len
            } else {
                keep(UnsafeRawBufferPointer(start: piece.iov_base + sent, count: piece.iov_len - sent))
                sent = 0
            }
        }
        if !isBlocked && closesWhenSent { close() }
    }

    private func write(_ bytes: UnsafeRawBufferPointer) -> Socket.Transfer {
        guard let tls else { return Socket.write(socket.descriptor, bytes) }
        var piece = iovec(iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
        return withUnsafeMutablePointer(to: &piece) {
            writeSecurely(tls, UnsafeMutableBufferPointer(start: $0, count: 1))
        }
    }

    private func outputFailed(_ error: Int32) {
        hasFailedOutput = true
        pending = []
        pendingStart = 0
        unseen = nil
        socket.disableWriting()
        couldNotSend(error)
    }

    /// The peer takes no more output. Its input may still be useful.
    func couldNotSend(_ error: Int32) { failed(error) }

    // MARK: Closing

    /// Ends the sending side after all output.
    final func endSending() {
        guard !isClosed else { return }
        output.flush()
        guard !isClosed else { return }
        if !isBlocked { endOutput() } else { endsWhenSent = true }
    }

    private func endOutput() {
        tls?.shutdown()
        Socket.shutdownWriting(socket.descriptor)
    }

    /// Closes when all output is sent.
    final func closeWhenSent() {
        guard !isClosed else { return }
        output.flush()
        if !isBlocked { return close() }
        closesWhenSent = true
    }

    /// Closes now; pending output is lost.
    final func close() {
        guard !isClosed else { return }
        output.flush()
        guard !isClosed else { return }
        isClosed = true
        timer.cancel()
        if let tls, !isBlocked, !hasFailedOutput { tls.shutdown() }
        socket.close()
        pending = []
        unseen = nil
        closed()
    }

    /// Hands the socket over to another connection, before anything was sent on it. This connection ends silently.
    final func handOver() -> SocketEvents {
        output.flush()
        isClosed = true
        timer.cancel()
        return socket
    }

    /// Closes with a reset, so that the peer cannot take the received part for a whole message.
    final func reset() {
        guard !isClosed else { return }
        isClosed = true
        output.flush()
        timer.cancel()
        let descriptor = socket.detach()
        if descriptor >= 0 { Socket.reset(descriptor) }
        pending = []
        unseen = nil
        closed()
    }

    /// The connection was closed.
    func closed() {}
}

/// The destination of bytes that need not be seen here.
struct Relay {
    let target: SocketConnection
    /// The maximum number of bytes.
    let most: Int

    /// Fewer bytes are read and written as usual: a pipe would save nothing.
    static let least = 64 * 1024
    /// The same limit for a piece of a tunnel. Its length is unknown in advance, so the last piece's length is used.
    static let leastTunnelPiece = 16 * 1024
}
