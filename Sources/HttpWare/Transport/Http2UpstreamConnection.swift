import Glibc

/// A connection of HTTP/2 to an origin server: as many concurrent requests as the server allows. RFC 9113.
final class Http2UpstreamConnection: Http2Connection, Http2SessionHandler {
    private unowned let pool: ConnectionPool
    let session: Http2Session
    let isSecure: Bool
    private var spare: [Http2UpstreamStream] = []
    /// Whether the origin server's settings have arrived.
    private(set) var hasSettings = false
    /// Streams whose requests are sent when the settings arrive.
    private var awaitingSettings: [Http2UpstreamStream] = []
    /// Whether it takes no more requests, and closes after its last one.
    private(set) var isRetired = false
    /// Whether it has served a request.
    private(set) var hasServed = false
    /// The reason why the connection ended, for errors of its exchanges.
    private(set) var endReason = "the connection closed"

    private static let mostSpare = 128
    /// The maximum of concurrent requests before the origin server's settings arrive: more might be refused.
    private static let assumedMost = 1

    init(pool: ConnectionPool, socket: SocketEvents, tls: TlsSession?) {
        self.pool = pool
        isSecure = tls != nil
        session = Http2Session(.client, rules: .ofResponses(pool, isSecure), memory: pool.transport.http2Memory)
        super.init(transport: pool.transport, socket: socket, tls: tls)
        session.begin(self)
        wantsToSend()
        if !socket.enableReading() { loop.later { self.close() } }
    }

    var endpoint: Endpoint { pool.endpoint }

    /// The number of further requests that it accepts now.
    var room: Int {
        guard !isRetired, !isClosed, !hasFailedOutput, session.mayOpen else { return 0 }
        let most = hasSettings ? session.peersMostStreams : Http2UpstreamConnection.assumedMost
        return min(most - session.streams.count, pool.allowance.most(at: now) - begun)
    }

    /// The number of requests that it has carried, with those of the present. Clients' streams have odd numbers. RFC 9113 §5.1.1.
    private var begun: Int { (Int(session.lastBegun) + 1) / 2 }

    /// The maximum of requests that should wait for another such connection.
    var mostJoining: Int {
        max(1, min(Http2UpstreamConnection.mostWaiting, session.peersMostStreams, pool.allowance.most(at: now)))
    }
    private static let mostWaiting = 100

    /// A stream on which a request can be sent at once.
    func makeStream() -> Http2Stream { takeStream() }

    func takeStream() -> Http2UpstreamStream {
        timer.clear()
        return spare.popLast() ?? Http2UpstreamStream(connection: self)
    }

    /// Takes back a stream that is unused or has ended.
    func giveBack(_ stream: Http2UpstreamStream) {
        // Once the connection is closed, its pool may be gone.
        guard !isClosed else { return }
        if spare.count < Http2UpstreamConnection.mostSpare { spare.append(stream) }
        if session.streams.isEmpty { becameIdle() }
    }

    /// Starts the idle timeout if the new connection got no request.
    func settleIdle() { if session.streams.isEmpty { becameIdle() } }

    /// Starts the idle timeout of the pool.
    private func becameIdle() {
        guard !isClosed else { return }
        if pool.isRetired { isRetired = true }
        if isRetired { return loop.later { if self.session.streams.isEmpty { self.close() } } }
        timer.set(dueNanoseconds: loop.now.nanoseconds &+ pool.idleNanoseconds)
    }

    override func timedOut() {
        guard session.streams.isEmpty else { return }
        session.terminateIdle()
        session.send()
        closeWhenSent()
    }

    // MARK: Bytes

    override func received(_ bytes: UnsafeRawBufferPointer) {
        let isUnderstood = session.receive(bytes)
        guard !isClosed else { return }
        if !isUnderstood { endReason = "the bytes on the connection are not HTTP/2" }
        sendAll()
    }

    override func sendAll() {
        session.send()
        guard !isClosed else { return }
        if session.isTerminating || session.isOver { closeWhenSent() }
    }

    override func outputDrained() { sendAll() }

    var rules: Http2HeadDecoder.Rules { .ofResponses(pool, isSecure) }

    var now: Int64 { loop.now.nanoseconds }

    // MARK: Events of the session

    func streamClosed(_ stream: consuming Http2Stream) {
        hasServed = true
        noteOutlived()
        if let stream = stream as? Http2UpstreamStream, stream.isFree { giveBack(stream) }
        if session.streams.isEmpty { becameIdle() }
        if room > 0 { pool.hasRoom(self) }
    }

    /// Queues the stream's request until the origin server's settings are known.
    func awaitSettings(_ stream: Http2UpstreamStream) { awaitingSettings.append(stream) }

    private func sendAwaiting() {
        let streams = awaitingSettings
        awaitingSettings = []
        for stream in streams { stream.settingsKnown() }
    }

    func settingsReceived() {
        let areFirst = !hasSettings
        hasSettings = true
        sendAwaiting()
        if areFirst { return pool.settled(self) }
        if room > 0 { pool.hasRoom(self) }
    }

    func goAwayReceived() {
        if !session.requiresHttp1 {
            let refused = session.streams.count { $0.id > session.lastProcessed }
            pool.allowance.ended(after: (Int(session.lastProcessed) + 1) / 2, refusing: refused, at: now)
            pool.mostJoining = mostJoining
        }
        retire()
    }

    /// If the last request that it may carry has ended, and the origin server has not ended the connection, it carries more.
    private func noteOutlived() {
        guard !isRetired, !isClosed, begun >= pool.allowance.most(at: now),
            !session.streams.contains(where: { $0.id == session.lastBegun })
        else { return }
        pool.allowance.outlived(at: now)
    }

    /// Stops taking requests.
    func retire() {
        guard !isRetired else { return }
        isRetired = true
        if session.streams.isEmpty { close() }
    }

    // MARK: Endings

    override func receivedEnd() { close() }

    override func failed(_ error: Int32) {
        endReason = "the connection broke: \(String(cString: strerror(error)).lowercased())"
        close()
    }

    override func couldNotSend(_ error: Int32) {
        // The origin server may have answered before it closed, so its answer, or the end, must still be read.
        retire()
    }

    override func closed() {
        spare = []
        pool.willClose(self)
        session.closeStreams()
        sendAwaiting()
        spare = []
        pool.closed(self)
    }
}

extension Http2HeadDecoder.Rules {
    /// The rules for responses.
    fileprivate static func ofResponses(_ pool: ConnectionPool, _ isSecure: Bool) -> Self {
        Self(limits: pool.endpoint.key.limits.response, isSecure: isSecure)
    }
}
