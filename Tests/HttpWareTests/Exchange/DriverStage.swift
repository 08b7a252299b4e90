import HttpWareTesting

@testable import HttpWare

/// One exchange after the other between a client and origin servers that the test plays itself, piece by piece.
///
/// Unchecked: everything but `loop` and `clock` is touched on the loop only, inside `step`.
final class DriverStage: @unchecked Sendable {
    let loop: EventLoop
    let clock = ManualClock()
    let server: LoopListener
    private let held: Held
    /// The driver of the current exchange.
    private(set) var driver: ExchangeDriver {
        get {
            guard let driver = held.driver else { preconditionFailure("the stage has ended") }
            return driver
        }
        set { held.driver = newValue }
    }
    /// The view of the present client.
    private(set) var client = ScriptedClient()
    /// Where the driver finds its streams.
    let origin = ScriptedConnector()

    init(
        _ chain: WareChain, endpoints: Int = 1, timeouts: UpstreamService.Timeouts = UpstreamService.Timeouts(),
        balancing: Balancing = Balancing(), isPassthrough: Bool = false, sticky: StickyEndpoints? = nil
    ) throws {
        loop = try EventLoop.start(name: "stage", clock: clock)
        let transport = LoopTransport(loop: loop, resolver: nil)
        let service = UpstreamService(
            name: "origin", endpoints: (0..<endpoints).map { Endpoint(host: "192.0.2.\($0 + 1)", port: 80) },
            isPassthrough: isPassthrough, timeouts: timeouts, balancing: balancing, sticky: sticky)
        server = LoopListener(
            name: "stage", transport: transport,
            router: SinglePlan(listenerPlan: ExchangePlan(chain: chain, service: service, route: "stage")))
        server.connector = origin
        held = Held(ExchangeDriver(server: server))
    }

    convenience init(_ middlewares: [any Ware], after postwares: [any Ware] = []) throws {
        try self.init(.of(middlewares, postwares))
    }

    deinit {
        // A server keeps drivers that hold it, until it closes.
        let ended = Ended(server: server, held: held)
        loop.execute {
            ended.held.driver?.clientLeft()
            // Streams of the test may hold the driver longer, on any thread.
            ended.held.driver?.pauseTimer?.cancel()
            ended.held.driver?.requestPauseTimer?.cancel()
            ended.held.driver?.hedgeTimer?.cancel()
            // A driver must be released on its loop, because of its timers.
            ended.held.driver = nil
            ended.server.closeAll()
        }
        loop.stop()
    }

    private final class Held {
        var driver: ExchangeDriver?

        init(_ driver: ExchangeDriver) { self.driver = driver }
    }

    private struct Ended: @unchecked Sendable {
        // Unchecked: carried to the loop, which alone touches them.
        let server: LoopListener
        let held: Held
    }

    /// Does something on the loop, and what it gives rise to.
    @discardableResult
    func step<Value: Sendable>(_ body: @escaping @Sendable (DriverStage) -> Value) async -> Value {
        let value = await loop.submit {
            var value: Value?
            self.server.transport.inEvent { value = body(self) }
            return value
        }
        for _ in 0..<4 { await loop.submit {} }
        guard let value else { preconditionFailure("the step did not run") }
        return value
    }

    /// Moves the clock, and does what is due then.
    func advance(by duration: Duration) async {
        clock.advance(by: duration)
        for _ in 0..<6 { await loop.submit {} }
    }

    /// A new client sends a head, and if `extent` is `.none`, with it all of its request.
    func begin(
        _ method: HttpMethod = .get, extent: HttpContent.Extent = .none, path: String = "/", expects: Bool = false,
        fields: HttpFields = [:], cookie: String? = nil
    )
        async
    {
        await step { stage in
            stage.client = ScriptedClient()
            stage.driver = stage.server.makeDriver(
                for: stage.client, ConnectionFacts(peer: SocketAddress("203.0.113.7:50000")))
            var request = HttpRequest.make(method, "http://example.test" + path)
            for (name, value) in fields { if let name = FieldName(name) { try? request.fields.append(name, value) } }
            if let cookie { try? request.fields.append(.cookie, cookie) }
            request.fields.receivedCount = request.fields.lines.count
            request.content = HttpContent(extent: extent)
            request.expectsContinue = expects
            stage.driver.exchange.heldRequest = request
            stage.driver.requestStarted()
            if extent == .none, stage.driver.phase != .ended { stage.driver.requestEnded(nil) }
        }
    }

