/// A client's connection of HTTP/2: many requests at once, each on a stream with its own exchange. RFC 9113.
///
/// This class handles bytes and the timers of the connection; `Http2DownstreamStream` handles each request.
final class Http2DownstreamConnection: Http2Connection, DownstreamConnection, Http2SessionHandler {
    let source: any ExchangeSource
    let facts: ConnectionFacts
    let session: Http2Session
    private let isSecure: Bool
    /// Streams for reuse.
    private var spare: [Http2DownstreamStream] = []
    /// The deadline for the current head; 0 without one.
    private var headDeadline: Int64 = 0
    /// The time at which the connection closes if it has no streams.
    private var idleDeadline: Int64
    /// After this time, a draining connection takes no more streams.
    private var lastStreamsDeadline: Int64 = .max
    /// Set when all output was sent: the amount of further input that is discarded.
    private var lingeringLeft: Int?
    private var hasClient = false

    private static let mostSpare = 128
    private static let lingerNanoseconds: Int64 = 2_000_000_000
    private static let lingerBytes = 1 << 20

    /// Takes over a socket on which the client speaks HTTP/2 from its first byte.
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
        // Until the client sends its own first frame, the time limit of a head applies.
        idleDeadline = loop.now.nanoseconds &+ source.headNanoseconds
        settle()
        if !socket.enableReading() { loop.later { self.close() } }
    }

    /// Starts with the bytes that revealed HTTP/2. Even without bytes, our settings are sent.
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

    /// Sends the pending frames, and waits a little for the client to close: a reset could destroy the last frames.
    private func giveUp() {
        session.send()
        session.closeStreams()
        guard !isClosed, lingeringLeft == nil else { return }
        lingeringLeft = Http2DownstreamConnection.lingerBytes
        endSending()
        guard !isClosed else { return }
        timer.set(dueNanoseconds: loop.now.nanoseconds &+ Http2DownstreamConnection.lingerNanoseconds)
    }

    /// Sets the timer to the earliest deadline.
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
            // All streams here were made by `makeStream`.
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
        // HTTP/2 has no half-closed connections (RFC 9113): a client that ended its side does not wait for an answer.
        close()
    }

    override func failed(_ error: Int32) { close() }

    override func closed() {
        session.closeStreams()
        spare = []
        facts.endBelongings()
        source.closed(self)
    }
}

extension Http2HeadDecoder.Rules {
    /// The rules for requests to this listener.
    fileprivate static func ofRequests(_ source: any ExchangeSource, isSecure: Bool) -> Self {
        Self(
            limits: source.limits, isForward: source.isForward, ownsPaths: source.ownsPaths, isSecure: isSecure)
    }
}
