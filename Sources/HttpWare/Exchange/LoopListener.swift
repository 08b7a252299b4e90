/// One loop's part of a listener: its connections and their exchanges. Used on the loop's thread only.
public final class LoopListener: ExchangeSource {
    /// The listener's name.
    public private(set) var name: String
    let transport: LoopTransport
    /// Opens streams to origin servers: the loop's transport, unless a test replaces it by a script.
    var connector: any UpstreamConnector
    public private(set) var settings: ServerSettings
    public private(set) var forward: ForwardRules
    /// Intercepts tunnels; `nil` if none are intercepted.
    var interceptor: (any TunnelInterceptor)?
    public private(set) var trustedProxies: [IPNetwork]
    /// The listener's address; `nil` if it is a wildcard address or the system chose the port.
    let bindAddress: SocketAddress?
    /// Whether only this host can reach the listener.
    let isBoundToLoopback: Bool
    var limits: HeadLimits { settings.limits }
    var headNanoseconds: Int64 { settings.headTimeout.nanoseconds }
    var idleNanoseconds: Int64 { settings.idleTimeout.nanoseconds }
    var bodyMinRate: Int? { settings.bodyMinRate }
    var isForward: Bool { settings.isForward }
    var ownsPaths: Bool { !settings.isForward }
    /// Chooses plans.
    public private(set) var router: any ExchangeRouter
    /// Counts updates: a driver of an earlier generation holds an outdated plan, and is not reused.
    private(set) var generation = 0
    public private(set) var isDraining = false
    /// Keeps ended exchanges for inspection; `nil` without an inspector.
    public var records: RecordRing?
    /// Makes taps for exchanges; `nil` if messages are not observed.
    public var taps: (any ExchangeTapSource)?
    /// Wares that are temporarily added to every chain; `nil` without any.
    public var addedWares: AddedWares? {
        didSet { counters?.forgetPlans() }
    }
    /// Counts connections and exchanges; `nil` without a reader of the counts.
    public var counters: ExchangeCounters?
    /// Called after the end of each exchange that failed.
    public var onFailure: ((Exchange) -> Void)?
    /// Receives reports of misplaced placeholders; while it is set, requests are searched for placeholders.
    public var placeholders: (any PlaceholderWatch)?
    /// Called when the last connection has closed.
    public var onEmpty: (() -> Void)?

    /// Called after each failed TLS handshake, with the client's address and the reason.
    public var onHandshakeFailure: ((SocketAddress?, TlsFault) -> Void)?

    /// Called for each connection that was closed because of its PROXY protocol header, with the proxy's address and the reason.
    public var onHeaderFailure: ((SocketAddress?, String) -> Void)?

    /// The conclusion from a failed handshake inside a tunnel.
    public enum InterceptFailure: Sendable {
        case failed
        /// The client refused the certificate.
        case refused
        /// The client refused the certificate, which another handshake from the same address had accepted for this host.
        case refusedByOne
        /// The client refused it so often that its tunnels to the host pass unread from now on.
        case tunnelled
    }

    /// Called after each failed TLS handshake inside a tunnel, with the host, the client's address and the reason.
    public var onInterceptFailure: ((String, SocketAddress?, TlsFault, InterceptFailure) -> Void)?

    /// This loop's views of the endpoints of services, and the one used last.
    private var seats: [ObjectIdentifier: BalancerSeat] = [:]
    private var lastSeat: BalancerSeat?

    private var connections: [ObjectIdentifier: any DownstreamConnection] = [:]
    /// The running handshakes, each with the tunnel that contains it; only this table retains that tunnel.
    private var handshakes: [ObjectIdentifier: (handshake: TlsHandshake, tunnel: (any TlsHandshakeOwner)?)] = [:]
    /// Connections of proxies that have not yet named their client.
    private var headerReaders: [ObjectIdentifier: ProxyHeaderReader] = [:]
    /// The inner ends of tunnels whose outer connections are counted, each with its outer connection.
    private var innerEnds: [ObjectIdentifier: ObjectIdentifier] = [:]
    /// The number of inner ends of each of these connections.
    private var innerCounts: [ObjectIdentifier: Int] = [:]
    private var spare: [ExchangeDriver] = []
    private var surplus = IdleSurplus()
    /// The number of exchanges without a client.
    var backgroundCount = 0
    private var isStopped = false
    /// The time that an idle connection may wait for a request; set when the listener drains.
    private var drainNanoseconds: Int64 = 0
    private static let mostSpare = 256
    private static let mostBackground = 256

