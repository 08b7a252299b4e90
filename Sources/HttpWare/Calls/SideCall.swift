/// One call of the gateway's own: a connection, the request, the whole response. Used on its loop's thread only.
///
/// Its timer keeps it alive until it has ended.
final class SideCall: HttpCall {
    /// Holds the request, because streams take it from an exchange.
    private let exchange: Exchange
    private let limits: CallLimits
    private let transport: LoopTransport
    private var completion: ((Result<HttpResponse, GatewayError>) -> Void)?
    private var timer: LoopTimer?
    private var ticket: ConnectionTicket?
    private var stream: (any UpstreamStream)?
    private var endpoint: Endpoint?
    /// The endpoint and the `Host` to use instead of those of the request's target.
    private let given: Endpoint?
    private let givenHost: String?
    /// Whether excess content is ignored instead of failing the call, because only the head matters.
    private let cutsContent: Bool
    /// The TLS context that verifies servers; `nil` uses the system's trust.
    private let trust: TlsContext?
    /// Takes the content of a response that may never end, piece by piece; `nil` collects the content.
    private let pieces: ((UnsafeRawBufferPointer) -> Void)?
    private var response = HttpResponse(.ok)
    private var content: [UInt8] = []
    private var redirectsLeft: Int
    private var deniesPrivate: Bool
    private var hasRetried = false

    init(
        _ request: HttpRequest, _ limits: CallLimits, _ transport: LoopTransport, to given: Endpoint? = nil,
        host givenHost: String? = nil, cutsContent: Bool = false, trusting trust: TlsContext? = nil,
        pieces: ((UnsafeRawBufferPointer) -> Void)? = nil,
        _ completion: @escaping (Result<HttpResponse, GatewayError>) -> Void
    ) {
        exchange = Exchange(loop: transport.loop)
        exchange.heldRequest = request
        self.limits = limits
        self.transport = transport
        self.given = given
        self.givenHost = givenHost
        self.cutsContent = cutsContent
        self.trust = trust
        self.pieces = pieces
        self.completion = completion
        redirectsLeft = limits.redirects
        deniesPrivate = limits.deniesPrivate
    }

    private var request: HttpRequest { exchange.heldRequest }

    /// Starts the deadline, and asks for a connection.
    func begin() {
        timer = transport.loop.schedule(after: limits.timeout) { self.timedOut() }
        connect()
    }

    func cancel() {
        completion = nil
        letGo()
    }

    private func timedOut() {
        timer = nil
        let name = endpoint?.name ?? "the server"
        let fault: GatewayError.Fault = stream == nil ? .connectionTimeout : .responseTimeout
        finish(.failure(GatewayError(.upstream, fault, "\(name) did not answer in \(limits.timeout.optionText)")))
    }

    private func finish(_ result: Result<HttpResponse, GatewayError>) {
        let completion = self.completion
        self.completion = nil
        letGo()
        completion?(result)
    }

    private func letGo() {
        timer?.cancel()
        timer = nil
        ticket?.giveUp()
        ticket = nil
        let stream = self.stream
        self.stream = nil
        stream?.cancel()
    }

    // MARK: The connection

    private func connect() {
        guard let host = request.host, request.hasPath else {
            return finish(.failure(.malformed("a call of the gateway's own needs an absolute URI")))
        }
        if let given { return connect(to: given) }
        let isSecure = request.scheme == "https"
        let tls = isSecure ? trust ?? SystemTrust.shared.client : nil
        guard !isSecure || tls != nil else {
            return finish(.failure(GatewayError(.gateway, .internalError, "OpenSSL cannot make a context")))
        }
        let port = request.port ?? (isSecure ? 443 : 80)
        let bytes = Array(host.utf8)
        let endpoint = bytes.withUnsafeBytes {
            transport.passing.endpoint($0, port: port, tls: tls, deniesPrivate: deniesPrivate)
        }
        connect(to: endpoint)
    }

    private func connect(to endpoint: Endpoint) {
        self.endpoint = endpoint
        // A request that must not be sent twice gets a new connection, which cannot have been closed meanwhile.
        let mayReuse = limits.reusesConnections ?? request.method.isIdempotent
        let need: ConnectionNeed = mayReuse && !hasRetried && pieces == nil ? .usual : .new
        let ticket = transport.connect(to: endpoint, need: need, timeout: limits.timeout, waiter: self)
        if let ticket, stream == nil, completion != nil { self.ticket = ticket }
    }

    private func send(on stream: any UpstreamStream) {
        guard let endpoint else { return }
        var options = HeadEncoder.RequestOptions()
        options.host = givenHost ?? endpoint.authority
        let bytes = request.content.bytes
        options.framing = .ofRequest(
            sending: bytes.map { .length($0.count) } ?? .none, method: request.method,
            statesLength: request.fields.statesLength)
        response.reset()
        content = []
        let time = limits.timeout.nanoseconds
        let idle = pieces == nil ? time : SideCall.longestSilence.nanoseconds
        stream.send(requestOf: exchange, options, receiver: self, responseTimeout: time, idleTimeout: idle)
        if let bytes {
            bytes.withUnsafeBytes { stream.sendContent($0) }
            stream.sendEnd(nil)
        }
    }

