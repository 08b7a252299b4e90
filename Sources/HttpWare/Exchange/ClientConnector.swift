/// Calls upstream through a client instead of connections: a script in tests, or any other object that can send requests.
///
/// The client gets whole requests for absolute URIs, and returns whole responses, unless it is a `PiecewiseClient`. Used on its
/// loop's thread.
final class ClientConnector: UpstreamConnector {
    private let client: any HttpClient
    private let transport: LoopTransport

    init(_ client: any HttpClient, transport: LoopTransport) {
        self.client = client
        self.transport = transport
    }

    func connect(
        to endpoint: Endpoint, need: ConnectionNeed, timeout: Duration, waiter: any ConnectionWaiter
    ) -> ConnectionTicket? {
        if let client = client as? any PiecewiseClient {
            waiter.connectionReady(PiecewiseStream(client, transport), nil)
        } else {
            waiter.connectionReady(ClientStream(client, transport), nil)
        }
        return nil
    }
}

/// One call of a client.
private final class ClientStream: UpstreamStream {
    private let client: any HttpClient
    private let transport: LoopTransport
    private var receiver: (any ResponseReceiver)?
    private var request = HttpRequest()
    private var timeout = Duration.zero
    private var content: [UInt8] = []
    private var call: (any HttpCall)?
    private var isPaused = false
    /// The response's content, while the receiver is paused.
    private var waiting: [UInt8]?
    /// The maximum request content that is collected for the client.
    private static let mostContent = 64 << 20

    let isReused = false
    let isFinal = true
    let isBlocked = false

    init(_ client: any HttpClient, _ transport: LoopTransport) {
        self.client = client
        self.transport = transport
    }

    func send(
        requestOf exchange: Exchange, _ options: HeadEncoder.RequestOptions, receiver: any ResponseReceiver,
        responseTimeout: Int64, idleTimeout: Int64
    ) {
        self.receiver = receiver
        request = options.outgoing?.request ?? exchange.heldRequest
        for line in options.defaults where !request.fields.contains(line.name) { request.fields.append(line) }
        timeout = .nanoseconds(responseTimeout)
        if case .none = options.framing { start() }
        if case .length(0) = options.framing { start() }
    }

    func sendContent(_ bytes: UnsafeRawBufferPointer) {
        guard content.count + bytes.count <= ClientStream.mostContent else {
            return fail(GatewayError(.gateway, .contentTooLarge, "the content is more than the client takes whole"))
        }
        content.append(contentsOf: bytes)
    }

    func sendEnd(_ trailers: HttpFields?) { if call == nil { start() } }

    private func start() {
        request.content = .bytes(content)
        content = []
        var limits = CallLimits(timeout: timeout, content: .mebibytes(64))
        limits.redirects = 0
        // The client may answer before this returns; the call has then already ended.
        let call = client.start(request, limits: limits) { self.answered($0) }
        if receiver != nil { self.call = call }
    }

    private func answered(_ result: Result<HttpResponse, GatewayError>) {
        transport.loop.later { self.transport.inEvent { self.takeResult(result) } }
    }

    private func takeResult(_ result: Result<HttpResponse, GatewayError>) {
        guard let receiver else { return }
        call = nil
        switch result {
        case .failure(let error): fail(error)
        case .success(var response):
            let bytes = response.content.bytes
            response.content = HttpContent(extent: bytes.map { .length($0.count) } ?? .none)
            waiting = bytes ?? []
            receiver.responseStarted(&response)
            deliver()
        }
    }

    private func deliver() {
        guard !isPaused, let receiver, let bytes = waiting.take() else { return }
        if !bytes.isEmpty { bytes.withUnsafeBytes { receiver.responseContent($0) } }
        guard self.receiver != nil else { return }
        self.receiver = nil
        receiver.responseEnded(nil)
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
        call.take()?.cancel()
    }

    func discard() { cancel() }

    // A client cannot open tunnels.
    func startTunnel(receiver: any ResponseReceiver, idleTimeout: Int64) {
        receiver.upstreamFailed(.upgradeFailed("the client opens no tunnels"))
    }
    func setTunnelIdle(_ nanoseconds: Int64) {}
    func sendTunnel(_ bytes: UnsafeRawBufferPointer) {}
    func endTunnel() {}
}
