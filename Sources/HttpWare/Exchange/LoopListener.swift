/// One loop's part of a listener: its connections and their exchanges. Used on the loop's thread only.
public final class LoopListener: ExchangeSource {
    /// The listener's name.
    public private(set) var name: String
    let transport: LoopTransport
    /// Where streams to origin servers come from: the loop's transport, unless a test puts a script in its place.
    var connector: any UpstreamConnector
    public private(set) var settings: ServerSettings
    public private(set) var forward: ForwardRules
    /// Which tunnels are read; `nil` where none is.
    public private(set) var intercept: InterceptRules?
    public private(set) var trustedProxies: [IPNetwork]
    /// Where the listener is bound, unless that is a wildcard address or the system chose the port.
    let bindAddress: SocketAddress?
    /// Only this host reaches the listener.
    let isBoundToLoopback: Bool
    var limits: HeadLimits { settings.limits }
    var headNanoseconds: Int64 { settings.headTimeout.nanoseconds }
    var idleNanoseconds: Int64 { settings.idleTimeout.nanoseconds }
    var bodyMinRate: Int? { settings.bodyMinRate }
    var isForward: Bool { settings.isForward }
    /// Chooses plans.
    public private(set) var router: any ExchangeRouter
    /// Counts updates: a driver of an earlier one holds a plan that is over, and is not used again.
    private(set) var generation = 0
    public private(set) var isDraining = false
    /// Where ended exchanges are kept for those who look; `nil` where nobody can.
    public var records: RecordRing?
    /// Gives taps to exchanges; `nil` if nobody wants to see what passes.
    public var taps: (any ExchangeTapSource)?
    /// Wares that are in every chain for a while; `nil` if there are none.
    public var addedWares: AddedWares? {
        didSet { counters?.forgetPlans() }
    }
    /// Counts connections and exchanges, if anybody wants to know.
    public var counters: ExchangeCounters?
    /// Called with each exchange that failed, when it has ended.
    public var onFailure: ((Exchange) -> Void)?
    /// Is told of placeholders that go where they do not belong; requests are searched for them while this is set.
    public var placeholders: (any PlaceholderWatch)?
    /// Called when the last connection has gone.
    public var onEmpty: (() -> Void)?

    /// Called with each TLS handshake that failed: who the client was, and why.
    public var onHandshakeFailure: ((SocketAddress?, TlsFault) -> Void)?

    /// Called with each connection that was closed because of its header of the PROXY protocol: which proxy made it, and why.
    public var onHeaderFailure: ((SocketAddress?, String) -> Void)?

    /// What a handshake that failed inside a tunnel tells of the client.
    public enum InterceptFailure: Sendable {
        case failed
        /// It refused the certificate.
        case refused
        /// The same, so often that the host is tunnelled for it from now on.
        case tunnelled
    }

    /// Called with each TLS handshake that failed inside a tunnel: for which host, who the client was, and why.
    public var onInterceptFailure: ((String, SocketAddress?, TlsFault, InterceptFailure) -> Void)?

    /// This loop's views of the endpoints of services, and the one used last.
    private var seats: [ObjectIdentifier: BalancerSeat] = [:]
    private var lastSeat: BalancerSeat?

    private var connections: [ObjectIdentifier: any DownstreamConnection] = [:]
    /// With the tunnel that a handshake is in, which nobody else holds.
    private var handshakes: [ObjectIdentifier: (handshake: TlsHandshake, tunnel: InterceptedTunnel?)] = [:]
    /// Connections of proxies that have not said yet who is behind them.
    private var headerReaders: [ObjectIdentifier: ProxyHeaderReader] = [:]
    /// Inner ends of tunnels that came on connections which are counted themselves, each with that connection.
    private var innerEnds: [ObjectIdentifier: ObjectIdentifier] = [:]
    /// How many of them each of these connections has.
    private var innerCounts: [ObjectIdentifier: Int] = [:]
    private var spare: [ExchangeDriver] = []
    private var surplus = IdleSurplus()
    /// How many exchanges run without a client.
    var backgroundCount = 0
    private var isStopped = false
    /// Set when the listener drains: how long a connection may wait for a request.
    private var drainNanoseconds: Int64 = 0
    private static let mostSpare = 256
    private static let mostBackground = 256

    /// Whether another exchange may run without a client.
    var mayRunInBackground: Bool { backgroundCount < LoopListener.mostBackground && !isStopped }

