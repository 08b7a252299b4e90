/// A client in the same process that receives the whole response: for tests, and for calls that need no socket. Used on the
/// server's loop only.
public final class LocalCaller {
    private let server: LoopListener
    private let peer: SocketAddress?
    private let certificate: TlsClientIdentity?
    private var completion: ((Result<HttpResponse, GatewayError>) -> Void)?
    private var receive: ((HttpResponse, UnsafeRawBufferPointer) -> Void)?
    private var local: LocalExchange?
    private var response = HttpResponse(.ok)
    private var content: [UInt8] = []
    /// The maximum content of a response that is stored.
    private let limit: Int

    /// Makes a caller at this address, for one request. A `certificate` counts as verified in a handshake.
    public init(
        _ server: LoopListener, peer: SocketAddress?, certificate: TlsClientIdentity? = nil,
        limit: ByteCount = .mebibytes(64)
    ) {
        self.certificate = certificate
        self.server = server
        self.peer = peer
        self.limit = limit.bytes
    }

    /// Sends the request, with its content in memory, and calls `completion` once: with the response and its whole content, or
    /// with an error if the response was cut off, or the request's `Host` is invalid. A response that the gateway makes for a
    /// fault counts as a response.
    ///
    /// `receive` gets each piece of content as it arrives, with the response's head; the completion is then without content.
    /// `observe` is called when the exchange has ended.
    public func send(
        _ request: HttpRequest, receive: ((HttpResponse, UnsafeRawBufferPointer) -> Void)? = nil,
        observe: ((Exchange) -> Void)? = nil,
        completion: @escaping (Result<HttpResponse, GatewayError>) -> Void
    ) {
        precondition(local == nil, "a caller sends one request")
        self.completion = completion
        self.receive = receive
        let local = LocalExchange(server, peer: peer, certificate: certificate, receiver: self)
        self.local = local
        if let observe { local.exchange?.onEnd(observe) }
        do throws(GatewayError) {
            try local.start(request)
        } catch {
            finish(.failure(error))
        }
    }

    /// Sends a request as a client would write it: the listener reads its lines. Otherwise like `send(_:observe:completion:)`; the
    /// peer and the certificate are those of the request.
    package func send(
        _ written: WrittenRequest, observe: ((Exchange) -> Void)? = nil,
        completion: @escaping (Result<HttpResponse, GatewayError>) -> Void
    ) {
        precondition(local == nil, "a caller sends one request")
        self.completion = completion
        let local = LocalExchange(server, facts: written.facts(on: server), receiver: self)
        self.local = local
        if let observe { local.exchange?.onEnd(observe) }
        local.start(written)
    }

    /// Leaves like a client that closes its connection; the completion is not called.
    public func leave() {
        completion = nil
        local.take()?.leave()
    }

    private func finish(_ result: Result<HttpResponse, GatewayError>) {
        local = nil
        completion.take()?(result)
    }
}

extension LocalCaller: LocalExchangeReceiver {
    public func responseStarted(_ exchange: Exchange, _ response: HttpResponse) {
        self.response = response
        if let length = response.content.length { content.reserveCapacity(min(length, limit)) }
    }

    public func responseContent(_ bytes: UnsafeRawBufferPointer) {
        if let receive { return receive(response, bytes) }
        if content.count + bytes.count <= limit { return content.append(contentsOf: bytes) }
        let local = self.local
        finish(.failure(GatewayError(.gateway, .responseContentTooLarge, "the response is larger than \(limit) bytes")))
        local?.leave()
    }

    public func responseEnded(_ exchange: Exchange, _ trailers: HttpFields?) {
        response.content = .bytes(content)
        if let trailers { response.trailers = trailers }
        finish(.success(response))
    }

    public func responseFailed(_ exchange: Exchange, _ error: GatewayError) {
        finish(.failure(GatewayError(.gateway, .responseIncomplete, "the response was cut off")))
    }

    public func contentWanted() {}
}