    /// How long a response that comes in pieces may be silent.
    private static let longestSilence = Duration.seconds(365 * 86_400)

    // MARK: Redirects

    /// The request to the redirect's target, if it is followed; `nil` otherwise. RFC 9110 §15.4.
    private func redirected() -> HttpRequest? {
        guard redirectsLeft > 0, request.method == .get || request.method == .head,
            [301, 302, 303, 307, 308].contains(response.status.code), let location = response.fields[.location],
            let next = SideCall.follow(request, to: location)
        else { return nil }
        if next.isElsewhere { deniesPrivate = true }
        return next.request
    }

    /// The request to the target of `Location`, and whether that is another origin; `nil` if it is not followed.
    static func follow(_ request: HttpRequest, to location: String) -> (request: HttpRequest, isElsewhere: Bool)? {
        guard var next = HttpRequest.redirected(request, to: location) else { return nil }
        // Never from TLS to an unencrypted connection.
        guard request.scheme == "http" || next.scheme == "https" else { return nil }
        if OriginRouter.isSame(request, next) { return (next, false) }
        // Any other field may be a credential for the previous origin.
        var kept = HttpFields()
        for name in SideCall.harmless {
            // Each value is valid, because it was in a field line.
            for value in request.fields.values(of: name) { try? kept.append(name, value) }
        }
        next.fields = kept
        return (next, true)
    }

    /// The fields that may be sent to another origin.
    private static let harmless: [FieldName] = [.accept, .acceptEncoding, .acceptLanguage, .userAgent]
}

extension SideCall: ConnectionWaiter {
    func connectionReady(_ stream: any UpstreamStream, _ times: Connector.Times?) {
        ticket = nil
        guard completion != nil else { return stream.cancel() }
        self.stream = stream
        transport.inEvent { send(on: stream) }
    }

    func connectionFailed(_ error: GatewayError) {
        ticket = nil
        finish(.failure(error))
    }
}

extension SideCall: ResponseReceiver {
    func responseInterim(_ response: inout HttpResponse) {}

    func responseStarted(_ arrived: inout HttpResponse) {
        swap(&response, &arrived)
        if pieces != nil, (200...299).contains(response.status.code) {
            timer?.cancel()
            timer = nil
            return
        }
        if let length = response.content.length, length > limits.content.bytes { tooLarge() }
    }

    var responseRelay: SocketConnection? { nil }
    func responseRelayed(_ count: Int) {}

    func responseContent(_ bytes: UnsafeRawBufferPointer) {
        if let pieces, (200...299).contains(response.status.code) { return pieces(bytes) }
        guard content.count + bytes.count <= limits.content.bytes else { return tooLarge() }
        content.append(contentsOf: bytes)
    }

    private func tooLarge() {
        if cutsContent {
            response.content = .bytes(content)
            return finish(.success(response))
        }
        finish(
            .failure(
                GatewayError(
                    .upstream, .responseContentTooLarge,
                    "the response of \(endpoint?.name ?? "the server") is larger than \(limits.content.optionText)")))
    }

    func responseEnded(_ trailers: HttpFields?) {
        stream = nil
        if let next = redirected() {
            redirectsLeft -= 1
            hasRetried = false
            exchange.heldRequest = next
            return connect()
        }
        response.content = .bytes(content)
        finish(.success(response))
    }

    func upstreamFailed(_ error: GatewayError) {
        let wasReused = stream?.isReused == true
        stream = nil
        if error.requiresHttp1, !hasRetried, endpoint?.requireHttp1() == true {
            hasRetried = true
            return connect()
        }
        // A pooled connection was closed during the request. RFC 9110 §9.2.2.
        if error.mayRetry, wasReused, !hasRetried, request.method.isIdempotent {
            hasRetried = true
            return connect()
        }
        finish(.failure(error))
    }

    func upstreamDrained() {}
    func tunnelReceived(_ bytes: UnsafeRawBufferPointer) {}
    func tunnelReceivedEnd() {}
}

extension HttpRequest {
    /// The same request for the target of `Location`: an absolute URI, or a path of the same authority; `nil` for anything
    /// else. A fragment is removed. RFC 9110 §10.2.2.
    fileprivate static func redirected(_ request: HttpRequest, to location: String) -> HttpRequest? {
        let place = location.prefix { $0 != "#" }
        let isPath = place.hasPrefix("/") && !place.hasPrefix("//")
        let authority = request.authority?.description ?? ""
        let target = isPath ? "\(request.scheme)://\(authority)\(place)" : String(place)
        guard target.hasPrefix("http://") || target.hasPrefix("https://") else { return nil }
        return try? HttpRequest(request.method, target, fields: request.fields)
    }
}
