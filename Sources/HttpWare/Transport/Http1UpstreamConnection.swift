// One file: sending requests and reading responses share one socket, one timer and one rule for what ends the connection.

import Glibc

/// Receives the events of a response: the exchange that sent the request. Used on the loop's thread.
///
/// Each of these calls may end the exchange before it returns, and cancel the stream that made the call. So a stream makes the call
/// last, or checks afterwards whether it is still open.
protocol ResponseReceiver: AnyObject {
    /// An interim response: 1xx except 101.
    func responseInterim(_ response: inout HttpResponse)
    /// The head of the final response; content follows, then `responseEnded`.
    func responseStarted(_ response: inout HttpResponse)
    /// The connection that may take the next content directly, unseen; `nil` if the receiver must see it.
    var responseRelay: SocketConnection? { get }
    /// The last of the content is about to be relayed.
    func responseEnding()
    /// This many bytes of content were relayed.
    func responseRelayed(_ count: Int)
    /// Content, valid during the call.
    func responseContent(_ bytes: UnsafeRawBufferPointer)
    /// The response is complete.
    func responseEnded(_ trailers: HttpFields?)
    /// The response failed, before or after its head.
    func upstreamFailed(_ error: GatewayError)
    /// Pending output has been sent.
    func upstreamDrained()
    /// Bytes of a tunnel.
    func tunnelReceived(_ bytes: UnsafeRawBufferPointer)
    /// The origin server sends no more into the tunnel.
    func tunnelReceivedEnd()
}

extension ResponseReceiver {
    func responseEnding() {}
}

/// A connection to an origin server: one request at a time. RFC 9112.
///
/// It is reused only if the request was sent completely and the response ended exactly at its boundary.
final class Http1UpstreamConnection: SocketConnection, UpstreamStream {
    private enum Phase {
        case idle
        case head
        case length(Int)
        case chunked
        case untilClose
        /// The response ended; the request is still being sent.
        case ended
        case tunnel
    }

    private unowned var pool: ConnectionPool
    private var phase = Phase.idle
    private var receiver: (any ResponseReceiver)?
    private var decoder = ResponseHeadDecoder()
    private let limits: HeadLimits
    private var chunks: ChunkedDecoder
    private var response = HttpResponse(.ok)
    private var method = HttpMethod.get
    /// Part of a head, or bytes that arrived while reading was paused.
    private var carry = CarriedInput()
    private var hasReceived = false
    private var interimCount = 0
    private var isPaused = false
    private var isProcessing = false
    /// The framing of the request's content.
    private var isChunkedRequest = false
    private var isRequestSent = true
    /// Whether the client waits for the origin server's 100 (Continue) before it sends content. RFC 9110 §10.1.1.
    private var isContinueAwaited = false
    private var responseNanoseconds: Int64 = 0
    private var idleNanoseconds: Int64 = 0
    /// Whether it has served an earlier request.
    private(set) var isReused = false
    /// Whether it may be authenticated: then only its client may use it again. RFC 4559 §6.
    private var mayBeAuthenticated = false
    /// Whether it is among the idle connections of its pool. Set by the pool.
    var isPooled = false
    /// The number of the addresses of the endpoint's name to which its own address belongs. Set by the pool.
    var nameNumber: UInt32 = 0
    private var asksForUpgrade = false
    /// A WebSocket key of our own, so that only we can check the answer to it. RFC 8441 §5.
    private var ownKey: String?
    /// Whether the connection stays open after the response.
    private var isPersistent = true
    /// The amount of content that may still be discarded.
    private var discardLeft = 0

    /// The maximum number of interim responses before a final one that are passed on.
    static let mostInterim = 100

    init(pool: ConnectionPool, socket: SocketEvents, tls: TlsSession?) {
        self.pool = pool
        limits = pool.endpoint.key.limits.response
        chunks = ChunkedDecoder(limits: limits)
        super.init(transport: pool.transport, socket: socket, tls: tls)
        if !socket.enableReading() { loop.later { self.close() } }
        if let tls, tls.hasPending { readOn() }
    }

    var endpoint: Endpoint { pool.endpoint }

    // MARK: Sending

