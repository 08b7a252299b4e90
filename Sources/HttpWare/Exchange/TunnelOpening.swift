/// The beginning of a tunnel that the gateway reads: the client's first bytes decide what becomes of it.
///
/// Where the client says nothing at first, the host may be the one that speaks: then both are connected, and what the host says
/// before the client makes it a tunnel that passes unread.
final class TunnelOpening: SocketConnection, DownstreamConnection {
    private let tunnel: InterceptedTunnel
    let facts: ConnectionFacts
    /// What the client has sent.
    private var bytes: [UInt8] = []
    /// The exchange that connects the client with the host, unread.
    private var unread: UnreadTunnel?
    /// The client has been silent for long enough.
    private var hasWaited = false
    private var drainNanoseconds: Int64?
    /// It is sure that the tunnel passes unread: the host's connection is waited for, which has its own deadline.
    private var isPassing = false

    /// A host that speaks first is listened to when the client has been silent for so long.
    private static let silence: Int64 = 300_000_000

    init(_ tunnel: InterceptedTunnel, transport: LoopTransport, socket: SocketEvents) {
        self.tunnel = tunnel
        facts = tunnel.outer
        super.init(transport: transport, socket: socket, tls: nil)
    }

    /// Begins with what was read already.
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
        switch TunnelProtocol.of(bytes) {
        case .unknown:
            // From its first byte, a hello takes no longer than a head.
            if bytes.count == input.count {
                timer.set(dueNanoseconds: loop.now.nanoseconds &+ tunnel.headNanoseconds)
            }
        case .tls(let serverName):
            giveUpListening()
            tunnel.secure(self, serverName: serverName)
        case .http where !tunnel.isListed: passUnread(host: nil)
        case .http:
            giveUpListening()
            tunnel.speakHttp(self)
        case .other:
            if tunnel.rules.tunnelsOpaque { passUnread(host: nil) } else { refuse() }
        }
    }

    /// Gives the socket away, and what was read of it. This connection ends without a word.
    func leave() -> (SocketEvents, [UInt8]) {
        let socket = handOver()
        tunnel.listener.letGo(self)
        return (socket, bytes)
    }

    // MARK: Passing unread

    /// Connects the client with the host: with another one than the tunnel's where it has turned out to be that.
    func passUnread(host: String?) {
        isPassing = true
        timer.clear()
        // What the client still sends waits with the kernel.
        socket.disableReading()
        let unread = self.unread ?? UnreadTunnel(self, tunnel)
        self.unread = unread
        if !unread.hasBegun { unread.connect(host: host, isSure: true) }
        if !isClosed { unread.pass() }
    }

    /// Closes the tunnel, which is recorded.
    private func refuse() {
        let unread = self.unread ?? UnreadTunnel(self, tunnel)
        unread.refuse("what the client sends is neither TLS nor HTTP; with opaque: tunnel it would pass unread")
    }

    private func giveUpListening() {
        let unread = self.unread
        self.unread = nil
        unread?.giveUp()
    }

    /// Becomes a tunnel that passes unread, and answers the connection that it is then.
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
        unread.connect(host: nil, isSure: false)
    }

    // MARK: Endings

    override func receivedEnd() {
        // A client that says nothing may still want to hear the host.
        guard bytes.isEmpty, tunnel.rules.tunnelsOpaque else { return close() }
        passUnread(host: nil)
    }

    /// The host could not be connected before the client said anything: that decides nothing.
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

/// The exchange of a tunnel that passes unread, though it might have been read. The client has its response to the CONNECT already:
/// what would be a response is none.
final class UnreadTunnel: ResponseSink {
    private weak var opening: TunnelOpening?
    private let tunnel: InterceptedTunnel
    private var driver: ExchangeDriver?
    /// The client's side, once it is sure that the tunnel passes unread.
    private var connection: Http1DownstreamConnection?
    /// The host is connected.
    private var isOpen = false
    /// The client's bytes are to pass as soon as the host is connected.
    private var passes = false

    init(_ opening: TunnelOpening, _ tunnel: InterceptedTunnel) {
        self.opening = opening
        self.tunnel = tunnel
    }

    var hasBegun: Bool { driver != nil }

    /// Connects with the host. As long as it is not sure that the tunnel passes unread, nobody is told of the exchange.
    func connect(host: String?, isSure: Bool) {
        passes = isSure
        let driver = tunnel.listener.makeDriver(for: self, tunnel.outer)
        self.driver = driver
        driver.exchange.heldRequest = tunnel.request
        driver.startUnread(tunnel.rules.opaqueRouter, host: host, isSure: isSure)
    }

    /// What the client sent goes to the host.
    func pass() {
        passes = true
        driver?.isSure()
        if isOpen { become() }
    }

    /// The tunnel ends, for this reason.
    func refuse(_ reason: String) {
        if driver == nil {
            let driver = tunnel.listener.makeDriver(for: self, tunnel.outer)
            self.driver = driver
            driver.exchange.heldRequest = tunnel.request
        }
        driver?.requestFailed(GatewayError(.gateway, .requestDenied, reason))
    }

    /// The client turned out to speak what is read.
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

    /// There is no tunnel with the host, or no more.
    private func end() {
        if passes { opening?.close() } else { opening?.couldNotListen(self) }
    }

    func pauseRequest() { connection?.pauseRequest() }
    func resumeRequest() { connection?.resumeRequest() }
    var isBlocked: Bool { connection?.isBlocked ?? false }
    var relayTarget: SocketConnection? { connection?.relayTarget }
}
