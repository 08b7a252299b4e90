import Glibc

/// A connection's socket, its output and its timer: what server and client connections have in common.
///
/// It holds no buffer while nothing is half done: reads go to the loop's buffer, and only what a socket does not take, or
/// a message's unread rest, is kept. Used on its loop's thread only.
class SocketConnection: SocketEventHandler, LoopTimerHandler {
    let transport: LoopTransport
    /// The transport's, like `output`: here too, because a reference is counted to reach them through another object.
    final let loop: EventLoop
    private let output: OutputBatch
    let socket: SocketEvents
    let timer: LoopTimer
    /// TLS over the socket; `nil` is none.
    let tls: TlsSession?
    /// The bytes of a tunnel came in large pieces lately: the next go through a pipe.
    private(set) final var isBulk = false
    /// The last piece that went through the pipe was small: the end of a message, or the last large one for now.
    private final var wasSmall = false
    /// Under TLS: more is here than the socket tells of.
    var hasUnread = false
    /// Under TLS: reading goes on when the socket is writable.
    var readWaitsForWriting = false
    /// What could not be sent yet, and how much of it was sent since.
    private var pending: [UInt8] = []
    private var pendingStart = 0
    /// What goes out before `pending`, and was never here: it came from another connection's socket, or is in pages of its own.
    private var unseen: (any UnseenBytes)?
    private(set) var isClosed = false
    /// Close when everything is sent.
    private var closesWhenSent = false
    /// Say that output has drained when others have had their turn.
    private var isTakingTurns = false
    /// Say that nothing more comes when everything is sent.
    private var endsWhenSent = false
    /// Since when output waits for the socket; `.max` once the peer has taken it fast.
    private var waitsSince = Int64.min
    /// Who takes half of `Socket.mostUnsent` in so many nanoseconds is no peer that hardly reads.
    private static let fast: Int64 = 50_000_000
    /// The peer took not all that was sent.
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
    /// How many bytes wait for the socket.
    final var pendingCount: Int { pending.count - pendingStart + (unseen?.count ?? 0) }

    // MARK: For those who inherit

    /// Bytes came; they are in the loop's read buffer and valid during the call.
    func received(_ bytes: UnsafeRawBufferPointer) {}
    /// The peer will send no more.
    func receivedEnd() {}
    /// The connection broke.
    func failed(_ error: Int32) {}
    /// All output was taken by the socket.
    func outputDrained() {}
    /// The timer fired.
    func timedOut() {}
    /// Where the bytes that come next go unseen, and how many of them; `nil` when they are wanted here.
    func relay() -> Relay? { nil }
    /// So many bytes are about to go there.
    func relaying(_ count: Int) {}
    /// So many bytes went there.
    func relayed(_ count: Int) {}
    /// A connect ended, or nothing special: called when the socket is writable before output is looked at.
    func becameWritable() -> Bool { true }

    // MARK: Events

    /// Reads on; what TLS has read already does not make the socket readable.
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

    /// Moves what is there to the other connection; false when it has to be read here.
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

    /// A piece of a tunnel came. A small one costs less when it is read and written; a large one when it goes through a pipe.
    /// After two small ones the pipe is left: one alone is where a large message ends.
    final func noteTunnelPiece(_ count: Int) {
        let isSmall = count < Relay.leastTunnelPiece
        isBulk = !isSmall || isBulk && !wasSmall
        wasSmall = isSmall
    }

    /// An empty pipe whose bytes can go out at once; `nil` when others have to go before, or there is none to be had.
    private func takePipe() -> Pipe? {
        sendsUnseen ? transport.takePipe() : nil
    }

    /// Sends pages from where they are; false when that is not possible now, and they have to be sent as other bytes are. Calls
    /// `sending` just before.
    final func send(_ memory: PageMemory, _ range: Range<Int>, sending: () -> Void) -> Bool {
        guard tls == nil else { return false }
        // The head by itself: with pages in its segment the whole costs a third more (Architecture).
        output.flush()
        guard let pipe = takePipe() else { return false }
        sending()
        send(PagesOnTheirWay(memory, range, through: pipe))
        return true
    }

