/// Runs requests through a chain within the process: the client is the caller, and the origin server a function.
///
/// What tests of wares and chains stand on. It lives on a loop; `send` may be called from any task.
public final class InProcessServer: Sendable {
    /// Plays the origin server: gets each request as it would go upstream, with its content, and answers or throws.
    public typealias Origin = @Sendable (HttpRequest, [UInt8]) async throws(GatewayError) -> HttpResponse

    /// How an exchange came out.
    public struct Outcome: Sendable {
        /// The response as the client gets it, its content whole; `nil` when it was cut off or the client left.
        public let response: HttpResponse?
        /// How the exchange ended.
        public let end: ExchangeEnd
        /// Who made the response.
        public let responder: Responder
        /// What went wrong.
        public let failure: GatewayError?
        /// What happened.
        public let record: ExchangeRecord
    }

    private let loop: EventLoop
    private let chain: WareChain
    private let origin: Origin?
    private let service: UpstreamService
    private let peer: SocketAddress?
    private let isForward: Bool

    /// Without an origin no route matches.
    public init(
        loop: EventLoop, chain: WareChain, peer: SocketAddress? = nil, isForward: Bool = false,
        timeouts: UpstreamService.Timeouts = UpstreamService.Timeouts(), origin: Origin?
    ) {
        self.loop = loop
        self.chain = chain
        self.origin = origin
        self.peer = peer
        self.isForward = isForward
        service = UpstreamService(
            name: "origin", endpoints: [Endpoint(host: "origin.test", port: 80)], host: .preserve, timeouts: timeouts)
    }

    /// Sends a request through the chain. Its content is `content.bytes`, or comes in the given pieces without a length.
    public func send(_ request: HttpRequest, pieces: [[UInt8]]? = nil) async -> Outcome {
        await loop.submit { InProcessCall(self.handoff(), request, pieces) }.outcome()
    }

    /// What a call needs of the server, made on the loop.
    private func handoff() -> LoopServer {
        var settings = ServerSettings()
        settings.isForward = isForward
        let plan = ExchangePlan(chain: chain, service: origin == nil ? nil : service, route: origin == nil ? nil : "test")
        // The transport is never asked to connect: the connector stands in for it.
        let server = LoopServer(
            name: "test", transport: LoopTransport(loop: loop, resolver: nil), settings: settings,
            router: SinglePlan(listenerPlan: plan))
        if let origin { server.connector = OriginConnector(loop: loop, origin: origin) }
        server.inProcessPeer = peer
        return server
    }
}

/// One plan for every request.
private struct SinglePlan: ExchangeRouter {
    let listenerPlan: ExchangePlan

    func plan(for request: borrowing HttpRequest, captures: inout [(name: String, value: String)]) -> ExchangePlan {
        listenerPlan
    }
}

/// One call: the client's side of an exchange in memory.
///
/// Unchecked: made on the loop, and touched on the loop only, but for `outcome`, which waits.
private final class InProcessCall: ResponseSink, @unchecked Sendable {
    private let server: LoopServer
    private let driver: ExchangeDriver
    private var response: HttpResponse?
    private var bytes: [UInt8] = []
    private let wait = LoopWait<InProcessServer.Outcome>()
    private var pieces: ArraySlice<[UInt8]>
    private var isPaused = false
    private var hasEnded = false

    init(_ server: LoopServer, _ request: HttpRequest, _ pieces: [[UInt8]]?) {
        self.server = server
        driver = ExchangeDriver(server: server)
        self.pieces = pieces?[...] ?? []
        driver.prepare(sink: self, peer: server.inProcessPeer, local: nil)
        var request = request
        request.fields.receivedCount = request.fields.lines.count
        let content = request.content.bytes
        if pieces != nil { request.content = HttpContent(extent: .unknown) }
        if content != nil, pieces == nil {
            self.pieces = [content ?? []]
            request.content.bytes = nil
        }
        driver.exchange.request = request
        driver.exchange.onEndInProcess = { exchange in self.ended(exchange) }
        server.transport.loop.later {
            self.driver.requestStarted()
            self.sendPieces()
        }
    }

    private func sendPieces() {
        while !hasEnded, !isPaused, let piece = pieces.popFirst() { piece.withUnsafeBytes { driver.requestContent($0) } }
        if !hasEnded, !isPaused, pieces.isEmpty, !driver.isRequestWhole { driver.requestEnded(nil) }
    }