    /// Whether another exchange may run without a client.
    var mayRunInBackground: Bool { backgroundCount < LoopListener.mostBackground && !isStopped }

    // Inlined into the initializer with `intercept`, it ends Swift 6.3.1's optimizer: `router` is written before the object is allocated.
    @inline(never)
    public init(
        name: String, transport: LoopTransport, settings: ServerSettings = ServerSettings(),
        forward: ForwardRules = ForwardRules(), trustedProxies: [IPNetwork] = [], bindAddress: SocketAddress? = nil,
        router: any ExchangeRouter
    ) {
        self.name = name
        isBoundToLoopback = bindAddress?.isLoopback ?? false
        self.transport = transport
        connector = transport
        self.settings = settings
        self.forward = forward
        self.trustedProxies = trustedProxies
        if let bindAddress, bindAddress.address?.isUnspecified != true, bindAddress.port != 0 {
            self.bindAddress = bindAddress
        } else {
            self.bindAddress = nil
        }
        self.router = router
    }

    /// This loop's view of a service's endpoints.
    @inline(__always)
    func seat(of balancer: Balancer) -> BalancerSeat {
        if let lastSeat, lastSeat.balancer === balancer { return lastSeat }
        return findSeat(of: balancer)
    }

    private func findSeat(of balancer: Balancer) -> BalancerSeat {
        let seat = seats[ObjectIdentifier(balancer)] ?? BalancerSeat(balancer, transport)
        seats[ObjectIdentifier(balancer)] = seat
        lastSeat = seat
        return seat
    }

    /// The number of client connections, including those in a TLS handshake or reading a PROXY protocol header.
    public var connectionCount: Int { connections.count + handshakes.count + headerReaders.count - innerEnds.count }

    /// The number of connections with a running request, or part of a request's head. Checks each connection.
    public var busyCount: Int { connections.values.count { !$0.isIdle } }

    /// Uses the new settings for all following requests, on new and existing connections. Running exchanges finish with the plan that
    /// they began with. No tunnels are intercepted any more. The mode, reverse or forward, and the address cannot change: these need another listener.
    public func update(
        name: String, settings: ServerSettings, forward: ForwardRules, trustedProxies: [IPNetwork],
        router: any ExchangeRouter
    ) {
        precondition(settings.isForward == self.settings.isForward, "a listener keeps its mode")
        self.name = name
        self.settings = settings
        self.forward = forward
        interceptor = nil
        self.trustedProxies = trustedProxies
        self.router = router
        generation += 1
        counters?.forgetPlans()
        addedWares?.forgetPlans()
        // Needed seats are made again; the others belong to removed services.
        seats = [:]
        lastSeat = nil
        spare = []
    }

    /// Takes over an accepted connection.
    public func accept(_ descriptor: Int32, from peer: SocketAddress?) {
        let socket = SocketEvents(loop: transport.loop, descriptor: descriptor)
        if !settings.proxyHeaderPeers.isEmpty, let address = peer?.address?.unmapped,
            settings.proxyHeaderPeers.contains(where: { $0.contains(address) })
        {
            return readHeader(of: socket, from: peer)
        }
        serve(socket, from: peer)
    }

    /// Reads the PROXY protocol header first, which names the client.
    private func readHeader(of socket: SocketEvents, from peer: SocketAddress?) {
        let reader = ProxyHeaderReader(socket, from: peer) { [unowned self] reader, outcome in
            headerReaders[ObjectIdentifier(reader)] = nil
            switch outcome {
            case .client(let client): serve(reader.socket, from: client ?? reader.peer)
            case .refused(let reason?): onHeaderFailure?(reader.peer, reason)
            case .refused(nil): break
            }
            tellIfEmpty()
        }
        headerReaders[ObjectIdentifier(reader)] = reader
        reader.start(dueNanoseconds: transport.loop.now.nanoseconds &+ settings.handshakeTimeout.nanoseconds)
    }

