/// One request to an origin server that speaks HTTP/2, and its response. RFC 9113 §8.
final class Http2UpstreamStream: Http2Stream, UpstreamStream, LoopTimerHandler {
    // Not unowned: an exchange may still have to read bytes that arrived before the connection closed.
    private let connection: Http2UpstreamConnection
    /// The connection's loop. A copy, like `transport`, because reaching it through another object counts a reference.
    private let loop: EventLoop
    private let transport: LoopTransport
    private var handler: (any ResponseReceiver)?
    private let timer: LoopTimer
    private var method = HttpMethod.get
    private var hasFinal = false
    private var hasReceived = false
    private var interimCount = 0
    private var responseNanoseconds: Int64 = 0
    private var idleNanoseconds: Int64 = 0
    private var isOutputAwaited = false
    private var isRequestSent = true
    /// Whether the client waits for the origin server's 100 (Continue) before it sends content. RFC 9110 §10.1.1.
    private var isContinueAwaited = false
    /// The request that waits for the origin server's settings.
    private var awaiting: (request: HttpRequest, options: HeadEncoder.RequestOptions)?
    /// The client's WebSocket key, while a WebSocket is requested.
    private var webSocketKey: String?
    private var isTunnel = false
    /// Bytes received while the receiver was paused: at most one window.
    private var held: [UInt8] = []
    private var hasHeldEnd = false
    private var heldTrailers: HttpFields?
    /// The amount of content that may still be discarded.
    private var discardLeft = 0

    /// How long the origin server may take to answer an expectation. Many servers never answer 100 over HTTP/2, and "a client that
    /// sends a 100-continue expectation is not required to wait for any specific length of time". RFC 9110 §10.1.1.
    private static let continueNanoseconds: Int64 = 100_000_000
    private static let mostOutput = 64 * 1024
    private static let someOutput = 16 * 1024
    private static let mostDiscarded = 64 * 1024

    init(connection: Http2UpstreamConnection) {
        self.connection = connection
        transport = connection.transport
        loop = transport.loop
        timer = LoopTimer(loop: loop)
        super.init(session: connection.session)
        timer.handler = self
    }

    /// Whether no exchange uses the stream.
    var isFree: Bool { handler == nil }

    var isReused: Bool { connection.hasServed }
    var tls: TlsSession? { connection.tls }
    var mayRefuseUnseen: Bool { true }

    // MARK: The request

    func send(
        requestOf exchange: Exchange, _ options: HeadEncoder.RequestOptions, receiver handler: any ResponseReceiver,
        responseTimeout: Int64, idleTimeout: Int64
    ) {
        self.handler = handler
        method = exchange.heldRequest.method
        hasFinal = false
        hasReceived = false
        interimCount = 0
        isOutputAwaited = false
        isRequestSent = exchange.heldRequest.content.isEmpty
        isContinueAwaited = exchange.heldRequest.expectsContinue
        if !held.isEmpty { held = [] }
        hasHeldEnd = false
        heldTrailers = nil
        isTunnel = false
        webSocketKey = nil
        responseNanoseconds = responseTimeout
        idleNanoseconds = idleTimeout
        progressed()
        if exchange.heldRequest.fields.authenticateConnection, !connection.endpoint.isOwned {
            // The connection may count as this user's: no other request follows on it.
            connection.retire()
        }
        if options.upgrade != nil, exchange.heldRequest.isWebSocketHandshake {
            awaiting = (options.outgoing?.request ?? exchange.heldRequest, options)
            return connection.hasSettings || connection.isClosed ? settingsKnown() : connection.awaitSettings(self)
        }
        if let outgoing = options.outgoing {
            submit(&outgoing.request, options, hasContent: !isRequestSent)
        } else {
            submit(&exchange.heldRequest, options, hasContent: !isRequestSent)
        }
    }

    private func submit(_ request: inout HttpRequest, _ options: HeadEncoder.RequestOptions, hasContent: Bool) {
        if session.submit(&request, options, hasContent: hasContent, on: self, isSecure: connection.isSecure) { return }
        connection.retire()
        failLater(
            GatewayError(
                .upstream, .connectionTerminated, "the connection takes no more requests", mayRetry: true,
                isUnprocessed: true))
    }

