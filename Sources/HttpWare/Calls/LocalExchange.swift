/// Receives the events of a `LocalExchange`, on its loop.
public protocol LocalExchangeReceiver: AnyObject {
    /// The final response's head has arrived, after the last postware; content follows, unless there is none.
    func responseStarted(_ exchange: Exchange, _ response: HttpResponse)
    /// A piece of the response's content, valid during the call.
    func responseContent(_ bytes: UnsafeRawBufferPointer)
    /// The response is complete, and the exchange has ended.
    func responseEnded(_ exchange: Exchange, _ trailers: HttpFields?)
    /// The response was cut off: it is incomplete. The exchange has ended.
    func responseFailed(_ exchange: Exchange, _ error: GatewayError)
    /// More of the request's content may be supplied, after `supply` had returned false.
    func contentWanted()
    /// The request is sent again: all of its content has to be supplied again, from its beginning. Called only if `start` was told
    /// that this is possible.
    func contentStartsOver()
}

extension LocalExchangeReceiver {
    public func contentStartsOver() {}
}

/// A client in the same process: one exchange through a server's chain, without a connection downstream, its content streamed
/// both ways with backpressure. Used on the server's loop only.
public final class LocalExchange {
    private let server: LoopListener
    private var receiver: (any LocalExchangeReceiver)?
    private var driver: ExchangeDriver?
    private var isRequestPaused = false
    private var isResponsePaused = false
    /// Whether the request's content has ended.
    private var hasEndedRequest = false

    /// Makes an exchange for a client at this address, with this certificate. The receiver is retained until the end.
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

    /// Makes an exchange for a client on a connection with these facts.
    init(_ server: LoopListener, facts: ConnectionFacts, receiver: any LocalExchangeReceiver) {
        self.server = server
        self.receiver = receiver
        driver = server.makeDriver(for: self, facts)
    }

    /// The exchange, until its end. Set values for wares before it starts.
    public var exchange: Exchange? { driver?.exchange }

    /// Sends the request, with the content that it holds. If the content is streamed, supply it
    /// afterwards, up to `finish`. If it `mayStartOver`, the receiver may be asked to supply it again from its beginning, and content at
    /// hand is used again; then wares can have the request sent again with content of any size.
    ///
    /// Throws if the request's `Host` is invalid (RFC 9110 §7.2): then nothing is sent, and the receiver is not called.
    /// `trailers` follow content that is at hand.
    public func start(
        _ request: HttpRequest, trailers: HttpFields? = nil, mayStartOver: Bool = false
    ) throws(GatewayError) {
        guard let driver else { return }
        do throws(GatewayError) {
            driver.exchange.heldRequest = try LocalExchange.received(request)
        } catch {
            // The exchange has not begun, so it need not be ended.
            receiver = nil
            self.driver = nil
            throw error
        }
        let bytes = request.content.bytes
        let isStreamed = bytes == nil && !request.content.isEmpty
        if let bytes {
            // A length leaves no place for trailers. RFC 9112 §7.1.2.
            driver.exchange.heldRequest.content = HttpContent(
                extent: trailers == nil ? request.content.extent : .unknown)
            driver.inward.given = bytes
        }
        if mayStartOver { driver.inward.mayStartOver = true }
        server.transport.inEvent {
            driver.requestStarted()
            if let bytes, self.driver != nil { bytes.withUnsafeBytes { driver.requestContent($0) } }
            if !isStreamed, self.driver != nil { end(driver, trailers) }
        }
    }

    /// Sends a request that is read from its lines, with its content. If it cannot be read, the receiver gets the refusal, as any
    /// client does.
    func start(_ written: WrittenRequest) {
        guard let driver else { return }
        do throws(GatewayError) {
            try RequestHeadDecoder.decode(
                lines: written.lines, into: &driver.exchange.heldRequest, limits: server.limits,
                isReverse: !server.isForward || written.tunnel != nil)
        } catch {
            return server.transport.inEvent { driver.requestFailed(error) }
        }
        server.transport.inEvent {
            driver.requestStarted()
            if !written.content.isEmpty, self.driver != nil {
                written.content.withUnsafeBytes { driver.requestContent($0) }
            }
            if self.driver != nil { end(driver, written.trailers) }
        }
    }

    /// Supplies a piece of the request's content. Returns whether more may follow at once; otherwise `contentWanted` follows later.
    @discardableResult
    public func supply(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let driver, !hasEndedRequest else { return true }
        server.transport.inEvent { driver.requestContent(bytes) }
        return self.driver == nil || !isRequestPaused
    }

    /// Ends the request's content.
    public func finish() {
        guard let driver, !hasEndedRequest else { return }
        server.transport.inEvent { end(driver) }
    }

    private func end(_ driver: ExchangeDriver, _ trailers: HttpFields? = nil) {
        hasEndedRequest = true
        driver.requestEnded(trailers)
    }

    /// Pauses the response's content; a few pieces may still come.
    public func pause() { isResponsePaused = true }

    /// Continues the response's content.
    public func resume() {
        guard isResponsePaused else { return }
        isResponsePaused = false
        guard let driver else { return }
        server.transport.inEvent { driver.downstreamDrained() }
    }

    /// Leaves like a client that closes its connection; the receiver is not called any more.
    public func leave() {
        receiver = nil
        guard let driver = driver.take() else { return }
        server.transport.inEvent { driver.clientLeft() }
    }

    /// The request in the state after decoding: all its fields come from the peer, and `Host` is its authority.
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
                    "\((request.fields[.host] ?? "").debugDescription) is not a host")
            }
        }
        return request
    }
}

extension LocalExchange: ResponseSink {
    func sendInterim(_ response: HttpResponse) {}

    func send(responseOf exchange: Exchange, extent: HttpContent.Extent, via: Bool) {
        var response = exchange.response
        // The content follows separately, even if it is in memory.
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

    // After a switch of protocols, a client in process receives the bytes as content.
    func startTunnel() {}
    func setTunnelIdle(_ nanoseconds: Int64) {}
    func sendTunnel(_ bytes: UnsafeRawBufferPointer) { receiver?.responseContent(bytes) }
    func endTunnel() { leave() }

    func startRequestOver() {
        hasEndedRequest = false
        isRequestPaused = false
        receiver?.contentStartsOver()
    }

    func pauseRequest() { isRequestPaused = true }

    func resumeRequest() {
        guard isRequestPaused else { return }
        isRequestPaused = false
        receiver?.contentWanted()
    }

    var isBlocked: Bool { isResponsePaused }
}