    private func serve(_ socket: SocketEvents, from peer: SocketAddress?) {
        guard let tls = settings.tls else { return serveConnection(socket, nil, peer) }
        guard let way = transport.tlsSocket,
            let session = TlsSession(server: tls, socket: way, descriptor: socket.descriptor)
        else { return socket.close() }
        let handshake = TlsHandshake(
            socket: socket, session: session, isServer: true, peer: peer?.unmapped, owner: self)
        handshakes[ObjectIdentifier(handshake)] = (handshake, nil)
        handshake.start(
            dueNanoseconds: transport.loop.now.nanoseconds &+ settings.handshakeTimeout.nanoseconds)
    }

    /// Serves a connection.
    private func serveConnection(_ socket: SocketEvents, _ tls: TlsSession?, _ peer: SocketAddress?) {
        admit(Http1DownstreamConnection(transport: transport, socket: socket, tls: tls, peer: peer, source: self))
    }

    private func admit(_ connection: any DownstreamConnection) {
        counters?.accepted += 1
        hold(connection)
    }

    /// Holds a connection until it closes.
    func hold(_ connection: any DownstreamConnection) {
        connections[ObjectIdentifier(connection)] = connection
        if isDraining { connection.drain(idleFor: drainNanoseconds) }
    }

    /// Holds a connection inside a tunnel. `outer` is the connection that carries the tunnel, if that one is counted.
    func hold(_ connection: any DownstreamConnection, inside outer: ConnectionFacts?) {
        if let outer { addInnerEnd(ObjectIdentifier(connection), of: ObjectIdentifier(outer)) }
        hold(connection)
    }

    /// Releases a connection whose socket another connection, or a handshake, has taken over.
    func letGo(_ connection: any DownstreamConnection) {
        connections[ObjectIdentifier(connection)] = nil
        removeInnerEnd(ObjectIdentifier(connection))
    }

    /// A handshake began in a tunnel, which is retained until the handshake ends.
    func began(_ handshake: TlsHandshake, in tunnel: any TlsHandshakeOwner, inside outer: ConnectionFacts?) {
        if let outer { addInnerEnd(ObjectIdentifier(handshake), of: ObjectIdentifier(outer)) }
        handshakes[ObjectIdentifier(handshake)] = (handshake, tunnel)
    }

    /// A handshake in a tunnel ended.
    func ended(_ handshake: TlsHandshake) {
        handshakes[ObjectIdentifier(handshake)] = nil
        removeInnerEnd(ObjectIdentifier(handshake))
    }

    // MARK: Inner ends

    /// Whether one more tunnel may be intercepted on a connection. The limit is the maximum number of its streams, because ends may
    /// outlive their streams.
    func mayJoinTunnel(on connection: ConnectionFacts) -> Bool {
        innerCounts[ObjectIdentifier(connection), default: 0] < Int(Http2Session.mostStreams)
    }

    private func addInnerEnd(_ end: ObjectIdentifier, of connection: ObjectIdentifier) {
        guard innerEnds.updateValue(connection, forKey: end) == nil else { return }
        innerCounts[connection, default: 0] += 1
    }

    private func removeInnerEnd(_ end: ObjectIdentifier) {
        guard !innerEnds.isEmpty, let connection = innerEnds.removeValue(forKey: end) else { return }
        let left = innerCounts[connection, default: 0] - 1
        innerCounts[connection] = left > 0 ? left : nil
    }

    /// The default time that an idle connection waits for a request while its listener drains.
    public static let usualIdle = Duration.milliseconds(500)

    /// Ends keep-alive: exchanges finish. Each connection closes after its next response, or after being idle for `idle`.
    public func drain(idleFor idle: Duration = LoopListener.usualIdle) {
        isDraining = true
        drainNanoseconds = idle.nanoseconds
        for connection in connections.values { connection.drain(idleFor: drainNanoseconds) }
        // A tunnel in its handshake has no exchange to finish.
        for (handshake, tunnel) in handshakes.values where tunnel != nil { handshake.close() }
        closeHeaderReaders()
        tellIfEmpty()
    }