    /// Sends a request's head; its content follows unless it has none.
    func send(
        requestOf exchange: Exchange, _ options: HeadEncoder.RequestOptions, receiver: any ResponseReceiver,
        responseTimeout: Int64, idleTimeout: Int64
    ) {
        self.receiver = receiver
        phase = .head
        method = exchange.heldRequest.method
        decoder = ResponseHeadDecoder()
        response.reset()
        hasReceived = false
        interimCount = 0
        asksForUpgrade = options.upgrade != nil
        if asksForUpgrade {
            ownKey = exchange.heldRequest.version == .http2 ? exchange.heldRequest.fields["Sec-WebSocket-Key"] : nil
        }
        responseNanoseconds = responseTimeout
        idleNanoseconds = idleTimeout
        if case .chunked = options.framing { isChunkedRequest = true } else { isChunkedRequest = false }
        isRequestSent = exchange.heldRequest.content.isEmpty
        isContinueAwaited = exchange.heldRequest.expectsContinue
        timer.set(dueNanoseconds: loop.now.nanoseconds &+ responseNanoseconds)
        if exchange.heldRequest.fields.authenticateConnection
            || options.outgoing?.request.fields.authenticateConnection == true
        {
            mayBeAuthenticated = true
        }
        if let outgoing = options.outgoing {
            sendHead(outgoing.request.encodedBound + options.encodedBound) { $0.write(&outgoing.request, options) }
        } else {
            sendHead(exchange.heldRequest.encodedBound + options.encodedBound) {
                $0.write(&exchange.heldRequest, options)
            }
        }
    }

    /// Content was relayed to this connection.
    func contentRelayed() { isContinueAwaited = false }

    /// Sends a piece of the request's content.
    func sendContent(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count > 0 else { return }
        isContinueAwaited = false
        progressed()
        if isChunkedRequest {
            sendChunk(bytes.count) { send(bytes) }
        } else {
            send(bytes)
        }
    }

    /// Ends the request's content.
    func sendEnd(_ trailers: HttpFields?) {
        isRequestSent = true
        if isChunkedRequest { sendLastChunk(trailers) }
        progressed()
        if case .ended = phase { finish() }
    }

    /// Turns into a tunnel without an HTTP request: for CONNECT.
    func startTunnel(receiver: any ResponseReceiver, idleTimeout: Int64) {
        self.receiver = receiver
        phase = .tunnel
        isRequestSent = false
        idleNanoseconds = idleTimeout
        progressed()
    }

    func setTunnelIdle(_ nanoseconds: Int64) {
        idleNanoseconds = nanoseconds
        keepAlive()
        progressed()
    }

    /// Sends bytes into the tunnel.
    func sendTunnel(_ bytes: UnsafeRawBufferPointer) {
        progressed()
        send(bytes)
    }

    /// Ends the client's side of the tunnel.
    func endTunnel() {
        endSending()
    }

    // MARK: Reading

    /// Stops reading, because the response cannot be forwarded now.
    func pause() {
        guard !isPaused else { return }
        isPaused = true
        socket.disableReading()
    }

    /// Continues reading.
    func resume() {
        guard isPaused, !isClosed else { return }
        isPaused = false
        progressed()
        startReading()
        guard !carry.isEmpty, !isProcessing else { return }
        transport.inEvent { receivedMore(nil) }
    }

    var relayTarget: SocketConnection? { isChunkedRequest && !isTunnel ? nil : self }

    private var isTunnel: Bool { if case .tunnel = phase { true } else { false } }

    override func relay() -> Relay? {
        guard carry.isEmpty else { return nil }
        return switch phase {
        case .length(let left) where left >= Relay.least: receiver?.responseRelay.map { Relay(target: $0, most: left) }
        case .tunnel where isBulk: receiver?.responseRelay.map { Relay(target: $0, most: .max) }
        default: nil
        }
    }

    override func relaying(_ count: Int) {
        if case .length(let left) = phase, left == count { receiver?.responseEnding() }
    }

    override func relayed(_ count: Int) {
        progressed()
        if case .length(let left) = phase { phase = .length(left - count) } else { noteTunnelPiece(count) }
        receiver?.responseRelayed(count)
        if case .length(0) = phase, !isClosed { ended(nil, hasMore: false) }
    }

    override func received(_ bytes: UnsafeRawBufferPointer) { receivedMore(bytes) }

    private func receivedMore(_ bytes: UnsafeRawBufferPointer?) {
        guard case .idle = phase else {
            hasReceived = true
            // A head that trickles in makes no progress: the time limit for the response keeps running.
            if case .head = phase {} else { progressed() }
            if carry.isEmpty, let bytes {
                let used = process(bytes)
                if used < bytes.count, !isClosed { carry.hold(bytes[used...]) }
            } else {
                let held = carry.take(adding: bytes)
                let used = held.withUnsafeBytes { process($0) }
                if !isClosed { carry.putBack(held, used: used) }
            }
            return
        }
        // Unsolicited bytes must never count as the response to the next request.
        close()
    }

