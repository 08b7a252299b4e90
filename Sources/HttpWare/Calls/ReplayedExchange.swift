/// Repeats a captured request: a new exchange of a listener, which passes the whole chain as if a client had sent it. Its response is
/// only captured. Used on the listener's loop.
public final class ReplayedExchange {
    /// The order to repeat a request.
    public struct Order: Sendable {
        public var mark: ReplayMark
        public var method: HttpMethod
        /// The absolute URL, in the bytes that are sent.
        public var url: [UInt8]
        public var fields: HttpFields
        public var content: [UInt8]
        /// The fields behind the content; `nil` without content.
        public var trailers: HttpFields?
        /// How the captured request arrived; `nil` if that is no longer known.
        public var entry: ExchangeEntry?
        /// The address of the client that requests the repetition.
        public var peer: SocketAddress?

        public init(mark: ReplayMark, method: HttpMethod, url: [UInt8]) {
            self.mark = mark
            self.method = method
            self.url = url
            fields = HttpFields()
            content = []
        }
    }

    private let order: Order
    private var local: LocalExchange?

    /// The maximum duration of a repetition: no client would end it.
    private static let longest = Duration.seconds(600)

    /// Begins the exchange. Throws if the listener cannot take a request for that URL.
    public static func start(_ order: Order, on server: LoopListener) throws(GatewayError) {
        let replay = ReplayedExchange(order)
        let (request, facts) = try replay.made(for: server)
        let local = LocalExchange(server, facts: facts, receiver: replay)
        replay.local = local
        try local.start(request, trailers: order.content.isEmpty ? nil : order.trailers)
        server.transport.loop.schedule(after: longest) { [weak replay] in replay?.local.take()?.leave() }
    }

    private init(_ order: Order) { self.order = order }

    /// The request in the form in which a client sends it to this listener, and the connection that it would use.
    private func made(for server: LoopListener) throws(GatewayError) -> (HttpRequest, ConnectionFacts) {
        guard order.method != .connect else { throw .malformed("CONNECT cannot be repeated") }
        let named = try HttpRequest(order.method, received: order.url)
        guard let host = named.host else { throw .malformed("the URL is not an absolute http or https URL") }
        let isSecure = named.scheme == "https"
        var facts = ConnectionFacts(
            peer: order.peer, local: server.bindAddress, isSecure: server.settings.tls != nil, replay: order.mark)
        var target = order.url
        if server.settings.isForward {
            if let tunnel = try tunnel(of: server, host: host, port: named.port, isSecure: isSecure) {
                facts = ConnectionFacts(
                    peer: order.peer, local: server.bindAddress, isSecure: isSecure, tunnel: tunnel, replay: order.mark)
                target = ReplayedExchange.originForm(of: named)
            }
        } else {
            target = ReplayedExchange.originForm(of: named)
        }
        var fields = HttpFields()
        do throws(InvalidFieldValue) {
            try fields.append(.host, Authority(host: host, port: named.port).description)
            for line in order.fields.rawLines { try fields.append(line.name, raw: line.value) }
        } catch {
            throw .malformed("a field cannot be sent: \(error)")
        }
        var request = try HttpRequest(
            order.method, received: target, ownsPath: !server.settings.isForward, fields: fields,
            content: order.content.isEmpty ? .none : .bytes(order.content))
        if facts.tunnel == nil, server.settings.isForward {
            request.proxyAuthorization = order.entry?.proxyAuthorization
        }
        return (request, facts)
    }

    /// The tunnel that must contain the request; `nil` if a client would send it without one.
    private func tunnel(
        of server: LoopListener, host: String, port: UInt16?, isSecure: Bool
    ) throws(GatewayError) -> TunnelFacts? {
        let port = port ?? (isSecure ? 443 : 80)
        let former = order.entry?.tunnel
        if let former, former.host == host, former.port == port, order.entry?.isSecure == isSecure { return former }
        guard isSecure else { return nil }
        guard let rules = server.intercept, rules.decision(host, port) == .intercepted else {
            throw GatewayError(.gateway, .requestDenied, "the listener does not read tunnels to \(host):\(port)")
        }
        guard server.forward.connectPorts.contains(port) else {
            throw GatewayError(.gateway, .requestDenied, "CONNECT to port \(port) is not allowed")
        }
        // The CONNECT that a client would send first, with the same credentials for this proxy.
        var connect = HttpRequest()
        connect.proxyAuthorization = former?.proxyAuthorization ?? order.entry?.proxyAuthorization
        return TunnelFacts(connect, host: host, port: port)
    }

    /// The target of a request inside a tunnel or to a gateway: path and query as they are written. RFC 9112 §3.2.1, §3.2.4.
    private static func originForm(of request: HttpRequest) -> [UInt8] {
        guard request.hasPath else { return Array("*".utf8) }
        let parts = request.receivedParts
        return parts.path + (parts.query.map { [0x3f] + $0 } ?? [])
    }
}

extension ReplayedExchange: LocalExchangeReceiver {
    public func responseStarted(_ exchange: Exchange, _ response: HttpResponse) {}
    public func responseContent(_ bytes: UnsafeRawBufferPointer) {}
    public func responseEnded(_ exchange: Exchange, _ trailers: HttpFields?) { local = nil }
    public func responseFailed(_ exchange: Exchange, _ error: GatewayError) { local = nil }
    public func contentWanted() {}
}
