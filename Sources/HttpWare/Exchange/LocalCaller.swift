/// A client in the same process: it sends one request through a server's chain, without a connection downstream, and is
/// given the whole response. For tests, and for clients that need no socket. Used on the server's loop only.
public final class LocalCaller {
    private let server: LoopServer
    private let peer: SocketAddress?
    private var completion: ((Result<HttpResponse, GatewayError>) -> Void)?
    private var receive: ((HttpResponse, UnsafeRawBufferPointer) -> Void)?
    private var driver: ExchangeDriver?
    private var response = HttpResponse(.ok)
    private var content: [UInt8] = []
    private var trailers: HttpFields?
    /// The most content of a response that is held.
    private let limit: Int

    /// A caller at this address, for one request.
    public init(_ server: LoopServer, peer: SocketAddress?, limit: ByteCount = .mebibytes(64)) {
        self.server = server
        self.peer = peer
        self.limit = limit.bytes
    }

    /// Sends the request, whose content is at hand, and calls `completion` once: with the response, its content whole, or
    /// with an error when the response was cut off. A response that the gateway made for a fault is a response.
    ///
    /// `receive` is given each piece of content as it comes, with the response's head; the completion is then without content.
    /// `observe` is called when the exchange has ended.
    public func send(
        _ request: HttpRequest, receive: ((HttpResponse, UnsafeRawBufferPointer) -> Void)? = nil,
        observe: ((Exchange) -> Void)? = nil,
        completion: @escaping (Result<HttpResponse, GatewayError>) -> Void
    ) {
        precondition(driver == nil, "a caller sends one request")
        self.completion = completion
        self.receive = receive
        let driver = ExchangeDriver(server: server)
        self.driver = driver
        driver.prepare(sink: self, connection: ConnectionFacts(peer: peer, local: server.bindAddress))
        driver.exchange.request = LocalCaller.received(request)
        if let observe { driver.exchange.onEnd(observe) }
        let bytes = request.content.bytes
        if bytes != nil { driver.exchange.request.content = HttpContent(extent: request.content.extent) }
        server.transport.inEvent {
            driver.requestStarted()
            if let bytes { bytes.withUnsafeBytes { driver.requestContent($0) } }
            if driver.phase != .ended { driver.requestEnded(nil) }
        }
    }

    /// Goes away, as a client that closes its connection does; the completion is not called.
    public func leave() {
        completion = nil
        driver?.clientLeft()
        driver = nil
    }

    /// The request as if it had been decoded: all its fields came from the peer, and `Host` is its authority.
    private static func received(_ request: HttpRequest) -> HttpRequest {
        var request = request
        request.fields.receivedCount = request.fields.lines.count
        if request.target.host.count == 0, let index = request.fields.firstIndex(of: KnownField.host) {
            let value = request.fields.lines[index].value
            let isHost = request.fields.bytes.withUnsafeBufferPointer {
                request.target.setAuthority(UnsafeBufferPointer(rebasing: $0[value]))
            }
            precondition(isHost, "not a host")
        }
        return request
    }

    private func finish(_ result: Result<HttpResponse, GatewayError>) {
        driver = nil
        completion?(result)
        completion = nil
    }
}

extension LocalCaller: ResponseSink {
    func sendInterim(_ response: HttpResponse) {}

    func send(responseOf exchange: Exchange, extent: HttpContent.Extent, via: Bool) {
        response = exchange.response
        if case .length(let length) = extent { content.reserveCapacity(min(length, limit)) }
    }

    func sendContent(_ bytes: UnsafeRawBufferPointer) {
        if let receive { return receive(response, bytes) }
        if content.count + bytes.count <= limit { return content.append(contentsOf: bytes) }
        let driver = self.driver
        finish(.failure(GatewayError(.gateway, .responseContentTooLarge, "the response is larger than \(limit) bytes")))
        driver?.clientLeft()
    }

    func sendEnd(_ trailers: HttpFields?) {
        response.content = .bytes(content)
        finish(.success(response))
    }

    func cutOff() {
        finish(.failure(GatewayError(.gateway, .responseIncomplete, "the response was cut off")))
    }

    func startTunnel() {}
    func sendTunnel(_ bytes: UnsafeRawBufferPointer) { content.append(contentsOf: bytes) }
    func endTunnel() {}
    func pauseRequest() {}
    func resumeRequest() {}
    var isBlocked: Bool { false }
}
