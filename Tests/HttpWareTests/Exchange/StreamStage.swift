import HttpWareTesting

@testable import HttpWare

/// The upstream streams of a loop that turns by hand. Their receiver is a recorder in place of a driver.
final class StreamStage {
    let hand: HandTurnedLoop
    let recorder = StreamRecorder()
    private let server: LoopListener
    private let driver: ExchangeDriver

    init() throws {
        hand = try HandTurnedLoop()
        server = LoopListener(
            name: "stage", transport: hand.transport,
            router: SinglePlan(listenerPlan: ExchangePlan(chain: .empty, service: nil, route: nil)))
        driver = server.makeDriver(for: ScriptedClient(), ConnectionFacts(peer: nil))
    }

    deinit {
        server.closeAll()
        hand.turn()
    }

    var transport: LoopTransport { hand.transport }

    /// Sends the head of a request over the stream, which answers to the recorder. The timeouts are 30 s for the head of a response,
    /// and 10 s between pieces.
    func send(
        _ request: HttpRequest, over stream: any UpstreamStream, framing: ContentFraming = .none,
        defaults: [FieldLine] = []
    ) {
        driver.exchange.heldRequest = request
        var options = HeadEncoder.RequestOptions()
        options.framing = framing
        options.defaults = defaults
        stream.send(
            requestOf: driver.exchange, options, receiver: recorder, responseTimeout: 30_000_000_000,
            idleTimeout: 10_000_000_000)
    }

    func sendContent(_ text: String, over stream: any UpstreamStream) {
        Array(text.utf8).withUnsafeBytes { stream.sendContent($0) }
    }
}

/// Records the events of a stream, in order.
final class StreamRecorder: ResponseReceiver, ConnectionWaiter {
    private(set) var stream: (any UpstreamStream)?
    private(set) var events: [String] = []
    private(set) var failure: GatewayError?
    private(set) var contentCount = 0
    /// Called with each piece of content.
    var whenContent: () -> Void = {}

    func connectionReady(_ stream: any UpstreamStream, _ times: Connector.Times?) { self.stream = stream }
    func connectionFailed(_ error: GatewayError) { upstreamFailed(error) }

    func responseInterim(_ response: inout HttpResponse) { events.append("\(response.status.code)") }
    func responseStarted(_ response: inout HttpResponse) {
        events.append("\(response.status.code), \(response.content.extent)")
    }
    var responseRelay: SocketConnection? { nil }
    func responseRelayed(_ count: Int) { events.append("relayed \(count)") }
    func responseContent(_ bytes: UnsafeRawBufferPointer) {
        contentCount += bytes.count
        if bytes.count <= 64 { events.append(String(decoding: bytes, as: UTF8.self)) }
        whenContent()
    }
    func responseEnded(_ trailers: HttpFields?) { events.append("end") }
    func upstreamFailed(_ error: GatewayError) {
        failure = error
        events.append("failed")
    }
    func upstreamDrained() { events.append("drained") }
    func tunnelReceived(_ bytes: UnsafeRawBufferPointer) { events.append("tunnel") }
    func tunnelReceivedEnd() { events.append("end of the tunnel") }
}