    /// Returns the number of bytes used: the caller keeps the rest.
    private func process(_ input: UnsafeRawBufferPointer) -> Int {
        isProcessing = true
        defer { isProcessing = false }
        var position = 0
        while position < input.count, !isClosed {
            if isPaused { break }
            switch phase {
            case .idle: position = input.count
            case .ended:
                // Bytes after the end of the response: the connection cannot be reused.
                return input.count
            case .head:
                guard let length = decodeHead(UnsafeRawBufferPointer(rebasing: input[position...])) else {
                    return receiver == nil ? input.count : position
                }
                position += length
                startContent(hasMore: position < input.count)
            case .length(let left):
                let count = min(left, input.count - position)
                phase = .length(left - count)
                pass(UnsafeRawBufferPointer(rebasing: input[position..<(position + count)]))
                position += count
                if left == count, !isClosed { ended(nil, hasMore: position < input.count) }
            case .chunked:
                guard decodeChunk(input, &position) else { return input.count }
            case .untilClose:
                pass(UnsafeRawBufferPointer(rebasing: input[position...]))
                position = input.count
            case .tunnel:
                noteTunnelPiece(input.count - position)
                receiver?.tunnelReceived(UnsafeRawBufferPointer(rebasing: input[position...]))
                position = input.count
            }
        }
        return position
    }

    /// Returns the length of the head; `nil` if it is incomplete or was refused.
    private func decodeHead(_ input: UnsafeRawBufferPointer) -> Int? {
        do throws(GatewayError) {
            return try decoder.decode(input.bytes, into: &response, method: method, limits: limits)
        } catch {
            fail(error)
            return nil
        }
    }

    private func startContent(hasMore: Bool) {
        if response.status.isInterim {
            let isAwaited = isContinueAwaited && response.status == .continue
            if response.status == .continue { isContinueAwaited = false }
            // Further ones are dropped. They do not extend the time until the final response.
            if interimCount < Http1UpstreamConnection.mostInterim || isAwaited {
                interimCount += 1
                receiver?.responseInterim(&response)
                progressed()
            }
            response.reset()
            decoder = ResponseHeadDecoder()
            return
        }
        if response.status == .switchingProtocols {
            guard asksForUpgrade, response.upgrade != nil else {
                return fail(.upgradeFailed("the origin server switches protocols unasked"))
            }
            if let ownKey, response.fields["Sec-WebSocket-Accept"] != WebSocketKey.answer(to: ownKey) {
                return fail(.upgradeFailed("the origin server did not answer to the WebSocket's key"))
            }
            phase = .tunnel
            progressed()
            receiver?.responseStarted(&response)
            return
        }
        switch decoder.framing {
        case .length(let length): phase = .length(length)
        case .chunked:
            phase = .chunked
            chunks = ChunkedDecoder(limits: limits, nominated: response.fields.nominated)
        case .untilClose: phase = .untilClose
        case .none, .announced, .asGiven: phase = .length(0)
        }
        let isEmpty = response.content.isEmpty
        // From here on, the time limit is that without progress.
        if !isEmpty { progressed() }
        isPersistent = response.isPersistent
        if response.asksToAuthenticateConnection { mayBeAuthenticated = true }
        receiver?.responseStarted(&response)
        // Also if the receiver is gone: then the connection is free.
        if isEmpty, !isClosed { ended(nil, hasMore: hasMore) }
    }

    /// Decodes and forwards one piece; false if the response was refused.
    private func decodeChunk(_ input: UnsafeRawBufferPointer, _ position: inout Int) -> Bool {
        do throws(ChunkedFault) {
            switch try chunks.next(input.bytes, from: &position) {
            case .content(let range): pass(UnsafeRawBufferPointer(rebasing: input[range]))
            case .needsMore: break
            case .end(let end):
                position = end
                ended(chunks.trailers.isEmpty ? nil : chunks.trailers, hasMore: position < input.count)
            }
            return true
        } catch {
            fail(error.inResponse(limits))
            return false
        }
    }

    private func ended(_ trailers: HttpFields?, hasMore: Bool) {
        phase = .ended
        if hasMore { isPersistent = false }
        let receiver = self.receiver
        if isRequestSent {
            finish()
        } else {
            // The request is still being sent, but its rest is useless now.
            self.receiver = nil
            close()
        }
        receiver?.responseEnded(trailers)
    }

    /// Request and response are complete: the connection returns to the pool, or closes.
    private func finish() {
        receiver = nil
        if isPersistent, !isBlocked, !isClosed, !hasFailedOutput, !mayBeAuthenticated || endpoint.isOwned {
            isReused = true
            phase = .idle
            if isPaused {
                isPaused = false
                startReading()
            }
            pool.giveBack(self)
        } else {
            close()
        }
    }

    func belong(to own: Endpoint) {
        guard !isClosed, endpoint.key != own.key else { return }
        let former = pool
        pool = transport.pool(for: own)
        pool.adopt(self)
        former.release(self)
    }

