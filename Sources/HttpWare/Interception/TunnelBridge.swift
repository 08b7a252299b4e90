/// Moves the bytes of a tunnel between a sink – a stream of HTTP/2, or a connection with TLS – and a socket. At the other end of the
/// socket, the gateway handles the tunnel like any other. Used on its loop's thread only.
final class TunnelBridge: SocketConnection, RequestReceiver {
    /// A placeholder: the exchange of the CONNECT has ended.
    let exchange: Exchange
    private var sink: (any ResponseSink)?
    private var hasClientEnded = false
    private var hasServerEnded = false

    /// Starts the bridge. Without a socket, the tunnel ends at once.
    init(_ transport: LoopTransport, _ sink: any ResponseSink, socket: SocketEvents?) {
        self.sink = sink
        exchange = Exchange(loop: transport.loop)
        exchange.heldRequest.method = .connect
        super.init(
            transport: transport, socket: socket ?? SocketEvents(loop: transport.loop, descriptor: -1), tls: nil)
        if socket == nil || !self.socket.enableReading() { loop.later { self.cutOff() } }
    }

    // MARK: From the client

    var requestRelay: SocketConnection? { nil }

    func tunnelReceivedFromClient(_ bytes: UnsafeRawBufferPointer) {
        send(bytes)
        transport.output.flush()
        if isBlocked { sink?.pauseRequest() }
    }

    func tunnelEndedByClient() {
        hasClientEnded = true
        endSending()
        endIfDone()
    }

    func clientLeft() {
        sink = nil
        close()
    }

    func downstreamDrained() { startReading() }

    func requestStarted() {}
    func requestRelayed(_ count: Int) {}
    func requestContent(_ bytes: UnsafeRawBufferPointer) {}
    func requestEnded(_ trailers: HttpFields?) {}
    func requestFailed(_ error: GatewayError, isAnswered: Bool) { cutOff() }

    // MARK: From the gateway

    override func received(_ bytes: UnsafeRawBufferPointer) {
        guard let sink else { return }
        sink.sendTunnel(bytes)
        transport.output.flush()
        if sink.isBlocked { socket.disableReading() }
    }

    override func receivedEnd() {
        socket.disableReading()
        hasServerEnded = true
        sink?.endTunnel()
        endIfDone()
    }

    override func outputDrained() { sink?.resumeRequest() }

    override func failed(_ error: Int32) { cutOff() }

    private func endIfDone() {
        guard hasClientEnded, hasServerEnded else { return }
        let sink = self.sink
        self.sink = nil
        sink?.sendEnd(nil)
        closeWhenSent()
    }

    private func cutOff() {
        let sink = self.sink
        self.sink = nil
        sink?.cutOff()
        close()
    }
}
