/// One request to an origin server that speaks HTTP/2, and its response. RFC 9113 §8.
final class Http2UpstreamStream: Http2Stream, UpstreamStream, LoopTimerHandler {
    // Not unowned: an exchange may still have to take what came before the connection closed.
    private let connection: Http2UpstreamConnection
    /// The connection's, like `transport`: here too, because a reference is counted to reach them through another object.
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
    /// The client sends no content until the origin server asks for it. RFC 9110 §10.1.1.
    private var isContinueAwaited = false
    /// A request that waits for the origin server's settings.
    private var awaiting: (request: HttpRequest, options: HeadEncoder.RequestOptions)?
    /// The client's, while a WebSocket is asked for.
    private var webSocketKey: String?
    private var isTunnel = false
    /// What came while nobody could take it: at most a window.
    private var held: [UInt8] = []
    private var hasHeldEnd = false
    private var heldTrailers: HttpFields?
    /// Content that may still be thrown away.
    private var discardLeft = 0

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

    /// No exchange has to do with it any more.
    var isFree: Bool { handler == nil }

    var isReused: Bool { connection.hasServed }
    var tls: TlsSession? { connection.tls }

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

    /// Sends the request that waited for the origin server's settings, if there still is one: a WebSocket is a CONNECT of its
    /// own kind. RFC 8441 §5.
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
        // Not here, in the middle of a frame.
        loop.later { [self] in
            guard isOpen, let handler else { return }
            transport.inEvent { handler.upstreamDrained() }
        }
    }

    /// A tunnel to an origin server has no HTTP, and so no stream: CONNECT takes connections of its own.
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
            interimCount += 1
            guard interimCount <= Http1UpstreamConnection.mostInterim else {
                return fail(.badResponse("too many interim responses"))
            }
            if response.status == .continue { isContinueAwaited = false }
            progressed()
            return handler.responseInterim(&response)
        }
        hasFinal = true
        progressed()
        if let webSocketKey, response.status.code / 100 == 2 { beginTunnel(&response, webSocketKey) }
        handler.responseStarted(&response)
        if endsStream { endReceived(nil) }
    }

    /// The origin server takes the WebSocket: for the exchange it is what HTTP/1.1 says then. RFC 8441 §5.
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
        // What is left of the request has no use any more.
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

    override func broke(_ reason: String) {
        let handler = self.handler.take()
        timer.clear()
        handler?.upstreamFailed(.badResponse(reason))
    }

    override func closed(_ code: UInt32) {
        // The response is whole, and waits to be taken.
        guard !hasHeldEnd else { return }
        let handler = self.handler.take()
        timer.clear()
        guard let handler else { return }
        transport.inEvent {
            if Http2Session.isRefusal(code) {
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
        timer.set(dueNanoseconds: loop.now.nanoseconds &+ (hasFinal ? idleNanoseconds : responseNanoseconds))
    }

    func timerFired(_ timer: LoopTimer) {
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
    /// It asks for a WebSocket as HTTP/1.1 does. RFC 6455 §4.1.
    fileprivate var isWebSocketHandshake: Bool {
        method == .get && content.isEmpty && upgrade?.lowercased() == "websocket" && fields["Sec-WebSocket-Key"] != nil
    }
}
