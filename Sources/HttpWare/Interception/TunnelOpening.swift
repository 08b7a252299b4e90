/// The start of a tunnel that the gateway intercepts: the client's first bytes decide how it is handled.
///
/// If the client is silent at first, the protocol may be one in which the host speaks first. Then the gateway connects both. If the host
/// speaks before the client, the tunnel passes unread. `OpeningState` decides; this connection has the socket, the timer and the bytes.
final class TunnelOpening: SocketConnection, DownstreamConnection {
    private let tunnel: InterceptedTunnel
    let facts: ConnectionFacts
    private var state: OpeningState
    /// The bytes received from the client.
    private var bytes: [UInt8] = []
    private var hello = ClientHello.Scan()
    /// The exchange that connects the client to the host, unread.
    private var unread: UnreadTunnel?
    /// The time that a draining listener allows, in nanoseconds.
    private var drainNanoseconds: Int64 = 0

    /// The silence of the client, in nanoseconds, after which the host may speak first.
    private static let silence: Int64 = 300_000_000

    init(_ tunnel: InterceptedTunnel, transport: LoopTransport, socket: SocketEvents) {
        self.tunnel = tunnel
        facts = tunnel.outer
        state = OpeningState(passesOpaque: tunnel.rules.tunnelsOpaque, isListed: tunnel.isListed)
        super.init(transport: transport, socket: socket, tls: nil)
    }

    /// Starts with the bytes that were already read.
    func start(_ received: [UInt8]) {
        guard socket.enableReading() else { return loop.later { self.close() } }
        setTimer(TunnelOpening.silence)
        if !received.isEmpty { received.withUnsafeBytes { self.received($0) } }
    }

    var isIdle: Bool { bytes.isEmpty }

    // MARK: Events

    override func received(_ input: UnsafeRawBufferPointer) {
        bytes.append(contentsOf: input)
        take(.bytes(TunnelProtocol.of(bytes, &hello)))
    }

    override func receivedEnd() { take(.end) }

    override func timedOut() { take(.timer) }

    func drain(idleFor nanoseconds: Int64) {
        drainNanoseconds = nanoseconds
        take(.drain)
    }

    /// Connects the client to the tunnel's host, or to the given one if the client named another.
    func passUnread(host: String?, _ reason: UnreadReason) { take(.passes(host: host, reason)) }

    /// The connection to the host has come further.
    func heard(_ event: OpeningState.Event, from unread: UnreadTunnel) { if self.unread === unread { take(event) } }

    override func failed(_ error: Int32) { close() }

    override func closed() {
        stopListening()
        tunnel.listener.closed(self)
    }

    // MARK: Actions

    private func take(_ event: OpeningState.Event) {
        switch state.take(event) {
        case .none: break
        // From its first byte on, a ClientHello has the time limit of a head.
        case .awaitHead: setTimer(tunnel.headNanoseconds)
        case .wait: setTimer(tunnel.settings.idleTimeout.nanoseconds)
        case .listen:
            setTimer(tunnel.settings.idleTimeout.nanoseconds)
            makeUnread().connect(host: nil, .opaque, isSure: false)
        case .stopListening: stopListening()
        case .awaitDrain: setTimer(drainNanoseconds)
        case .secure(let serverName):
            stopListening()
            tunnel.secure(self, serverName: serverName, program: ClientHello.program(of: bytes))
        case .speakHttp:
            stopListening()
            tunnel.speakHttp(self)
        case .connect(let host, let reason):
            stopReading()
            makeUnread().connect(host: host, reason, isSure: true)
        case .awaitHost:
            stopReading()
            unread?.isSure()
        case .pass:
            stopReading()
            unread?.isSure()
            if !isClosed { become() }
        case .refuse: refuse("the client sends neither TLS nor HTTP; with opaque: tunnel it would pass unread")
        case .close: close()
        }
    }

    /// Ends the tunnel for this reason, which the record shows.
    func refuse(_ reason: String) {
        // Not kept: a postware may still wait when this connection closes.
        UnreadTunnel(self, tunnel).refuse(reason)
        close()
    }

    private func setTimer(_ nanoseconds: Int64) { timer.set(dueNanoseconds: loop.now.nanoseconds &+ nanoseconds) }

    /// Further bytes of the client wait in the kernel, for as long as the connection to the host takes.
    private func stopReading() {
        timer.clear()
        socket.disableReading()
    }

    private func makeUnread() -> UnreadTunnel {
        let unread = UnreadTunnel(self, tunnel)
        self.unread = unread
        return unread
    }

    private func stopListening() {
        let unread = self.unread
        self.unread = nil
        unread?.giveUp()
    }

    /// Hands over the socket and the bytes read from it. This connection ends silently.
    func leave() -> (SocketEvents, [UInt8]) {
        let socket = handOver()
        tunnel.listener.letGo(self)
        return (socket, bytes)
    }

    /// Turns into a tunnel that passes unread.
    private func become() {
        guard let unread, let receiver = unread.receiver else { return }
        self.unread = nil
        let (socket, received) = leave()
        let connection = Http1DownstreamConnection(
            transport: transport, tunnel: socket, peer: facts.peer, source: tunnel, receiver: receiver)
        tunnel.listener.hold(connection, inside: tunnel.counted)
        unread.passes(to: connection)
        if !received.isEmpty { received.withUnsafeBytes { connection.received($0) } }
    }
}