    /// The client sends content.
    func upload(_ text: String, isLast: Bool = false) async {
        await step { stage in
            var text = text
            text.withUTF8 { stage.driver.requestContent(UnsafeRawBufferPointer($0)) }
            if isLast { stage.driver.requestEnded(nil) }
        }
    }

    /// The stream that was used last.
    var stream: ScriptedStream {
        guard let last = origin.streams.last else { preconditionFailure("nothing went upstream") }
        return last
    }
}

extension WareChain {
    /// A chain of wares that are labelled with their places: `0`, `1`, … and `after 0`, `after 1`, ….
    static func of(_ middlewares: [any Ware], _ postwares: [any Ware] = []) throws -> WareChain {
        try WareChain(
            middlewares: middlewares.enumerated().map { ChainEntry($1, label: "\($0)") },
            postwares: postwares.enumerated().map { ChainEntry($1, label: "after \($0)") })
    }
}

/// A client's end.
final class ScriptedClient: ResponseSink {
    var interim: [Int] = []
    var response: HttpResponse?
    var extent: HttpContent.Extent?
    var content: [UInt8] = []
    var ends = 0
    var cuts = 0
    var isPaused = false
    var isBlocked = false
    var tunnel: [UInt8]?
    /// Notified about each part of the response as it comes.
    var seen: (String) -> Void = { _ in }

    var status: Int? { response?.status.code }
    var text: String { String(decoding: content, as: UTF8.self) }

    func sendInterim(_ response: HttpResponse) {
        interim.append(response.status.code)
        seen("\(response.status.code)")
    }
    func send(responseOf exchange: Exchange, extent: HttpContent.Extent, via: Bool) {
        precondition(response == nil, "a second response")
        response = exchange.response
        self.extent = extent
        seen("head")
    }
    func sendContent(_ bytes: UnsafeRawBufferPointer) {
        content.append(contentsOf: bytes)
        seen(String(decoding: bytes, as: UTF8.self))
    }
    func sendEnd(_ trailers: HttpFields?) {
        ends += 1
        seen("end")
    }
    func cutOff() {
        cuts += 1
        seen("cut")
    }
    func startTunnel() { tunnel = [] }
    func setTunnelIdle(_ nanoseconds: Int64) {}
    func sendTunnel(_ bytes: UnsafeRawBufferPointer) { tunnel?.append(contentsOf: bytes) }
    func endTunnel() {}
    func pauseRequest() { isPaused = true }
    func resumeRequest() { isPaused = false }
}

/// An origin server's end: what it was sent, and what the test lets it answer. While it is paused, answers wait.
final class ScriptedStream: UpstreamStream {
    let endpoint: Endpoint
    var isReused = false
    var mayRefuseUnseen = false
    var isBlocked = false
    var request: HttpRequest?
    var framing: ContentFraming?
    var content: [UInt8] = []
    var ends = 0
    var isPaused = false
    var isCancelled = false
    var isDiscarded = false
    /// Called when the exchange cancels or discards the response.
    var whenGivenUp: () -> Void = {}
    private var receiver: (any ResponseReceiver)?
    private var waiting: [(ScriptedStream) -> Void] = []

    init(_ endpoint: Endpoint) { self.endpoint = endpoint }

    var text: String { String(decoding: content, as: UTF8.self) }

