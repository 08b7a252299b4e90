/// The start of a tunnel that the gateway intercepts: the client's first bytes decide how it is handled.
///
/// If the client is silent at first, the protocol may be one in which the host speaks first. Then the gateway connects both. If the host
/// speaks before the client, the tunnel passes unread.
final class TunnelOpening: SocketConnection, DownstreamConnection {
    private let tunnel: InterceptedTunnel
    let facts: ConnectionFacts
    /// The bytes received from the client.
    private var bytes: [UInt8] = []
    private var hello = ClientHello.Scan()
    /// The exchange that connects the client to the host, unread.
    private var unread: UnreadTunnel?
    /// Whether the client was silent for the time in `silence`.
    private var hasWaited = false
    private var drainNanoseconds: Int64?
    /// Whether the tunnel certainly passes unread: it waits for the connection to the host, which has its own deadline.
    private var isPassing = false

    /// The silence of the client, in nanoseconds, after which the host may speak first.
    private static let silence: Int64 = 300_000_000

    init(_ tunnel: InterceptedTunnel, transport: LoopTransport, socket: SocketEvents) {
        self.tunnel = tunnel
        facts = tunnel.outer
        super.init(transport: transport, socket: socket, tls: nil)
    }

    /// Starts with the bytes that were already read.
    func start(_ received: [UInt8]) {
        guard socket.enableReading() else { return loop.later { self.close() } }
        timer.set(dueNanoseconds: loop.now.nanoseconds &+ TunnelOpening.silence)
        if !received.isEmpty { received.withUnsafeBytes { self.received($0) } }
    }

    var isIdle: Bool { bytes.isEmpty }

    func drain(idleFor nanoseconds: Int64) {
        drainNanoseconds = nanoseconds
        if !isPassing { timer.set(dueNanoseconds: loop.now.nanoseconds &+ nanoseconds) }
    }

    override func received(_ input: UnsafeRawBufferPointer) {
        bytes.append(contentsOf: input)
        switch TunnelProtocol.of(bytes, &hello) {
        case .unknown:
            // From its first byte on, a ClientHello has the time limit of a head.
            if bytes.count == input.count {
                timer.set(dueNanoseconds: loop.now.nanoseconds &+ tunnel.headNanoseconds)
            }
        case .tls(let serverName):
            giveUpListening()
            tunnel.secure(self, serverName: serverName, program: ClientHello.program(of: bytes))
        case .http where !tunnel.isListed: passUnread(host: nil, .notListed)
        case .http:
            giveUpListening()
            tunnel.speakHttp(self)
        case .other:
            if tunnel.rules.tunnelsOpaque { passUnread(host: nil, .opaque) } else { refuse() }
        }
    }

    /// Hands over the socket and the bytes read from it. This connection ends silently.
    func leave() -> (SocketEvents, [UInt8]) {
        let socket = handOver()
        tunnel.listener.letGo(self)
        return (socket, bytes)
    }

    // MARK: Passing unread

    /// Connects the client to the tunnel's host, or to the given one if the client named another.
    func passUnread(host: String?, _ reason: UnreadReason) {
        isPassing = true
        timer.clear()
        // Further bytes of the client wait in the kernel.
        socket.disableReading()
        let unread = self.unread ?? UnreadTunnel(self, tunnel)
        self.unread = unread
        if !unread.hasBegun { unread.connect(host: host, reason, isSure: true) }
        if !isClosed { unread.pass() }
    }

    /// Closes the tunnel and records the refusal.
    private func refuse() {
        let unread = self.unread ?? UnreadTunnel(self, tunnel)
        unread.refuse("the client sends neither TLS nor HTTP; with opaque: tunnel it would pass unread")
    }

    private func giveUpListening() {
        let unread = self.unread
        self.unread = nil
        unread?.giveUp()
    }

    /// Turns into a tunnel that passes unread, and returns the connection for it.
    func become(_ receiver: any RequestReceiver) -> Http1DownstreamConnection {
        let (socket, received) = leave()
        let connection = Http1DownstreamConnection(
            transport: transport, tunnel: socket, peer: facts.peer, source: tunnel, receiver: receiver)
        tunnel.listener.hold(connection, in: tunnel)
        if !received.isEmpty { received.withUnsafeBytes { connection.received($0) } }
        return connection
    }