    /// Sends the request that waited for the origin server's settings, if it still exists: a WebSocket is an extended
    /// CONNECT. RFC 8441 §5.
    func settingsKnown() {
        guard var (request, options) = awaiting else { return }
        awaiting = nil
        guard session.takesWebSockets || !session.mayOpen else {
            return failLater(.upgradeFailed("the origin server takes no WebSocket over HTTP/2"))
        }
        webSocketKey = request.fields["Sec-WebSocket-Key"]
        request.fields.remove("Sec-WebSocket-Key" as FieldName)
        request.method = .connect
        options.upgrade = "websocket"
        submit(&request, options, hasContent: true)
    }

    func sendContent(_ bytes: UnsafeRawBufferPointer) {
        guard isOpen, bytes.count > 0 else { return }
        isContinueAwaited = false
        progressed()
        write(bytes)
    }

    func sendEnd(_ trailers: HttpFields?) {
        isRequestSent = true
        progressed()
        end(trailers)
    }

    var isBlocked: Bool {
        let isFull = outputCount >= Http2UpstreamStream.mostOutput || outputCount > 0 && connection.isBlocked
        if isFull { isOutputAwaited = true }
        return isFull
    }

    override func outputProgressed() {
        progressed()
        guard isOutputAwaited, outputCount <= Http2UpstreamStream.someOutput else { return }
        isOutputAwaited = false
        // Deferred, because a frame is being processed.
        loop.later { [self] in
            guard isOpen, let handler else { return }
            transport.inEvent { handler.upstreamDrained() }
        }
    }

    /// Fails: a tunnel to an origin server carries no HTTP, so it cannot use a stream. CONNECT uses connections of its own.
    func startTunnel(receiver handler: any ResponseReceiver, idleTimeout: Int64) {
        self.handler = handler
        failLater(.upgradeFailed("no tunnel leads through a connection of HTTP/2"))
    }

    func setTunnelIdle(_ nanoseconds: Int64) {
        idleNanoseconds = nanoseconds
        progressed()
    }

    func sendTunnel(_ bytes: UnsafeRawBufferPointer) { sendContent(bytes) }

    func endTunnel() { end(nil) }

    // MARK: The response

    override var awaitedMethod: HttpMethod? { hasFinal ? nil : method }

    override func responseReceived(_ response: inout HttpResponse, endsStream: Bool) {
        hasReceived = true
        guard let handler else { return hasFinal = !response.status.isInterim }
        if response.status.isInterim {
            let isAwaited = isContinueAwaited && response.status == .continue
            if response.status == .continue { isContinueAwaited = false }
            // Further ones are dropped. They do not extend the time until the final response.
            guard interimCount < Http1UpstreamConnection.mostInterim || isAwaited else { return }
            interimCount += 1
            progressed()
            return handler.responseInterim(&response)
        }
        hasFinal = true
        progressed()
        if let webSocketKey, response.status.code / 100 == 2 { beginTunnel(&response, webSocketKey) }
        handler.responseStarted(&response)
        if endsStream { endReceived(nil) }
    }

    /// The origin server accepts the WebSocket: the response is converted into that of HTTP/1.1. RFC 8441 §5.
    private func beginTunnel(_ response: inout HttpResponse, _ key: String) {
        isTunnel = true
        contentLeft = nil
        response.status = .switchingProtocols
        response.upgrade = "websocket"
        response.content = .none
        response.fields.setOwn("Sec-WebSocket-Accept", WebSocketKey.answer(to: key))
    }

    override func contentReceived(_ bytes: UnsafeRawBufferPointer) {
        guard let handler else {
            discardLeft -= bytes.count
            if discardLeft < 0 { session.cancel(self) }
            return
        }
        progressed()
        if isInputPaused { held.append(contentsOf: bytes) } else { pass(bytes, to: handler) }
    }

    private func pass(_ bytes: UnsafeRawBufferPointer, to handler: any ResponseReceiver) {
        if isTunnel { handler.tunnelReceived(bytes) } else { handler.responseContent(bytes) }
    }

    override func endReceived(_ trailers: HttpFields?) {
        if isInputPaused, handler != nil {
            hasHeldEnd = true
            heldTrailers = trailers
        } else {
            ended(trailers)
        }
    }

    private func ended(_ trailers: HttpFields?) {
        if isTunnel {
            handler?.tunnelReceivedEnd()
            return
        }
        let handler = self.handler.take()
        timer.clear()
        // The rest of the request is useless now.
        if isOpen, !endsOutput { session.cancel(self) }
        handler?.responseEnded(trailers)
        if !isOpen { connection.giveBack(self) }
    }

