/// A client's connection of HTTP/2: many requests at once, each on a stream with an exchange of its own. RFC 9113.
///
/// Bytes come and go here, and time is kept for what belongs to the connection; what belongs to a request is in
/// `Http2DownstreamStream`.
final class Http2DownstreamConnection: Http2Connection, DownstreamConnection, Http2SessionHandler {
    let source: any ExchangeSource
    let facts: ConnectionFacts
    let session: Http2Session
    private let isSecure: Bool
    /// Streams to be used again.
    private var spare: [Http2DownstreamStream] = []
    /// The present head has to be whole by then.
    private var headDeadline: Int64 = 0
    /// Without streams the connection closes then.
    private var idleDeadline: Int64
    /// Since the listener drains: no more streams from then on.
    private var lastStreamsDeadline: Int64 = .max
    /// All is said; what still comes is thrown away.
    private var lingeringLeft: Int?
    private var hasClient = false

    private static let mostSpare = 128
    private static let lingerNanoseconds: Int64 = 2_000_000_000
    private static let lingerBytes = 1 << 20

    /// Takes over a socket. The connection that a client talks HTTP/2 on from its first byte.
    init(
        transport: LoopTransport, socket: SocketEvents, tls: TlsSession?, peer: SocketAddress?,
        source: any ExchangeSource
    ) {
        self.source = source
        facts = source.facts(socket, tls, peer: peer)
        isSecure = tls != nil
        idleDeadline = .max
        session = Http2Session(.server, rules: .ofRequests(source, isSecure: tls != nil), memory: transport.http2Memory)
        super.init(transport: transport, socket: socket, tls: tls)
        session.begin(self)
        // Until the client has said anything of its own it is as if it were sending a head.
        idleDeadline = loop.now.nanoseconds &+ source.headNanoseconds
        settle()
        if !socket.enableReading() { loop.later { self.close() } }
    }

    /// What was read before it was known to be HTTP/2; with nothing, our settings go out.
    func start(_ bytes: UnsafeRawBufferPointer) { received(bytes) }

    override var isLone: Bool { session.streams.count <= 1 }

    var isIdle: Bool { session.streams.isEmpty && !session.isReadingHead }

    func drain(idleFor nanoseconds: Int64) {
        guard lastStreamsDeadline == .max, lingeringLeft == nil else { return }
        session.announceEnd()
        lastStreamsDeadline = loop.now.nanoseconds &+ nanoseconds
        settle()
    }

    // MARK: Bytes

    override func received(_ bytes: UnsafeRawBufferPointer) {
        if let left = lingeringLeft {
            lingeringLeft = left - bytes.count
            if left < bytes.count { close() }
            return
        }
        let isUnderstood = session.receive(bytes)
        guard !isClosed else { return }
        if !isUnderstood { return giveUp() }
        if session.isReadingHead {
            if headDeadline == 0 { headDeadline = loop.now.nanoseconds &+ source.headNanoseconds }
        } else {
            headDeadline = 0
        }
        sendAll()
    }

    override func sendAll() {
        session.send()
        guard !isClosed, lingeringLeft == nil else { return }
        if session.isTerminating || session.isOver { return giveUp() }
        if lastStreamsDeadline == .min, session.streams.isEmpty { return giveUp() }
        settle()
    }

    /// Says what there is to say, and waits a little for the client to close: a reset would take the last frames along.
    private func giveUp() {
        session.send()
        session.closeStreams()
        guard !isClosed, lingeringLeft == nil else { return }
        lingeringLeft = Http2DownstreamConnection.lingerBytes
        endSending()
        guard !isClosed else { return }
        timer.set(dueNanoseconds: loop.now.nanoseconds &+ Http2DownstreamConnection.lingerNanoseconds)
    }

    /// Sets the timer to what comes first.
    private func settle() {
        guard lingeringLeft == nil else { return }
        var due = lastStreamsDeadline == .min ? .max : lastStreamsDeadline
        if headDeadline != 0 { due = min(due, headDeadline) }
        if session.streams.isEmpty { due = min(due, idleDeadline) }
        due = min(due, session.due)
        timer.set(dueNanoseconds: due)
    }

    override func timedOut() {
        let now = loop.now.nanoseconds
        if lingeringLeft != nil { return close() }
        if headDeadline != 0 && now >= headDeadline || session.streams.isEmpty && now >= idleDeadline {
            session.terminateIdle()
            return giveUp()
        }
        if now >= lastStreamsDeadline, lastStreamsDeadline != .min {
            lastStreamsDeadline = .min
            session.endStreams()
        }
        session.timeReached(now)
        sendAll()
    }

    // MARK: Output

    override func outputDrained() {
        guard lingeringLeft == nil else { return }
        sendAll()
    }

    var rules: Http2HeadDecoder.Rules { .ofRequests(source, isSecure: isSecure) }

    var now: Int64 { loop.now.nanoseconds }

    // MARK: Streams

    func makeStream() -> Http2Stream {
        hasClient = true
        return spare.popLast() ?? Http2DownstreamStream(connection: self)
    }

    func streamClosed(_ stream: consuming Http2Stream) {
        if spare.count < Http2DownstreamConnection.mostSpare {
            // Of the streams that `makeStream` made.
            spare.append(unsafeDowncast(stream, to: Http2DownstreamStream.self))
        }
        if session.streams.isEmpty {
            idleDeadline = loop.now.nanoseconds &+ source.idleNanoseconds
            wantsToSend()
        }
    }

    func settingsReceived() {
        guard !hasClient else { return }
        hasClient = true
        idleDeadline = loop.now.nanoseconds &+ source.idleNanoseconds
    }

    func goAwayReceived() {}

    // MARK: Endings

    override func receivedEnd() {
        // Of a client that has ended its side nobody waits for an answer: RFC 9113 knows no half-closed connection.
        close()
    }

    override func failed(_ error: Int32) { close() }

    override func closed() {
        session.closeStreams()
        spare = []
        source.closed(self)
    }
}

extension Http2HeadDecoder.Rules {
    /// How requests are read that come to this listener.
    fileprivate static func ofRequests(_ source: any ExchangeSource, isSecure: Bool) -> Self {
        Self(limits: source.limits, isForward: source.isForward, isSecure: isSecure)
    }
}
