/// One request of a client's connection of HTTP/2, and its response. RFC 9113 §8.
final class Http2DownstreamStream: Http2Stream, ResponseSink, LoopTimerHandler {
    /// It lets go of its streams when it closes.
    private let connection: Http2DownstreamConnection
    /// The connection's, like `transport`: here too, because a reference is counted to reach them through another object.
    private let loop: EventLoop
    private let transport: LoopTransport
    /// The listener's, when the request began.
    private var idleNanoseconds: Int64 = 0
    private var handler: (any RequestReceiver)?
    private let timer: LoopTimer
    private var hasHead = false
    /// The request asked for a WebSocket: what is a switch of protocols elsewhere is a success here. RFC 8441 §5.
    private var isWebSocket = false
    private var isTunnel = false
    /// What comes is for a tunnel that is not open yet.
    private var awaitsTunnel = false
    private var early: [UInt8] = []
    private var isOutputAwaited = false
    private var contentRate = MinimumRate()

    /// A stream that has so much to send takes no more at present.
    private static let mostOutput = 64 * 1024
    /// It takes more when no more than this is left.
    private static let someOutput = 16 * 1024

    init(connection: Http2DownstreamConnection) {
        self.connection = connection
        transport = connection.transport
        loop = transport.loop
        timer = LoopTimer(loop: loop)
        super.init(session: connection.session)
        timer.handler = self
    }

    var tls: TlsSession? { connection.tls }

    // MARK: The request

    override func requestReceived(_ request: inout HttpRequest, endsStream: Bool) {
        let upgrades = request.upgrade != nil
        let opensTunnel = upgrades || request.method == .connect
        let handler = beginExchange(&request)
        isWebSocket = upgrades
        awaitsTunnel = opensTunnel
        contentRate.start(at: loop.now)
        if !endsStream { progressed() }
        handler.requestStarted()
        if endsStream || awaitsTunnel, self.handler === handler { handler.requestEnded(nil) }
    }

    override func requestRefused(_ error: GatewayError, _ request: inout HttpRequest) {
        beginExchange(&request).requestFailed(error)
    }

    /// An exchange whose request is this one.
    private func beginExchange(_ request: inout HttpRequest) -> any RequestReceiver {
        hasHead = false
        isTunnel = false
        isWebSocket = false
        awaitsTunnel = false
        if !early.isEmpty { early = [] }
        isOutputAwaited = false
        let source = connection.source
        idleNanoseconds = source.idleNanoseconds
        let handler = source.makeReceiver(for: self, of: connection)
        self.handler = handler
        swap(&handler.exchange.heldRequest, &request)
        return handler
    }

    override func contentReceived(_ bytes: UnsafeRawBufferPointer) {
        guard let handler else { return }
        progressed()
        if isTunnel { return handler.tunnelReceivedFromClient(bytes) }
        if awaitsTunnel {
            // No more than a window comes until there is one.
            pauseInput()
            return early.append(contentsOf: bytes)
        }
        if let rate = connection.source.bodyMinRate,
            contentRate.isTooSlow(bytes.count, rate: rate, now: loop.now, resumed: loop.resumed)
        {
            return handler.requestFailed(MinimumRate.fault)
        }
        handler.requestContent(bytes)
    }

    override func endReceived(_ trailers: HttpFields?) {
        guard let handler else { return }
        if outputCount == 0 { timer.clear() }
        if isTunnel { return handler.tunnelEndedByClient() }
        if !awaitsTunnel { handler.requestEnded(trailers) }
    }

    override func broke(_ reason: String) { leave() }

    func pauseRequest() { pauseInput() }

    func resumeRequest() {
        guard isInputPaused else { return }
        progressed()
        resumeInput()
    }

    // MARK: The response

    func sendInterim(_ response: HttpResponse) {
        guard isOpen, !hasHead else { return }
        session.submitInterim(response, on: self)
    }