    override func timedOut() {
        if isPassing { return }
        guard bytes.isEmpty, !hasWaited, drainNanoseconds == nil else { return close() }
        hasWaited = true
        timer.set(dueNanoseconds: loop.now.nanoseconds &+ tunnel.settings.idleTimeout.nanoseconds)
        guard tunnel.rules.tunnelsOpaque else { return }
        let unread = UnreadTunnel(self, tunnel)
        self.unread = unread
        unread.connect(host: nil, .opaque, isSure: false)
    }

    // MARK: Endings

    override func receivedEnd() {
        // A silent client may still want to receive from the host.
        guard bytes.isEmpty, tunnel.rules.tunnelsOpaque else { return close() }
        passUnread(host: nil, .opaque)
    }

    /// The connection to the host failed before the client sent anything. That does not decide how the tunnel is handled.
    func couldNotListen(_ unread: UnreadTunnel) {
        guard self.unread === unread else { return }
        giveUpListening()
    }

    override func failed(_ error: Int32) { close() }

    override func closed() {
        giveUpListening()
        tunnel.listener.closed(self)
    }
}

/// The exchange of a tunnel that passes unread, though it might have been intercepted. The client already has its response to the
/// CONNECT, so the response of this exchange is not sent.
final class UnreadTunnel: ResponseSink {
    private weak var opening: TunnelOpening?
    private let tunnel: InterceptedTunnel
    private var driver: ExchangeDriver?
    /// The client's side, once the tunnel certainly passes unread.
    private var connection: Http1DownstreamConnection?
    /// Whether the host is connected.
    private var isOpen = false
    /// Whether the client's bytes may pass as soon as the host is connected.
    private var passes = false

    init(_ opening: TunnelOpening, _ tunnel: InterceptedTunnel) {
        self.opening = opening
        self.tunnel = tunnel
    }

    var hasBegun: Bool { driver != nil }

    /// Connects to the host. Observers do not see the exchange until the tunnel certainly passes unread.
    func connect(host: String?, _ reason: UnreadReason, isSure: Bool) {
        passes = isSure
        let driver = tunnel.listener.makeDriver(for: self, tunnel.outer)
        self.driver = driver
        driver.exchange.heldRequest = tunnel.request
        driver.startUnread(tunnel.rules.opaqueRouter, host: host, reason, isSure: isSure)
    }

    /// Lets the client's bytes go to the host.
    func pass() {
        passes = true
        driver?.isSure()
        if isOpen { become() }
    }

    /// Ends the tunnel for this reason.
    func refuse(_ reason: String) {
        if driver == nil {
            let driver = tunnel.listener.makeDriver(for: self, tunnel.outer)
            self.driver = driver
            driver.exchange.heldRequest = tunnel.request
        }
        driver?.requestFailed(GatewayError(.gateway, .requestDenied, reason))
    }

    /// The client speaks a protocol that is intercepted: drops the connection to the host.
    func giveUp() {
        opening = nil
        let driver = self.driver
        self.driver = nil
        if connection == nil { driver?.dropUnread() }
    }

    private func become() {
        guard connection == nil, let driver, let opening else { return }
        self.opening = nil
        connection = opening.become(driver)
    }

    // MARK: The sink

    func sendInterim(_ response: HttpResponse) {}

    func send(responseOf exchange: Exchange, extent: HttpContent.Extent, via: Bool) {}

    func sendContent(_ bytes: UnsafeRawBufferPointer) {}

    func startTunnel() {
        isOpen = true
        if passes { become() }
    }

    func setTunnelIdle(_ nanoseconds: Int64) {}
    func sendTunnel(_ bytes: UnsafeRawBufferPointer) {
        // The host speaks first.
        if connection == nil {
            driver?.isSure()
            become()
        }
        connection?.sendTunnel(bytes)
    }

    func endTunnel() { connection == nil ? end() : connection?.endTunnel() }

    func sendEnd(_ trailers: HttpFields?) {
        driver = nil
        connection == nil ? end() : connection?.sendEnd(nil)
    }

    func cutOff() {
        driver = nil
        connection == nil ? end() : connection?.cutOff()
    }

    /// The connection to the host failed or has ended.
    private func end() {
        if passes { opening?.close() } else { opening?.couldNotListen(self) }
    }

    func pauseRequest() { connection?.pauseRequest() }
    func resumeRequest() { connection?.resumeRequest() }
    var isBlocked: Bool { connection?.isBlocked ?? false }
    var relayTarget: SocketConnection? { connection?.relayTarget }
}