    /// Closes everything now.
    public func closeAll() {
        isStopped = true
        for connection in connections.values { connection.failed(0) }
        for (handshake, _) in handshakes.values { handshake.close() }
        closeHeaderReaders()
        spare = []
    }

    private func closeHeaderReaders() {
        for reader in headerReaders.values { reader.close() }
        headerReaders = [:]
    }

    func makeReceiver(for sink: any ResponseSink, of connection: any DownstreamConnection) -> any RequestReceiver {
        makeDriver(for: sink, connection.facts)
    }

    /// Returns a driver that is ready for an exchange and answers to the sink.
    func makeDriver(for sink: any ResponseSink, _ facts: consuming ConnectionFacts) -> ExchangeDriver {
        let driver = takeSpare() ?? ExchangeDriver(server: self)
        driver.prepare(sink: sink, connection: facts)
        return driver
    }

    /// Makes this client send the upstream calls, in place of the loop's connections. Call this before the first request.
    public func call(through client: any HttpClient) { connector = ClientConnector(client, transport: transport) }

    @inline(__always)
    private func takeSpare() -> ExchangeDriver? {
        guard let driver = spare.popLast() else { return nil }
        surplus.shrank(to: spare.count)
        return driver.isExchangeHeld ? nil : driver
    }

    func recycle(_ driver: ExchangeDriver) {
        // A driver retains its listener: after an update or a stop, none is kept.
        guard driver.generation == generation, !isStopped else { return }
        spare.append(driver)
        guard spare.count > LoopListener.mostSpare, !surplus.isWatched else { return }
        surplus.beginWindow(idle: spare.count)
        freeSurplus(after: IdleSurplus.window)
    }

    /// Frees drivers beyond `mostSpare` that no exchange needed, after a while, and again until the limit holds.
    private func freeSurplus(after duration: Duration) {
        transport.loop.schedule(after: duration) { [weak self] in
            guard let self else { return }
            switch surplus.step(idle: spare.count, most: LoopListener.mostSpare) {
            case .rest: break
            case .close(let count, let next):
                spare.removeFirst(count)
                freeSurplus(after: next)
            }
        }
    }

    func replaced(_ connection: any DownstreamConnection, by other: any DownstreamConnection) {
        connections[ObjectIdentifier(connection)] = nil
        connections[ObjectIdentifier(other)] = other
        if let outer = innerEnds[ObjectIdentifier(connection)] {
            addInnerEnd(ObjectIdentifier(other), of: outer)
            removeInnerEnd(ObjectIdentifier(connection))
        }
        if isDraining { other.drain(idleFor: drainNanoseconds) }
    }

    func closed(_ connection: any DownstreamConnection) {
        connections[ObjectIdentifier(connection)] = nil
        removeInnerEnd(ObjectIdentifier(connection))
        tellIfEmpty()
    }

    /// Calls `onEmpty` if a draining listener has no connection left.
    func tellIfEmpty() { if isDraining, connections.isEmpty, handshakes.isEmpty, headerReaders.isEmpty { onEmpty?() } }
}

extension LoopListener: TlsHandshakeOwner {
    func handshakeDone(_ handshake: TlsHandshake) {
        ended(handshake)
        if handshake.session.wasChallenge {
            handshake.session.shutdown()
            handshake.socket.close()
            return tellIfEmpty()
        }
        switch handshake.session.applicationProtocol {
        case .http11, nil: serveConnection(handshake.socket, handshake.session, handshake.peer)
        case .h2:
            let connection = Http2DownstreamConnection(
                transport: transport, socket: handshake.socket, tls: handshake.session, peer: handshake.peer,
                source: self)
            admit(connection)
            connection.start(UnsafeRawBufferPointer(start: nil, count: 0))
        }
    }

    func handshakeFailed(_ handshake: TlsHandshake, _ fault: TlsFault) { onHandshakeFailure?(handshake.peer, fault) }

    func handshakeClosed(_ handshake: TlsHandshake) {
        ended(handshake)
        tellIfEmpty()
    }
}
