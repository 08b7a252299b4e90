/// What becomes of a `LocalExchange`: told on its loop.
public protocol LocalExchangeReceiver: AnyObject {
    /// The final response's head is here, after the last postware; content follows, unless there is none.
    func responseStarted(_ exchange: Exchange, _ response: HttpResponse)
    /// A piece of the response's content, valid during the call.
    func responseContent(_ bytes: UnsafeRawBufferPointer)
    /// The response is whole, and the exchange over.
    func responseEnded(_ exchange: Exchange, _ trailers: HttpFields?)
    /// The response was cut off: what there is of it is not the whole. The exchange is over.
    func responseFailed(_ exchange: Exchange, _ error: GatewayError)
    /// More of the request's content may be supplied, after a piece that did not fit.
    func contentWanted()
}

/// A client in the same process: one exchange through a server's chain, without a connection downstream, its content streamed
/// both ways with backpressure. Used on the server's loop only.
public final class LocalExchange {
    private let server: LoopListener
    private var receiver: (any LocalExchangeReceiver)?
    private var driver: ExchangeDriver?
    private var isRequestPaused = false
    private var isResponsePaused = false
    /// The content that the last call brought is behind its end.
    private var hasEndedRequest = false

    /// An exchange of a client at this address, with this certificate. The receiver is held until the end is told.
    public init(
        _ server: LoopListener, peer: SocketAddress? = nil, certificate: TlsClientIdentity? = nil,
        receiver: any LocalExchangeReceiver
    ) {
        self.server = server
        self.receiver = receiver
        let facts =
            peer == nil && server.bindAddress == nil && certificate == nil
            ? ConnectionFacts.none
            : ConnectionFacts(peer: peer, local: server.bindAddress, clientIdentity: certificate)
        driver = server.makeDriver(for: self, facts)
    }

    /// An exchange of a client by a connection of which that is known.
    init(_ server: LoopListener, facts: ConnectionFacts, receiver: any LocalExchangeReceiver) {
        self.server = server
        self.receiver = receiver
        driver = server.makeDriver(for: self, facts)
    }

    /// The exchange, until its end: what wares are to know of it is put there before it starts.
    public var exchange: Exchange? { driver?.exchange }

    /// Sends the request. Content that it holds goes with it; where it says that content is streamed, that is supplied
    /// afterwards, up to `finish`.
    ///
    /// Throws when the request's `Host` is no host (RFC 9110 §7.2): nothing is sent then, and the receiver is told nothing.
    public func start(_ request: HttpRequest) throws(GatewayError) {
        guard let driver else { return }
        do throws(GatewayError) {
            driver.exchange.heldRequest = try LocalExchange.received(request)
        } catch {
            // It has not begun: there is nothing to end.
            receiver = nil
            self.driver = nil
            throw error
        }
        let bytes = request.content.bytes
        let isStreamed = bytes == nil && !request.content.isEmpty
        if bytes != nil { driver.exchange.heldRequest.content = HttpContent(extent: request.content.extent) }
        server.transport.inEvent {
            driver.requestStarted()
            if let bytes, self.driver != nil { bytes.withUnsafeBytes { driver.requestContent($0) } }
            if !isStreamed, self.driver != nil { end(driver) }
        }
    }

    /// Supplies a piece of the request's content, and answers whether more may follow at once; else `contentWanted` tells when.
    @discardableResult
    public func supply(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let driver, !hasEndedRequest else { return true }
        server.transport.inEvent { driver.requestContent(bytes) }
        return self.driver == nil || !isRequestPaused
    }

    /// The request's content is whole.
    public func finish() {
        guard let driver, !hasEndedRequest else { return }
        server.transport.inEvent { end(driver) }
    }

    private func end(_ driver: ExchangeDriver) {
        hasEndedRequest = true
        driver.requestEnded(nil)
    }

    /// Takes no more content for now; a few pieces may still come.
    public func pause() { isResponsePaused = true }

    /// Takes content again.
    public func resume() {
        guard isResponsePaused else { return }
        isResponsePaused = false
        guard let driver else { return }
        server.transport.inEvent { driver.downstreamDrained() }
    }

    /// Goes away, as a client that closes its connection does; the receiver is told nothing more.
    public func leave() {
        receiver = nil
        guard let driver = driver.take() else { return }
        server.transport.inEvent { driver.clientLeft() }
    }

    /// The request as if it had been decoded: all its fields came from the peer, and `Host` is its authority.
    private static func received(_ request: HttpRequest) throws(GatewayError) -> HttpRequest {
        var request = request
        request.fields.receivedCount = request.fields.lines.count
        request.fields.noteUnderscores()
        if request.target.host.count == 0, let index = request.fields.firstIndex(of: KnownField.host) {
            let value = request.fields.lines[index].value
            let isHost = request.fields.bytes.withUnsafeBufferPointer {
                request.target.setAuthority(UnsafeBufferPointer(rebasing: $0[value]))
            }
            guard isHost else {
                throw GatewayError(
                    .downstream, .requestMalformed,
                    "\((request.fields[.host] ?? "").debugDescription) is no host")
            }
        }
        return request
    }
}

extension LocalExchange: ResponseSink {
    func sendInterim(_ response: HttpResponse) {}

    func send(responseOf exchange: Exchange, extent: HttpContent.Extent, via: Bool) {
        var response = exchange.response
        // The content follows, however it came here.
        response.content = HttpContent(extent: extent)
        receiver?.responseStarted(exchange, response)
    }

    func sendContent(_ bytes: UnsafeRawBufferPointer) { receiver?.responseContent(bytes) }

    func sendEnd(_ trailers: HttpFields?) {
        guard let exchange = driver.take()?.exchange else { return }
        receiver.take()?.responseEnded(exchange, trailers)
    }

    func cutOff() {
        guard let exchange = driver.take()?.exchange else { return }
        receiver.take()?.responseFailed(
            exchange,
            exchange.failure ?? GatewayError(.upstream, .responseIncomplete, "the response was cut off"))
    }

    // What follows a switch of protocols is content to a client in process.
    func startTunnel() {}
    func setTunnelIdle(_ nanoseconds: Int64) {}
    func sendTunnel(_ bytes: UnsafeRawBufferPointer) { receiver?.responseContent(bytes) }
    func endTunnel() { leave() }

    func pauseRequest() { isRequestPaused = true }

    func resumeRequest() {
        guard isRequestPaused else { return }
        isRequestPaused = false
        receiver?.contentWanted()
    }

    var isBlocked: Bool { isResponsePaused }
}