    /// Whether bytes can go out here that nobody saw: not through TLS, and not behind others that wait.
    final var sendsUnseen: Bool { tls == nil && !isClosed && !isBlocked && !hasFailedOutput }

    /// Sends a part of a file from where it is; false when that is not possible now, and it has to be sent as other bytes are. Calls
    /// `sending` just before.
    final func send(_ file: OpenedFile, _ range: Range<Int>, sending: () -> Void) -> Bool {
        output.flush()
        guard sendsUnseen else { return false }
        sending()
        send(FileOnItsWay(file, range))
        // Also where the socket took nothing of it: from now on there is something to wait for.
        if isBlocked { progressed() }
        return true
    }

    private func send(_ unseen: any UnseenBytes) {
        self.unseen = unseen
        if drainUnseen() { return }
        if !hasFailedOutput, !socket.isWriting { awaitWriting() }
    }

    /// Whether all went out; the pipe is given back then.
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

    /// The socket takes more. A peer that is fast has its whole send buffer from now on: to fill it takes fewer turns.
    private func noteTaken() {
        let now = loop.now.nanoseconds
        if now &- waitsSince < SocketConnection.fast {
            Socket.liftUnsentLimit(socket.descriptor)
            waitsSince = .max
        } else {
            waitsSince = now
        }
    }

    /// Lets TCP find out that a silent peer is gone.
    func keepAlive() { Socket.keepAlive(socket.descriptor) }

    private func sentAll() {
        if closesWhenSent { return close() }
        if endsWhenSent { endOutput() }
        drained()
        stopWriting()
    }

    /// The socket need not tell any more that it takes more; unless more waits for that by now, as it does in the middle of a large file:
    /// to take the event away and put it there again would be two calls for each part.
    private func stopWriting() {
        if !isClosed, !isBlocked, !isTakingTurns, !readWaitsForWriting { socket.disableWriting() }
    }

    private func drained() {
        isTakingTurns = false
        outputDrained()
    }

    /// Lets other connections have their turn: `outputDrained` comes when the socket takes more, which it may do already.
    final func takeTurns() {
        isTakingTurns = true
        if !isBlocked { socket.enableWriting() }
    }

    final func timerFired(_ timer: LoopTimer) { transport.inEvent { if !isClosed { timedOut() } } }

    /// Output made progress: a deadline for it moves.
    func progressed() {}

    // MARK: Output

    /// Sends bytes behind all others. They are valid until the end of the event.
    final func send(_ bytes: UnsafeRawBufferPointer) {
        guard !isClosed, !hasFailedOutput else { return }
        if !isBlocked { output.append(bytes, for: self) } else { keep(bytes) }
    }

    /// Sends bytes behind all others, as they are.
    final func send(_ bytes: [UInt8]) {
        guard !isClosed, !hasFailedOutput else { return }
        if !isBlocked { output.append(bytes, for: self) } else { bytes.withUnsafeBytes { keep($0) } }
    }

    /// Sends what `body` writes: no more than so many bytes. Inlined, so that nothing is copied for the closure to hold.
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

    /// Memory for a head that cannot go to the loop's buffer: other output waits, or it is too long for that. To be given
    /// back by `keepHead`.
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
        // Too long: the bound was none, and nothing half goes out.
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

    /// Sends gathered pieces: called by the batch.
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

    /// The peer takes no more output. Its input may still be worth reading.
    func couldNotSend(_ error: Int32) { failed(error) }

    // MARK: Closing

    /// Says that nothing more will be sent, behind all that was.
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

    /// Closes now; output that waits is lost.
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

    /// Gives the socket, on which nothing was sent yet, to another connection. This one ends without a word.
    final func handOver() -> SocketEvents {
        output.flush()
        isClosed = true
        timer.cancel()
        return socket
    }

    /// Closes with a reset, so that the peer cannot take what it has for a whole message.
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

/// Where bytes go that nobody here has to see.
struct Relay {
    let target: SocketConnection
    /// So many of them.
    let most: Int

    /// Less than this is read and written as usual: a pipe would save nothing.
    static let least = 64 * 1024
    /// The same for a piece of a tunnel, whose length nobody knows before it is there: as the last one was.
    static let leastTunnelPiece = 16 * 1024
}