    func send(
        requestOf exchange: Exchange, _ options: HeadEncoder.RequestOptions, receiver: any ResponseReceiver,
        responseTimeout: Int64, idleTimeout: Int64
    ) {
        request = exchange.heldRequest
        framing = options.framing
        self.receiver = receiver
    }
    func sendContent(_ bytes: UnsafeRawBufferPointer) {
        precondition(ends == 0, "content behind the end of the request")
        content.append(contentsOf: bytes)
    }
    func sendEnd(_ trailers: HttpFields?) {
        precondition(ends == 0, "a second end of the request")
        ends += 1
    }
    func startTunnel(receiver: any ResponseReceiver, idleTimeout: Int64) { self.receiver = receiver }
    func setTunnelIdle(_ nanoseconds: Int64) {}
    func sendTunnel(_ bytes: UnsafeRawBufferPointer) { content.append(contentsOf: bytes) }
    func endTunnel() { ends += 1 }
    func pause() { isPaused = true }
    func resume() {
        isPaused = false
        while !isPaused, !waiting.isEmpty { waiting.removeFirst()(self) }
    }
    func cancel() {
        isCancelled = true
        receiver = nil
        whenGivenUp()
    }
    func discard() {
        isDiscarded = true
        receiver = nil
        whenGivenUp()
    }

    // The acts of the origin server.

    func interim(_ status: HttpStatus) {
        var response = HttpResponse(status)
        receiver?.responseInterim(&response)
    }

    func respond(_ status: HttpStatus = .ok, extent: HttpContent.Extent = .none) {
        var response = HttpResponse(status)
        response.content = HttpContent(extent: extent)
        receiver?.responseStarted(&response)
        if extent == .none { end() }
    }

    func respond(_ status: HttpStatus = .ok, text: String) {
        respond(status, extent: .length(text.utf8.count))
        send(text)
        end()
    }

    func send(_ text: String) { send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) {
        later { stream in bytes.withUnsafeBytes { stream.receiver?.responseContent($0) } }
    }

    func end(_ trailers: HttpFields? = nil) {
        later { stream in
            let receiver = stream.receiver
            stream.receiver = nil
            receiver?.responseEnded(trailers)
        }
    }

    /// Sends bytes in a tunnel.
    func tunnel(_ text: String) {
        later { stream in Array(text.utf8).withUnsafeBytes { stream.receiver?.tunnelReceived($0) } }
    }

    func fail(_ error: GatewayError = GatewayError(.upstream, .connectionTerminated, "closed", mayRetry: true)) {
        let receiver = self.receiver
        self.receiver = nil
        receiver?.upstreamFailed(error)
    }

    private func later(_ body: @escaping (ScriptedStream) -> Void) {
        if isPaused { waiting.append(body) } else { body(self) }
    }
}

/// Gives out streams, or not.
final class ScriptedConnector: UpstreamConnector {
    var streams: [ScriptedStream] = []
    /// The next connections fail with these, at once.
    var failures: [GatewayError] = []
    /// Connections come when `admit` is called.
    var isSlow = false
    /// The origin server may say that it did not process a request.
    var mayRefuseUnseen = false
    private var tickets: [(ConnectionTicket, Endpoint)] = []

    func connect(
        to endpoint: Endpoint, need: ConnectionNeed, timeout: Duration, waiter: any ConnectionWaiter
    ) -> ConnectionTicket? {
        if !failures.isEmpty {
            waiter.connectionFailed(failures.removeFirst())
            return nil
        }
        if isSlow {
            let ticket = ConnectionTicket(waiter)
            tickets.append((ticket, endpoint))
            return ticket
        }
        give(endpoint, to: waiter)
        return nil
    }

    /// Lets those connect that were not given up.
    func admit() {
        isSlow = false
        for (ticket, endpoint) in tickets {
            guard let waiter = ticket.waiter else { continue }
            ticket.waiter = nil
            give(endpoint, to: waiter)
        }
        tickets = []
    }

    /// Tells the waiting calls that there is no connection for them.
    func refuse(_ error: GatewayError) {
        let waiters = tickets.compactMap(\.0.waiter)
        tickets = []
        for waiter in waiters { waiter.connectionFailed(error) }
    }

    private func give(_ endpoint: Endpoint, to waiter: any ConnectionWaiter) {
        let stream = ScriptedStream(endpoint)
        stream.mayRefuseUnseen = mayRefuseUnseen
        streams.append(stream)
        waiter.connectionReady(stream, nil)
    }
}

/// The same plan for every request.
struct SinglePlan: ExchangeRouter {
    let listenerPlan: ExchangePlan

    func plan(for request: borrowing HttpRequest, captures: inout [(name: String, value: String)]) -> ExchangePlan {
        listenerPlan
    }
}
