/// A request as an origin server would receive it.
package struct SentRequest: Sendable {
    /// The service that it was sent to; `nil` if it has none.
    package var service: String?
    /// The endpoint, as `host:port`.
    package var endpoint: String
    /// The lines of the head, the request line first.
    package var lines: [String]
    package var content: [UInt8] = []
    /// The fields behind the content; `nil` without any.
    package var trailers: HttpFields?
}

/// The answer of a stand-in for an origin server.
package enum StandInAnswer: Sendable {
    /// A response with its content in memory.
    case response(HttpResponse, after: Duration)
    /// The connection fails before a response.
    case failure(GatewayError)
    /// There is no answer, so the time limit for responses decides.
    case never
}

/// Answers requests in place of origin servers. Used on its loop's thread.
package protocol StandInOrigin: AnyObject {
    /// Opens a stream to an endpoint: answers the one request on it. Throws if the connection cannot be made.
    func open(_ endpoint: Endpoint) throws(GatewayError) -> (SentRequest) -> StandInAnswer
    /// Whether the next connection to the endpoint would not be made.
    func refuses(_ endpoint: Endpoint) -> Bool
}

/// Opens streams to a stand-in, and no connection. Used on its loop's thread.
private final class StandInConnector: UpstreamConnector {
    private let origin: any StandInOrigin
    private let transport: LoopTransport

    init(_ origin: any StandInOrigin, _ transport: LoopTransport) {
        self.origin = origin
        self.transport = transport
    }

    func connect(
        to endpoint: Endpoint, need: ConnectionNeed, timeout: Duration, waiter: any ConnectionWaiter
    ) -> ConnectionTicket? {
        if let address = endpoint.addresses.first, endpoint.denies(address) {
            waiter.connectionFailed(Connector.denied(endpoint))
            return nil
        }
        do throws(GatewayError) {
            let answer = try origin.open(endpoint)
            waiter.connectionReady(StandInStream(endpoint, transport, answer), nil)
        } catch {
            waiter.connectionFailed(error)
        }
        return nil
    }
}

extension LoopListener {
    /// Lets this stand-in answer all requests that go upstream, in place of origin servers. Call this before the first request.
    package func call(_ origin: any StandInOrigin) {
        connector = StandInConnector(origin, transport)
        transport.standInRefuses = { [weak origin] in origin?.refuses($0) ?? false }
    }
}

/// One request to a stand-in, and its response.
private final class StandInStream: UpstreamStream {
    private let endpoint: Endpoint
    private let transport: LoopTransport
    private let answer: (SentRequest) -> StandInAnswer
    private var receiver: (any ResponseReceiver)?
    private var sent: SentRequest
    private var hasContentLeft = true
    private var isAnswered = false
    private var isHead = false
    private var responseTimeout: Int64 = 0
    private var timer: LoopTimer?
    private var isPaused = false
    /// The response's content, while the receiver is paused.
    private var waiting: [UInt8]?
    private var trailers: HttpFields?
    /// The maximum request content that is collected.
    private static let mostContent = 64 << 20

    let isReused = false
    let isBlocked = false

    init(_ endpoint: Endpoint, _ transport: LoopTransport, _ answer: @escaping (SentRequest) -> StandInAnswer) {
        self.endpoint = endpoint
        self.transport = transport
        self.answer = answer
        sent = SentRequest(endpoint: endpoint.name, lines: [])
    }

    // MARK: The request

    func send(
        requestOf exchange: Exchange, _ options: HeadEncoder.RequestOptions, receiver: any ResponseReceiver,
        responseTimeout: Int64, idleTimeout: Int64
    ) {
        self.receiver = receiver
        self.responseTimeout = responseTimeout
        sent.service = exchange.service
        var request = options.outgoing?.request ?? exchange.heldRequest
        isHead = request.method == .head
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: request.encodedBound + options.encodedBound, alignment: 16)
        defer { buffer.deallocate() }
        var encoder = HeadEncoder(buffer)
        encoder.write(&request, options)
        if !encoder.isOverflown {
            sent.lines = String(decoding: buffer[..<encoder.count], as: UTF8.self).split(whereSeparator: \.isNewline)
                .map(String.init)
        }
        switch options.framing {
        case .none, .length(0): complete()
        default: break
        }
    }

    func sendContent(_ bytes: UnsafeRawBufferPointer) {
        guard sent.content.count + bytes.count <= StandInStream.mostContent else {
            return fail(GatewayError(.gateway, .contentTooLarge, "the content is more than a test run takes"))
        }
        sent.content.append(contentsOf: bytes)
    }

    func sendEnd(_ trailers: HttpFields?) {
        sent.trailers = trailers
        complete()
    }

    /// The request is complete: asks for the answer, in a later step as from a connection.
    private func complete() {
        guard hasContentLeft else { return }
        hasContentLeft = false
        transport.loop.later { self.ask() }
    }

    // MARK: The response

    private func ask() {
        guard receiver != nil else { return }
        limitTime()
        switch answer(sent) {
        case .never: break
        case .failure(let error): transport.inEvent { fail(error) }
        case .response(let response, let delay) where delay > .zero:
            transport.loop.schedule(after: delay) { self.transport.inEvent { self.take(response) } }
        case .response(let response, _): transport.inEvent { take(response) }
        }
    }

    private func limitTime() {
        guard responseTimeout > 0 else { return }
        timer = transport.loop.schedule(after: .nanoseconds(responseTimeout)) { [weak self] in
            guard let self, !self.isAnswered else { return }
            transport.inEvent {
                self.fail(
                    GatewayError(.upstream, .responseTimeout, "\(self.endpoint.name) did not respond in time"))
            }
        }
    }

    private func take(_ answer: HttpResponse) {
        guard let receiver else { return }
        isAnswered = true
        stopTimer()
        var response = answer
        trailers = response.trailers
        response.trailers = nil
        let mayHaveContent = !isHead && response.status.code != 204 && response.status.code != 304
        waiting = mayHaveContent ? response.content.bytes ?? [] : []
        let count = mayHaveContent ? response.content.length ?? 0 : 0
        response.content = HttpContent(extent: count > 0 ? .length(count) : .none)
        receiver.responseStarted(&response)
        deliver()
    }

    private func deliver() {
        guard !isPaused, let receiver, let bytes = waiting.take() else { return }
        if !bytes.isEmpty { bytes.withUnsafeBytes { receiver.responseContent($0) } }
        guard self.receiver != nil else { return }
        self.receiver = nil
        receiver.responseEnded(trailers)
    }

    private func stopTimer() {
        timer?.cancel()
        timer = nil
    }

    private func fail(_ error: GatewayError) {
        let receiver = self.receiver
        cancel()
        receiver?.upstreamFailed(error)
    }

    func pause() { isPaused = true }

    func resume() {
        guard isPaused else { return }
        isPaused = false
        deliver()
    }

    func cancel() {
        receiver = nil
        waiting = nil
        hasContentLeft = false
        stopTimer()
    }

    func discard() { cancel() }

    // A stand-in has no tunnels.
    func startTunnel(receiver: any ResponseReceiver, idleTimeout: Int64) {
        receiver.upstreamFailed(.upgradeFailed("a test run has no tunnels"))
    }
    func setTunnelIdle(_ nanoseconds: Int64) {}
    func sendTunnel(_ bytes: UnsafeRawBufferPointer) {}
    func endTunnel() {}
}