    func outcome() async -> InProcessServer.Outcome {
        do throws(CancellationError) { return try await wait.value() } catch {
            let loop = server.transport.loop
            loop.execute { self.driver.clientLeft() }
            return InProcessServer.Outcome(
                response: nil, end: .clientLeft, responder: .gateway, failure: nil, record: ExchangeRecord())
        }
    }

    private func ended(_ exchange: Exchange) {
        hasEnded = true
        if exchange.end == .completed { response?.content = .bytes(bytes) } else { response = nil }
        wait.resume(
            returning: InProcessServer.Outcome(
                response: response, end: exchange.end ?? .cutOff, responder: exchange.responder, failure: exchange.failure,
                record: exchange.record))
    }

    func sendInterim(_ response: HttpResponse) {}
    func send(_ response: HttpResponse, extent: HttpContent.Extent, via: Bool) { self.response = response }
    func sendContent(_ bytes: UnsafeRawBufferPointer) { self.bytes.append(contentsOf: bytes) }
    func sendEnd(_ trailers: HttpFields?) {}
    func cutOff() {}
    func startTunnel() {}
    func sendTunnel(_ bytes: UnsafeRawBufferPointer) {}
    func endTunnel() {}
    func pauseRequest() { isPaused = true }
    func resumeRequest() {
        guard isPaused else { return }
        isPaused = false
        server.transport.loop.later { self.sendPieces() }
    }
    var isBlocked: Bool { false }
}

/// Gives each request to a function.
private final class OriginConnector: UpstreamConnector {
    private let loop: EventLoop
    private let origin: InProcessServer.Origin

    init(loop: EventLoop, origin: @escaping InProcessServer.Origin) {
        self.loop = loop
        self.origin = origin
    }

    func connect(to endpoint: Endpoint, forTunnel: Bool, timeout: Duration, waiter: any ConnectionWaiter) -> ConnectionTicket? {
        waiter.connectionReady(OriginStream(loop: loop, origin: origin), nil)
        return nil
    }
}

/// One request to the function, and its answer.
///
/// Unchecked: made on the loop, and its task runs on the loop.
private final class OriginStream: UpstreamStream, @unchecked Sendable {
    private let loop: EventLoop
    private let origin: InProcessServer.Origin
    private var request = HttpRequest()
    private var content: [UInt8] = []
    private weak var handler: (any ResponseHandler)?
    private var task: Task<Void, Never>?
    private var isPaused = false
    /// What waits for a pause to end.
    private var rest: (() -> Void)?

    let isReused = false
    let isBlocked = false

    init(loop: EventLoop, origin: @escaping InProcessServer.Origin) {
        self.loop = loop
        self.origin = origin
    }

    func send(
        _ request: HttpRequest, _ options: HeadEncoder.RequestOptions, handler: any ResponseHandler, responseTimeout: Int64,
        idleTimeout: Int64
    ) {
        self.request = request
        self.handler = handler
        if request.content.isEmpty { ask() }
    }

    func sendContent(_ bytes: UnsafeRawBufferPointer) { content.append(contentsOf: bytes) }

    func sendEnd(_ trailers: HttpFields?) { ask() }

    private func ask() {
        task = Task(executorPreference: loop) {
            do throws(GatewayError) {
                let response = try await self.origin(self.request, self.content)
                if !Task.isCancelled { self.answer(response) }
            } catch {
                if !Task.isCancelled { self.handler?.upstreamFailed(error) }
            }
        }
    }

    private func answer(_ response: HttpResponse) {
        guard let handler else { return }
        var head = response
        let bytes = response.content.bytes ?? []
        head.content.bytes = nil
        handler.responseStarted(&head)
        let rest = { [weak self] in
            guard let self, self.handler != nil else { return }
            if !bytes.isEmpty { bytes.withUnsafeBytes { handler.responseContent($0) } }
            guard self.handler != nil else { return }
            self.handler = nil
            handler.responseEnded(nil)
        }
        if isPaused { self.rest = rest } else { rest() }
    }

    func startTunnel(handler: any ResponseHandler, idleTimeout: Int64) {}
    func sendTunnel(_ bytes: UnsafeRawBufferPointer) {}
    func endTunnel() {}
    func pause() { isPaused = true }

    func resume() {
        isPaused = false
        guard let rest else { return }
        self.rest = nil
        loop.later(rest)
    }

    func cancel() {
        handler = nil
        rest = nil
        task?.cancel()
    }

    func discard() { cancel() }
}