    func send(responseOf exchange: Exchange, extent: HttpContent.Extent, via: Bool) {
        guard isOpen, !hasHead else { return }
        hasHead = true
        let status = exchange.response.status
        var options = HeadEncoder.ResponseOptions()
        if via { options.via = exchange.response.version }
        let method = exchange.heldRequest.method
        let opensTunnel =
            isWebSocket ? status == .switchingProtocols : status.opensTunnel(to: method)
        if opensTunnel { return sendOpening(exchange.response, options) }
        if isWebSocket, status.code / 100 == 2 {
            // To this client it would say that there is a WebSocket.
            return sendFailedUpgrade(options)
        }
        options.framing = .ofResponse(sending: extent, status: status, to: method, version: .http2)
        let hasContent = extent != .none && options.framing.hasContent
        let isLong = if case .length(let length) = extent { length > 256 * 1024 } else { hasContent }
        takesRest = status.code / 100 == 2
        if takesRest, hasContent, mayLeaveMuchUnread { options.framing = .chunked }
        options.date = transport.date
        session.submit(&exchange.response, options, hasContent: hasContent, isLong: isLong, on: self)
    }

    /// Whether the client may need more windows for the rest of its request. After a status 2xx, curl 7.88 reads no windows once it
    /// has all the content that was announced, and waits for ever. So the length of that content is not announced.
    private var mayLeaveMuchUnread: Bool {
        !hasEndedInput && (isInputPaused || contentLeft ?? .max > Int(Http2Session.streamWindow) / 2)
    }

    private func sendOpening(_ response: HttpResponse, _ options: HeadEncoder.ResponseOptions) {
        var response = response
        response.status = .ok
        response.fields.remove("Sec-WebSocket-Accept" as FieldName)
        session.submit(&response, options, hasContent: true, isLong: true, on: self)
    }

    private func sendFailedUpgrade(_ options: HeadEncoder.ResponseOptions) {
        var options = options
        options.framing = .length(0)
        var response = HttpResponse(.badGateway)
        session.submit(&response, options, hasContent: false, isLong: false, on: self)
    }

    func sendContent(_ bytes: UnsafeRawBufferPointer) {
        guard isOpen, !endsOutput else { return }
        progressed()
        write(bytes)
    }

    func sendEnd(_ trailers: HttpFields?) {
        handler = nil
        guard isOpen else { return }
        session.exchangeCompleted()
        if !hasHead { return session.breakOff(self) }
        if isInputPaused { resumeInput() }
        end(trailers)
    }

    func cutOff() {
        handler = nil
        session.breakOff(self)
    }

    var isBlocked: Bool {
        let isFull = outputCount >= Http2DownstreamStream.mostOutput || outputCount > 0 && connection.isBlocked
        if isFull { isOutputAwaited = true }
        return isFull
    }

    override func outputProgressed() {
        if outputCount > 0 || !hasEndedInput { progressed() } else { timer.clear() }
        guard isOutputAwaited, outputCount <= Http2DownstreamStream.someOutput else { return }
        isOutputAwaited = false
        // Not here, in the middle of a frame.
        loop.later { [self] in
            guard isOpen, let handler else { return }
            transport.inEvent { handler.downstreamDrained() }
        }
    }

    // MARK: Tunnels

    func startTunnel() {
        isTunnel = true
        progressed()
        let held = early
        early = []
        if !held.isEmpty { held.withUnsafeBytes { handler?.tunnelReceivedFromClient($0) } }
        resumeInput()
        if hasEndedInput { handler?.tunnelEndedByClient() }
    }

    func setTunnelIdle(_ nanoseconds: Int64) {
        idleNanoseconds = nanoseconds
        if isTunnel { progressed() }
    }

    func sendTunnel(_ bytes: UnsafeRawBufferPointer) { sendContent(bytes) }

    func endTunnel() { end(nil) }

    func passTunnel(to taker: any TunnelTaker) {
        handler = taker.joinTunnel(self)
        startTunnel()
    }

    // MARK: Endings

    private func progressed() {
        timer.set(dueNanoseconds: loop.now.nanoseconds &+ idleNanoseconds)
    }

    func timerFired(_ timer: LoopTimer) {
        guard isOpen else { return }
        transport.inEvent { timedOut() }
    }

    private func timedOut() {
        if outputCount > 0 {
            // The client takes nothing: its window is closed, or it does not read.
            session.cancel(self)
            return leave()
        }
        guard !hasEndedInput else { return }
        // Not while it is we who do not take it.
        if isInputPaused { return progressed() }
        if hasHead || handler == nil {
            session.cancel(self)
            return leave()
        }
        handler?.requestFailed(
            GatewayError(.downstream, .requestTimeout, "the request's content made no progress"))
    }

    private func leave() {
        timer.clear()
        let handler = self.handler.take()
        handler?.clientLeft()
    }

    override func closed(_ code: UInt32) { leave() }
}