    /// Becomes idle until this time, in nanoseconds of the loop's clock.
    func becomeIdle(until due: Int64) {
        phase = .idle
        timer.set(dueNanoseconds: due)
    }

    // MARK: Faults

    override func receivedEnd() {
        switch phase {
        case .idle, .ended: close()
        case .untilClose where carry.isEmpty && !isTruncated: ended(nil, hasMore: true)
        case .tunnel:
            socket.disableReading()
            isPaused = true
            receiver?.tunnelReceivedEnd()
        case .head:
            fail(
                GatewayError(
                    .upstream, hasReceived ? .responseIncomplete : .connectionTerminated,
                    hasReceived
                        ? "the connection closed inside the response's head"
                        : "the connection closed without a response",
                    mayRetry: !hasReceived))
        case .length, .chunked, .untilClose:
            fail(GatewayError(.upstream, .responseIncomplete, "the connection closed inside the response's content"))
        }
    }

    override func failed(_ error: Int32) {
        switch phase {
        case .idle, .ended: close()
        default:
            let text = tls?.fault?.reason ?? String(cString: strerror(error)).lowercased()
            let isAlert = tls?.fault?.kind == .alert
            fail(
                GatewayError(
                    .upstream, hasReceived ? .responseIncomplete : isAlert ? .tlsAlertReceived : .connectionTerminated,
                    "the connection broke: \(text)",
                    mayRetry: !hasReceived))
        }
    }

    override func couldNotSend(_ error: Int32) {
        // The origin server may have answered before it closed, so its answer, or the end, must still be read.
        isPersistent = false
        if case .tunnel = phase { failed(error) } else { receiver?.upstreamDrained() }
    }

    private func fail(_ error: GatewayError) {
        let receiver = self.receiver
        self.receiver = nil
        close()
        receiver?.upstreamFailed(error)
    }

    override func timedOut() {
        switch phase {
        case .idle, .ended: close()
        case .head:
            // While the rest of the request is missing, the client's own timer counts.
            if !isRequestSent, !isBlocked, !isContinueAwaited { return progressed() }
            fail(GatewayError(.upstream, .responseTimeout, "\(endpoint.name) did not respond in time"))
        case .length, .chunked, .untilClose, .tunnel:
            // While the client is slow, the client's own timer counts.
            if isPaused { return progressed() }
            fail(GatewayError(.upstream, .responseIncomplete, "the response made no progress", isStall: true))
        }
    }

    override func progressed() {
        switch phase {
        case .idle: break
        case .head: timer.set(dueNanoseconds: loop.now.nanoseconds &+ responseNanoseconds)
        default: timer.set(dueNanoseconds: loop.now.nanoseconds &+ idleNanoseconds)
        }
    }

    override func outputDrained() { receiver?.upstreamDrained() }

    /// Drops the exchange's response and closes.
    func cancel() {
        receiver = nil
        close()
    }

    /// Discards the rest of the response: up to 64 KiB are read so that the connection can be reused.
    func discard() {
        receiver = nil
        discardLeft = Http1UpstreamConnection.mostDiscarded
        switch phase {
        case .length(let left) where left > discardLeft: close()
        case .untilClose, .tunnel, .head: close()
        default: isRequestSent ? resume() : close()
        }
        // The pool must hold it until it has read the rest.
        if !isClosed, !isIdle { pool.hold(self) }
    }

    private var isIdle: Bool { if case .idle = phase { true } else { false } }

    private static let mostDiscarded = 64 * 1024

    /// Forwards content, or counts discarded content.
    private func pass(_ bytes: UnsafeRawBufferPointer) {
        if let receiver { return receiver.responseContent(bytes) }
        discardLeft -= bytes.count
        if discardLeft < 0 { close() }
    }

    override func closed() {
        receiver = nil
        carry.discard()
        pool.closed(self)
    }
}

extension HttpRequest {
    /// An upper bound of the encoded head's length, without the additions of the options.
    var encodedBound: Int { fields.bytes.count + fields.lines.count * 4 + target.bytes.count * 2 + 1024 }
}

extension HeadEncoder.RequestOptions {
    /// An upper bound of what the options add to a head, besides the fixed fields.
    var encodedBound: Int {
        let texts = basePath.utf8.count + (host?.utf8.count ?? 0) + (upgrade?.utf8.count ?? 0)
        return defaults.isEmpty ? texts : defaults.reduce(texts) { $0 + $1.wire.count }
    }
}

extension HttpResponse {
    /// An upper bound of the encoded head's length.
    var encodedBound: Int {
        fields.bytes.count + fields.lines.count * 4 + (reason?.count ?? 0) + (upgrade?.utf8.count ?? 0) + 1024
    }
}
