/// A call of a client that sends and receives content in pieces.
final class PiecewiseStream: UpstreamStream, PiecewiseReceiver, LoopTimerHandler {
    private let client: any PiecewiseClient
    private let transport: LoopTransport
    private let timer: LoopTimer
    private var receiver: (any ResponseReceiver)?
    private var call: (any PiecewiseCall)?
    private var responseTimeout: Int64 = 0
    private var idleTimeout: Int64 = 0
    private var isRequestSent = false
    private var isPaused = false
    /// Set when the response's head has arrived; `length` is `nil` if it is unknown.
    private var expected: (length: Int?, received: Int)?

    let isReused = false
    let isFinal = true
    private(set) var isBlocked = false

    init(_ client: any PiecewiseClient, _ transport: LoopTransport) {
        self.client = client
        self.transport = transport
        timer = LoopTimer(loop: transport.loop)
        timer.handler = self
    }

    // MARK: The request

    func send(
        requestOf exchange: Exchange, _ options: HeadEncoder.RequestOptions, receiver: any ResponseReceiver,
        responseTimeout: Int64, idleTimeout: Int64
    ) {
        self.receiver = receiver
        self.responseTimeout = responseTimeout
        self.idleTimeout = idleTimeout
        var request = options.outgoing?.request ?? exchange.heldRequest
        for line in options.defaults where !request.fields.contains(line.name) { request.fields.append(line) }
        switch options.framing {
        case .none, .length(0): request.content = .none
        case .length(let length): request.content = .streamed(length: Int(length))
        default: request.content = .streamed()
        }
        call = client.open(request, receiver: self)
        timer.set(after: .nanoseconds(idleTimeout))
        if request.content.isEmpty { sendEnd(nil) }
    }

    func sendContent(_ bytes: UnsafeRawBufferPointer) {
        guard let call else { return }
        isBlocked = !call.supply(bytes)
        timer.set(after: .nanoseconds(idleTimeout))
    }

    func sendEnd(_ trailers: HttpFields?) {
        guard !isRequestSent else { return }
        isRequestSent = true
        call?.finish()
        if expected == nil { timer.set(after: .nanoseconds(responseTimeout)) }
    }

    func contentWanted() {
        guard isBlocked, let receiver else { return }
        isBlocked = false
        timer.set(after: .nanoseconds(idleTimeout))
        transport.inEvent { receiver.upstreamDrained() }
    }

    // MARK: The response

    func started(_ response: HttpResponse) {
        guard let receiver, expected == nil else { return }
        var response = response
        expected = (response.content.length, 0)
        timer.set(after: .nanoseconds(idleTimeout))
        transport.inEvent { receiver.responseStarted(&response) }
    }

    func received(_ bytes: [UInt8]) {
        guard let receiver, let (length, before) = expected, !bytes.isEmpty else { return }
        let count = before + bytes.count
        expected = (length, count)
        if let length, count > length {
            return failed(GatewayError(.upstream, .responseMalformed, "the client brings more than \(length) bytes"))
        }
        if !isPaused { timer.set(after: .nanoseconds(idleTimeout)) }
        transport.inEvent { bytes.withUnsafeBytes { receiver.responseContent($0) } }
    }

    func ended() {
        guard let receiver, let (length, count) = expected else { return }
        if let length, count < length {
            return failed(
                GatewayError(.upstream, .connectionTerminated, "the client brought \(count) of \(length) bytes"))
        }
        over()
        transport.inEvent { receiver.responseEnded(nil) }
    }

    func failed(_ error: GatewayError) {
        guard let receiver else { return }
        cancel()
        transport.inEvent { receiver.upstreamFailed(error) }
    }

    func pause() {
        isPaused = true
        timer.cancel()
        call?.pause()
    }

    func resume() {
        guard isPaused else { return }
        isPaused = false
        timer.set(after: .nanoseconds(idleTimeout))
        call?.resume()
    }

    func timerFired(_ timer: LoopTimer) {
        if !isRequestSent, expected == nil {
            return failed(GatewayError(.upstream, .responseTimeout, "the client takes no more of the content"))
        }
        failed(
            expected == nil
                ? GatewayError(.upstream, .responseTimeout, "the client did not answer in time")
                : GatewayError(.upstream, .responseTimeout, "the client brings no more of the response"))
    }

    func cancel() {
        call?.cancel()
        over()
    }

    func discard() { cancel() }

    private func over() {
        timer.cancel()
        receiver = nil
        call = nil
    }

    // A client cannot open tunnels.
    func startTunnel(receiver: any ResponseReceiver, idleTimeout: Int64) {
        receiver.upstreamFailed(.upgradeFailed("the client opens no tunnels"))
    }
    func setTunnelIdle(_ nanoseconds: Int64) {}
    func sendTunnel(_ bytes: UnsafeRawBufferPointer) {}
    func endTunnel() {}
}