    public init(
        name: String, transport: LoopTransport, settings: ServerSettings = ServerSettings(),
        forward: ForwardRules = ForwardRules(), intercept: InterceptRules? = nil, trustedProxies: [IPNetwork] = [],
        bindAddress: SocketAddress? = nil,
        router: any ExchangeRouter
    ) {
        self.name = name
        isBoundToLoopback = bindAddress?.isLoopback ?? false
        self.transport = transport
        connector = transport
        self.settings = settings
        self.forward = forward
        self.intercept = intercept
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

    /// How many connections clients have, with those that make their TLS handshake, or tell first who the client is.
    public var connectionCount: Int { connections.count + handshakes.count + headerReaders.count - innerEnds.count }

    /// How many connections have a request under way, or a part of its head. Looks at each connection.
    public var busyCount: Int { connections.values.count { !$0.isIdle } }

    /// Goes by these from now on: requests that come, on new connections and on those that are there. Exchanges under way
    /// finish on the plan that they began with. Reverse or forward, and the address, stay: those are another listener's.
    public func update(
        name: String, settings: ServerSettings, forward: ForwardRules, intercept: InterceptRules? = nil,
        trustedProxies: [IPNetwork], router: any ExchangeRouter
    ) {
        precondition(settings.isForward == self.settings.isForward, "a listener keeps its mode")
        self.name = name
        self.settings = settings
        self.forward = forward
        self.intercept = intercept
        self.trustedProxies = trustedProxies
        self.router = router
        generation += 1
        counters?.forgetPlans()
        addedWares?.forgetPlans()
        // Those that are needed are made anew; the others are those of services that are gone.
        seats = [:]
        lastSeat = nil
        spare = []
    }

    /// Takes over a connection that was accepted.
    public func accept(_ descriptor: Int32, from peer: SocketAddress?) {
        let socket = SocketEvents(loop: transport.loop, descriptor: descriptor)
        if !settings.proxyHeaderPeers.isEmpty, let address = peer?.address?.unmapped,
            settings.proxyHeaderPeers.contains(where: { $0.contains(address) })
        {
            return readHeader(of: socket, from: peer)
        }
        serve(socket, from: peer)
    }

    /// Lets the proxy say first who its client is.
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

    /// Holds a connection until it is closed.
    func hold(_ connection: any DownstreamConnection) {
        connections[ObjectIdentifier(connection)] = connection
        if isDraining { connection.drain(idleFor: drainNanoseconds) }
    }

    /// Holds a connection in a tunnel.
    func hold(_ connection: any DownstreamConnection, in tunnel: InterceptedTunnel) {
        if tunnel.isInner { addInnerEnd(ObjectIdentifier(connection), of: ObjectIdentifier(tunnel.outer)) }
        hold(connection)
    }

    /// Another connection, or a handshake, goes on with the socket of this one.
    func letGo(_ connection: any DownstreamConnection) {
        connections[ObjectIdentifier(connection)] = nil
        removeInnerEnd(ObjectIdentifier(connection))
    }

    /// A handshake began in a tunnel.
    func began(_ handshake: TlsHandshake, in tunnel: InterceptedTunnel) {
        if tunnel.isInner { addInnerEnd(ObjectIdentifier(handshake), of: ObjectIdentifier(tunnel.outer)) }
        handshakes[ObjectIdentifier(handshake)] = (handshake, tunnel)
    }

    /// It has ended.
    func ended(_ handshake: TlsHandshake) {
        handshakes[ObjectIdentifier(handshake)] = nil
        removeInnerEnd(ObjectIdentifier(handshake))
    }

    // MARK: Inner ends

    /// Whether one more tunnel may be read on a connection: as many as it may have streams, for ends may outlive their streams.
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

    /// How long a connection waits for a request when its listener goes.
    public static let usualIdle = Duration.milliseconds(500)

    /// Ends keep-alive: exchanges finish, each connection closes behind its next response, or after being idle for so long.
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

    /// A driver that is ready for an exchange, and answers to the sink.
    func makeDriver(for sink: any ResponseSink, _ facts: consuming ConnectionFacts) -> ExchangeDriver {
        let driver = takeSpare() ?? ExchangeDriver(server: self)
        driver.prepare(sink: sink, connection: facts)
        return driver
    }

    /// Lets this client make the calls upstream, in place of the loop's connections. Before the first request.
    public func call(through client: any HttpClient) { connector = ClientConnector(client, transport: transport) }

    @inline(__always)
    private func takeSpare() -> ExchangeDriver? {
        guard let driver = spare.popLast() else { return nil }
        surplus.shrank(to: spare.count)
        return driver.isExchangeHeld ? nil : driver
    }

    func recycle(_ driver: ExchangeDriver) {
        // A driver holds its server: none is left behind when that is over.
        guard driver.generation == generation, !isStopped else { return }
        spare.append(driver)
        guard spare.count > LoopListener.mostSpare, !surplus.isWatched else { return }
        surplus.beginWindow(idle: spare.count)
        freeSurplus(after: IdleSurplus.window)
    }

    /// Frees the drivers beyond `mostSpare` that no exchange needed, after a while, and again until the limit holds.
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

    /// Tells who waits for it that no connection is left.
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
