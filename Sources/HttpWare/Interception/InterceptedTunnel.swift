/// A tunnel that a client has opened and the gateway intercepts. It detects the client's protocol, takes the host's place, and
/// gives the requests inside to the listener as exchanges of their own. Used on its loop's thread only.
final class InterceptedTunnel: ExchangeSource {
    let listener: LoopListener
    let rules: InterceptRules
    /// The CONNECT that opened the tunnel, or that would have opened it.
    private(set) var request: HttpRequest
    /// The connection that the CONNECT came on.
    let outer: ConnectionFacts
    private(set) var facts: TunnelFacts
    /// The destination of a client that sent no CONNECT; `nil` after a CONNECT.
    private let direct: DirectDestination?
    /// Whether it came on a stream of HTTP/2, or on a connection with TLS; that connection is held separately.
    private var isInner = false
    private let client: IPAddress?
    private let principal: String?

    /// The tunnel of an accepted CONNECT.
    init(_ listener: LoopListener, _ rules: InterceptRules, _ exchange: Exchange, _ connection: ConnectionFacts) {
        self.listener = listener
        self.rules = rules
        direct = nil
        request = exchange.heldRequest
        outer = connection
        client = exchange.client
        principal = exchange.principal?.name
        facts = TunnelFacts(request, host: request.host ?? "", port: request.port ?? 443, principal: principal)
    }

    /// The inside of a tunnel that the client opened without a CONNECT. `request` is the CONNECT that would have led there.
    init(
        _ listener: LoopListener, _ rules: InterceptRules, to direct: DirectDestination, _ request: HttpRequest,
        _ connection: ConnectionFacts
    ) {
        self.listener = listener
        self.rules = rules
        self.direct = direct
        self.request = request
        outer = connection
        client = connection.peer?.address
        principal = nil
        facts = TunnelFacts(
            request, host: request.host ?? direct.host, port: direct.port, takesEveryHost: !direct.isNamed)
    }

    private var transport: LoopTransport { listener.transport }

    /// The connection that the CONNECT came on, if it is held separately.
    var counted: ConnectionFacts? { isInner ? outer : nil }

    /// Whether tunnels to the host that the CONNECT names are intercepted. If not, it is an address, and the handshake may name
    /// such a host.
    var isListed: Bool { rules.decision(facts.host, facts.port) == .intercepted }

    /// The program that the client's handshake identifies; 0 before it, and for a malformed one.
    private var program: UInt64 = 0

    private var key: PinnedHosts.Key {
        PinnedHosts.Key(client: client, principal: principal, program: program, host: facts.host)
    }

    // MARK: The client's protocol

    /// The client speaks TLS. It gets a certificate for the name that it asks for, else for the host of the tunnel. `program` is `nil`
    /// if its first message is malformed.
    func secure(_ opening: TunnelOpening, serverName: String?, program: UInt64?) {
        self.program = program ?? 0
        if let direct, let serverName {
            guard take(serverName, to: direct) else {
                return opening.refuse("the handshake names \(serverName), but the client connected to \(direct.host)")
            }
            if !isListed { return opening.passUnread(host: nil, .notListed) }
        } else if let serverName, let address = IPAddress(Authority.bare(facts.host)) {
            // The tunnel names only an address: the host is the name that the client asks for in the handshake.
            switch rules.decision(serverName, facts.port) {
            case .intercepted: break
            case .notListed: return opening.passUnread(host: serverName, .notListed)
            case .excepted: return opening.passUnread(host: serverName, .excepted)
            }
            facts = TunnelFacts(
                request, host: serverName, port: facts.port, address: address, principal: principal)
        } else if !isListed {
            return opening.passUnread(host: nil, .notListed)
        }
        if program != nil, rules.pinned.passes(key, at: transport.loop.now.nanoseconds) {
            // The client pins the host's own certificate.
            return opening.passUnread(host: facts.address == nil ? nil : facts.host, .pinned)
        }
        let (socket, received) = opening.leave()
        if listener.isDraining {
            socket.close()
            return listener.tellIfEmpty()
        }
        guard let way = transport.tlsSocket,
            let session = TlsSession(
                interceptedBy: rules.tls, host: serverName ?? facts.host, received: received, socket: way,
                descriptor: socket.descriptor)
        else {
            socket.close()
            return listener.tellIfEmpty()
        }
        let handshake = TlsHandshake(socket: socket, session: session, isServer: true, peer: outer.peer, owner: self)
        listener.began(handshake, in: self, inside: counted)
        handshake.start(
            dueNanoseconds: transport.loop.now.nanoseconds &+ settings.handshakeTimeout.nanoseconds, hasReceived: true)
    }

    /// The handshake names a host. Returns false if that is not the one that the client looked up. If the client named none yet, the tunnel
    /// leads to this one from now on, wherever its address is: the client may have invented the address.
    private func take(_ serverName: String, to direct: DirectDestination) -> Bool {
        guard !direct.isNamed else { return serverName == facts.host }
        request.target.setHost(serverName)
        facts = TunnelFacts(request, host: serverName, port: facts.port)
        return true
    }