    func pause() { pauseInput() }

    func resume() {
        guard isInputPaused else { return }
        progressed()
        resumeInput()
        guard !held.isEmpty || hasHeldEnd else { return }
        transport.inEvent {
            let content = held
            held = []
            if !content.isEmpty, let handler { content.withUnsafeBytes { pass($0, to: handler) } }
            guard hasHeldEnd, !isInputPaused, handler != nil else { return }
            hasHeldEnd = false
            ended(heldTrailers)
        }
    }

    // MARK: Endings

    func cancel() {
        handler = nil
        timer.clear()
        held = []
        awaiting = nil
        if isOpen { session.cancel(self) } else { connection.giveBack(self) }
    }

    func discard() {
        guard isOpen else { return cancel() }
        guard endsOutput, hasFinal else { return cancel() }
        handler = nil
        held = []
        discardLeft = Http2UpstreamStream.mostDiscarded
        if let left = contentLeft, left > discardLeft { return cancel() }
        resumeInput()
    }

    private func failLater(_ error: GatewayError) {
        let asked = handler
        loop.later { [self] in
            guard handler === asked else { return }
            transport.inEvent { fail(error) }
        }
    }

    private func fail(_ error: GatewayError) {
        let handler = self.handler.take()
        timer.clear()
        awaiting = nil
        if isOpen { session.cancel(self) } else { connection.giveBack(self) }
        handler?.upstreamFailed(error)
    }

    override func broke(_ error: GatewayError) {
        let handler = self.handler.take()
        timer.clear()
        handler?.upstreamFailed(error)
    }

    override func closed(_ code: UInt32) {
        // The response is complete, and waits to be read.
        guard !hasHeldEnd else { return }
        let handler = self.handler.take()
        timer.clear()
        guard let handler else { return }
        transport.inEvent {
            if session.wantsHttp1(code), !hasFinal {
                handler.upstreamFailed(
                    GatewayError(
                        .upstream, .connectionTerminated, "the origin server requires HTTP/1.1 for this request",
                        mayRetry: true, isUnprocessed: true, requiresHttp1: true))
            } else if Http2Session.isRefusal(code), !hasFinal {
                handler.upstreamFailed(
                    GatewayError(
                        .upstream, .connectionTerminated, "the origin server refused the request unseen",
                        mayRetry: true, isUnprocessed: true))
            } else {
                let what = connection.isClosed ? connection.endReason : "the origin server reset the stream"
                handler.upstreamFailed(
                    GatewayError(
                        .upstream, hasReceived ? .responseIncomplete : .connectionTerminated,
                        hasReceived ? "\(what) inside the response" : "\(what) without a response",
                        mayRetry: !hasReceived))
            }
        }
    }

    private func progressed() {
        let wait = hasFinal ? idleNanoseconds : responseNanoseconds
        let isContinueDue = isContinueAwaited && !hasFinal
        timer.set(
            dueNanoseconds: loop.now.nanoseconds
                &+ (isContinueDue ? min(wait, Http2UpstreamStream.continueNanoseconds) : wait))
    }

    /// The origin server said nothing about the expectation: the client may send its content. The stream can end early without harm to
    /// the connection, so a refusal still comes through.
    private func grantContinue() {
        isContinueAwaited = false
        progressed()
        var response = HttpResponse(.continue)
        handler?.responseInterim(&response)
    }

    func timerFired(_ timer: LoopTimer) {
        if isContinueAwaited, !hasFinal, isOpen, responseNanoseconds > Http2UpstreamStream.continueNanoseconds {
            return transport.inEvent { grantContinue() }
        }
        // While the client is slow, with the response or the rest of its request, the client's own timer counts.
        let isClientAwaited = !hasFinal && !isRequestSent && outputCount == 0 && !isContinueAwaited
        if isInputPaused || isClientAwaited { return progressed() }
        let error =
            hasFinal
            ? GatewayError(.upstream, .responseIncomplete, "the response made no progress", isStall: true)
            : GatewayError(.upstream, .responseTimeout, "\(connection.endpoint.name) did not respond in time")
        transport.inEvent { fail(error) }
    }
}

extension HttpRequest {
    /// Whether it is a WebSocket handshake of HTTP/1.1. RFC 6455 §4.1.
    fileprivate var isWebSocketHandshake: Bool {
        method == .get && content.isEmpty && upgrade?.lowercased() == "websocket" && fields["Sec-WebSocket-Key"] != nil
    }
}
