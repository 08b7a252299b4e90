/// One request of a client's connection of HTTP/2, and its response. RFC 9113 §8.
final class Http2DownstreamStream: Http2Stream, ResponseSink, LoopTimerHandler {
    /// The connection releases its streams when it closes.
    private let connection: Http2DownstreamConnection
    /// The connection's loop. A copy, like `transport`, because reaching it through another object counts a reference.
    private let loop: EventLoop
    private let transport: LoopTransport
    /// The listener's idle timeout when the request began.
    private var idleNanoseconds: Int64 = 0
    private var handler: (any RequestReceiver)?
    private let timer: LoopTimer
    private var hasHead = false
    /// Whether the request asked for a WebSocket: the 101 of HTTP/1.1 is a 2xx here. RFC 8441 §5.
    private var isWebSocket = false
    private var isTunnel = false
    /// Whether received bytes belong to a tunnel that is not open yet.
    private var awaitsTunnel = false
    private var early: [UInt8] = []
    private var isOutputAwaited = false
    private var contentRate = MinimumRate()

    /// A stream with this much pending output accepts no more at present.
    private static let mostOutput = 64 * 1024
    /// A blocked stream accepts more output when at most this much is left.
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

    override func requestRefused(_ error: GatewayError, _ request: inout HttpRequest, isAnswered: Bool) {
        let handler = beginExchange(&request)
        if !isAnswered { self.handler = nil }
        handler.requestFailed(error, isAnswered: isAnswered)
    }

    /// Begins an exchange for this request.
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
            // At most one window of bytes arrives until the tunnel is open.
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

    override func broke(_ error: GatewayError) {
        timer.clear()
        handler.take()?.requestFailed(error, isAnswered: false)
    }

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
            // A 2xx would tell this client that the WebSocket is open.
            return sendFailedUpgrade(options)
        }
        options.framing = .ofResponse(sending: extent, status: status, to: method, version: .http2)
        let hasContent = extent != .none && options.framing.hasContent
        let isLong = if case .length(let length) = extent { length > 256 * 1024 } else { hasContent }
        // A refusal for a client of gRPC goes out with 200.
        takesRest = (exchange.finalStatus ?? status).code / 100 == 2
        if takesRest, hasContent, mayLeaveMuchUnread { options.framing = .chunked }
        options.date = transport.date
        session.submit(&exchange.response, options, hasContent: hasContent, isLong: isLong, on: self)
    }

    /// Whether the client may need more windows for the rest of its request. After a 2xx status, curl 7.88 stops reading windows once it
    /// has all the announced content, and hangs. So the length of that content is not announced.
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
        // Deferred, because a frame is being processed.
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
            // The client takes no output: its window is closed, or it does not read.
            session.cancel(self)
            return leave()
        }
        guard !hasEndedInput else { return }
        // While the gateway has paused the input, silence is expected.
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