    /// The client speaks HTTP without TLS.
    func speakHttp(_ opening: TunnelOpening) {
        let (socket, received) = opening.leave()
        let connection = Http1DownstreamConnection(
            transport: transport, socket: socket, tls: nil, peer: outer.peer, source: self)
        listener.hold(connection, inside: counted)
        received.withUnsafeBytes { connection.received($0) }
    }

    // MARK: The source of the exchanges inside

    var settings: ServerSettings { listener.settings }
    var limits: HeadLimits { listener.limits }
    var headNanoseconds: Int64 { listener.headNanoseconds }
    var idleNanoseconds: Int64 { listener.idleNanoseconds }
    var bodyMinRate: Int? { listener.bodyMinRate }
    /// Inside, the client talks to the host itself.
    var isForward: Bool { false }
    /// The gateway is a proxy, although the form of the requests does not show it.
    var ownsPaths: Bool { false }
    var bindAddress: SocketAddress? { listener.bindAddress }
    var isDraining: Bool { listener.isDraining }

    func facts(_ socket: SocketEvents, _ tls: TlsSession?, peer: SocketAddress?) -> ConnectionFacts {
        outer.inside(facts, isSecure: tls != nil, keyExchange: tls?.keyExchange)
    }

    func makeReceiver(for sink: any ResponseSink, of connection: any DownstreamConnection) -> any RequestReceiver {
        listener.makeDriver(for: sink, connection.facts)
    }

    func closed(_ connection: any DownstreamConnection) { listener.closed(connection) }

    func replaced(_ connection: any DownstreamConnection, by other: any DownstreamConnection) {
        listener.replaced(connection, by: other)
    }
}

extension InterceptedTunnel: TunnelTaker {
    func takeTunnel(_ socket: SocketEvents, received: [UInt8], of connection: any DownstreamConnection) {
        let opening = TunnelOpening(self, transport: transport, socket: socket)
        listener.replaced(connection, by: opening)
        opening.start(received)
    }

    func joinTunnel(_ sink: any ResponseSink) -> any RequestReceiver {
        guard listener.mayJoinTunnel(on: outer), let (near, far) = Socket.pair() else {
            return TunnelBridge(transport, sink, socket: nil)
        }
        let bridge = TunnelBridge(transport, sink, socket: SocketEvents(loop: transport.loop, descriptor: far))
        let opening = TunnelOpening(
            self, transport: transport, socket: SocketEvents(loop: transport.loop, descriptor: near))
        isInner = true
        listener.hold(opening, inside: counted)
        opening.start([])
        return bridge
    }
}

extension InterceptedTunnel: TlsHandshakeOwner {
    func handshakeDone(_ handshake: TlsHandshake) {
        listener.ended(handshake)
        rules.pinned.accepted(key)
        switch handshake.session.applicationProtocol {
        case .http11, nil:
            listener.hold(
                Http1DownstreamConnection(
                    transport: transport, socket: handshake.socket, tls: handshake.session, peer: outer.peer,
                    source: self), inside: counted)
        case .h2:
            let connection = Http2DownstreamConnection(
                transport: transport, socket: handshake.socket, tls: handshake.session, peer: outer.peer, source: self)
            listener.hold(connection, inside: counted)
            connection.start(UnsafeRawBufferPointer(start: nil, count: 0))
        }
    }

    func handshakeFailed(_ handshake: TlsHandshake, _ fault: TlsFault) {
        listener.onInterceptFailure?(facts.host, outer.peer, fault, outcome(of: fault, handshake.session.wasLeafSeen))
    }

    /// The conclusion from a failed handshake. Only an alert about the certificate, after the client has received it in a handshake
    /// that it began well, shows that a program pins the host's own. A close, or a malformed handshake, shows nothing.
    private func outcome(of fault: TlsFault, _ wasLeafSeen: Bool) -> LoopListener.InterceptFailure {
        // RFC 8446 §6.2: bad_certificate, certificate_unknown, unknown_ca.
        guard wasLeafSeen, program != 0, [42, 46, 48].contains(fault.alert) else { return .failed }
        // If tunnels to the host must not pass unread, the refusal is not recorded: it would close the host for all programs.
        guard listener.forward.unreadHosts?.contains(facts.host, facts.port) ?? true else { return .refused }
        switch rules.pinned.refused(
            key, at: transport.loop.now.nanoseconds, for: rules.passPinned.nanoseconds)
        {
        case .counted: return .refused
        case .acceptedBefore: return .refusedByOne
        case .passes: return .tunnelled
        }
    }

    func handshakeClosed(_ handshake: TlsHandshake) {
        listener.ended(handshake)
        listener.tellIfEmpty()
    }
}
