import Capturing
import GatewayConfig
import HttpWare

/// One loop of the gateway, on its own thread: its listeners' sockets, connections and pools.
///
/// Unchecked: everything but `loop` is used on the loop's thread only, through `loop.submit` and `loop.execute`.
final class Worker: @unchecked Sendable {
    /// The form of a listener for one loop.
    struct Listener: Sendable {
        /// The number of its socket. If the loop has that socket already, it is kept.
        let socket: Int
        /// The loop's own descriptor of a new socket, which it takes over.
        let descriptor: Int32?
        let definition: ListenerDefinition
        /// Used on this loop only, so that its reference count is not shared.
        let router: any ExchangeRouter
        /// The rules for reading tunnels; `nil` if no tunnels are read.
        let intercept: InterceptRules?
        let mostConnections: Int
    }

    let loop: EventLoop
    private var transport: LoopTransport?
    /// The acceptors by the number of their socket.
    private var acceptors: [Int: Acceptor] = [:]
    /// Further sockets of the first listener, whose connections enter it otherwise.
    private var entrances: [Acceptor] = []
    /// The servers without a socket; their connections finish their exchanges.
    private var leaving: [LoopListener] = []
    /// Called once, when the last of these servers is gone.
    private var whenEmpty: (() -> Void)?
    /// The monitors of services' endpoints; on one loop only.
    private var monitors: [EndpointMonitor] = []
    private let log: GatewayLog
    /// The ring for records of its exchanges; `nil` if they are not observed.
    private var records: RecordRing?
    /// The observer of token placeholders that are sent where they must not go; `nil` if no program has placeholders.
    private var placeholders: (any PlaceholderWatch)?
    /// Captures the loop's exchanges; `nil` if exchanges are not captured.
    private var captures: LoopCaptures?
    /// The wares of temporary rules and of maintenance; `nil` if there are none.
    private var addedWares: AddedWares?
    /// The counters of each listener; empty if they are not needed. A server that ends leaves its numbers here.
    private var counters: [String: ExchangeCounters] = [:]

    init(name: String, log: GatewayLog) throws {
        self.log = log
        loop = try EventLoop.start(name: name)
    }

    /// Makes the objects that the loop's connections share.
    func prepare() throws {
        transport = LoopTransport(loop: loop, resolver: try Resolver(loop: loop))
    }

    /// Serves these listeners from now on, in place of the former ones. This is one step, because nothing else runs on the loop
    /// meanwhile.
    ///
    /// Sockets that stay are not changed. A socket that is removed accepts the waiting connections and is closed; its connections
    /// finish. Connections upstream are closed, except those to these endpoints.
    ///
    /// Names are looked up again when they are next needed. Exchanges are kept in `records`, and counted if `isCounted`. If `watches`, this loop monitors the endpoints for all loops.
    func serve(
        _ listeners: [Listener], services: [UpstreamService], watches: Bool, records: RecordRing?, isCounted: Bool,
        placeholders: (any PlaceholderWatch)?, captures: CaptureStore?, names: ResolverDefinition
    ) {
        guard let transport else { return }
        transport.resolver?.longestUse = names.maxTtl
        // A reload that changes nothing is still a reason to look names up again.
        transport.refreshNames()
        self.records = records
        self.placeholders = placeholders
        if captures !== self.captures?.store { self.captures = captures.map { LoopCaptures($0, loop: loop) } }
        count(isCounted ? listeners.map(\.definition.name) : [])
        for listener in listeners {
            if let descriptor = listener.descriptor {
                open(descriptor, listener, transport)
            } else if let acceptor = acceptors[listener.socket] {
                change(acceptor, to: listener, transport)
            }
        }
        let kept = Set(listeners.map(\.socket))
        for (socket, acceptor) in acceptors where !kept.contains(socket) {
            acceptors[socket] = nil
            acceptor.close()
            leave(acceptor.server)
        }
        transport.retirePools(except: services.flatMap { $0.endpoints + $0.reachable })
        if watches { watch(services, transport) }
    }

    /// Also accepts connections on this descriptor, for the server of the only listener; `enter` passes them to it. The descriptor is closed if
    /// there are more listeners, or none.
    func accept(on descriptor: Int32, _ enter: @escaping (LoopListener, Int32, SocketAddress) -> Void) {
        guard let acceptor = Array(acceptors.values).only else { return Socket.close(descriptor) }
        entrances.append(
            Acceptor(
                descriptor: descriptor, loop: loop, server: acceptor.server,
                mostConnections: acceptor.mostConnections,
                descriptorEnd: Acceptor.descriptorShare(of: Socket.mostDescriptors), enter: enter,
                reports: { [log] in log.write(.warning, $0) }))
    }

    /// Keeps an object that `make` makes on the loop's thread until the loop ends. `number` is its own.
    func keep(_ number: Int, _ make: (EventLoop) -> any LoopGuest) { transport?.guests[number] = make(loop) }

    /// Monitors the endpoints of these services, and of no others.
    private func watch(_ services: [UpstreamService], _ transport: LoopTransport) {
        for monitor in monitors where !services.contains(where: { monitor.follows($0) }) { monitor.stop() }
        monitors.removeAll { monitor in !services.contains { monitor.follows($0) } }
        for monitor in monitors { monitor.lookAgain() }
        for service in services where !monitors.contains(where: { $0.follows(service) }) {
            guard let monitor = EndpointMonitor(service, transport: transport) else { continue }
            monitors.append(monitor)
            monitor.start()
        }
    }

    private func count(_ names: [String]) {
        let leaving = names.isEmpty ? [] : leaving.map(\.name)
        counters = counters.filter { names.contains($0.key) || leaving.contains($0.key) }
        for name in names where counters[name] == nil { counters[name] = ExchangeCounters() }
    }

    private func open(_ descriptor: Int32, _ listener: Listener, _ transport: LoopTransport) {
        acceptors[listener.socket] = Acceptor(
            descriptor: descriptor, loop: loop, server: makeServer(listener, transport),
            mostConnections: listener.mostConnections,
            descriptorEnd: Acceptor.descriptorShare(of: Socket.mostDescriptors),
            reports: { [log] in log.write(.warning, $0) })
    }

    private func change(_ acceptor: Acceptor, to listener: Listener, _ transport: LoopTransport) {
        acceptor.mostConnections = listener.mostConnections
        acceptor.server.records = records
        acceptor.server.placeholders = placeholders
        acceptor.server.taps = captures
        acceptor.server.addedWares = addedWares
        acceptor.server.counters = counters[listener.definition.name]
        let definition = listener.definition
        let settings = ServerSettings(definition)
        if settings.isForward == acceptor.server.settings.isForward {
            acceptor.server.update(
                name: definition.name, settings: settings, forward: ForwardRules(definition),
                intercept: listener.intercept, trustedProxies: definition.trustedProxies, router: listener.router)
        } else {
            // A connection of a gateway cannot become one of a proxy.
            let former = acceptor.server
            acceptor.server = makeServer(listener, transport)
            leave(former)
        }
    }

    private func makeServer(_ listener: Listener, _ transport: LoopTransport) -> LoopListener {
        let definition = listener.definition
        let server = LoopListener(
            name: definition.name, transport: transport, settings: ServerSettings(definition),
            forward: ForwardRules(definition), intercept: listener.intercept,
            trustedProxies: definition.trustedProxies, bindAddress: definition.bind, router: listener.router)
        server.records = records
        server.counters = counters[definition.name]
        server.placeholders = placeholders
        server.taps = captures
        server.addedWares = addedWares
        server.onFailure = { [log] exchange in
            guard let failure = exchange.failure else { return }
            let place = [exchange.route, exchange.service, exchange.upstreamAddress].compactMap(\.self).joined(
                separator: " → ")
            switch failure.side {
            case .downstream: log.write(.debug, "\(exchange.listener): \(failure.reason)")
            case .upstream: log.write(.warning, "\(exchange.listener): \(place): \(failure.reason)")
            case .gateway:
                // Offline, a ware decided that nothing is sent: that is an answer, not a fault.
                let isExpected = failure.fault == .noRoute || exchange.isOffline
                log.write(isExpected ? .debug : .error, "\(exchange.listener): \(failure.reason)")
            }
        }
        server.onHandshakeFailure = { [log, name = definition.name] peer, fault in
            log.write(.debug, "\(name): the TLS handshake with \(peer.map { "\($0)" } ?? "a client"): \(fault)")
        }
        server.onHeaderFailure = { [log, name = definition.name] peer, reason in
            log.write(
                .notice, "\(name): \(peer.map { "\($0)" } ?? "a proxy") sent \(reason); the connection was closed")
        }
        server.onInterceptFailure = { [log, name = definition.name] host, peer, fault, outcome in
            let client = peer.map { "\($0)" } ?? "a client"
            switch outcome {
            case .failed: log.write(.debug, "\(name): the TLS handshake with \(client) for \(host): \(fault)")
            case .refused: log.write(.notice, "\(name): \(client) refused the certificate for \(host): \(fault)")
            case .refusedByOne:
                log.write(
                    .notice,
                    "\(name): \(client) refused the certificate for \(host): \(fault); its tunnels stay read, because the same address accepted it before (intercept.except lets them pass unread)"
                )
            case .tunnelled:
                log.write(
                    .warning,
                    "\(name): \(client) refused the certificate for \(host): \(fault); its tunnels to \(host) pass unread from now on (intercept.passPinned; \(ProgramName.text) unread shows and ends this)"
                )
            }
        }
        return server
    }

    /// Uses these rules, and maintenance, in place of the former ones.
    func use(_ rules: [GatewayRules.Active], _ maintenance: Maintenance?) {
        addedWares = AddedWares(rules, maintenance)
        for server in acceptors.values.map(\.server) + leaving { server.addedWares = addedWares }
    }

    /// Lets a server's connections finish, and then releases it.
    private func leave(_ server: LoopListener, idleFor idle: Duration = LoopListener.usualIdle) {
        leaving.append(server)
        server.onEmpty = { [unowned self, unowned server] in
            guard let index = leaving.firstIndex(where: { $0 === server }) else { return }
            withExtendedLifetime(leaving.remove(at: index)) { $0.closeAll() }
            if leaving.isEmpty { whenEmpty.take()?() }
        }
        server.drain(idleFor: idle)
    }

    /// Stops accepting, and lets exchanges finish. Idle connections wait for a request for at most `idle`. `done` is called on
    /// the loop when no connection is left.
    func drain(idleFor idle: Duration, _ done: @escaping @Sendable () -> Void) {
        closeEntrances()
        for acceptor in acceptors.values { acceptor.close() }
        let servers = acceptors.values.map(\.server)
        acceptors = [:]
        for server in servers { leave(server, idleFor: idle) }
        if leaving.isEmpty { done() } else { whenEmpty = done }
    }

    /// Repeats a captured request at the listener that received it. An exchange from an archive, which no listener received,
    /// enters at a forward listener, or else at the only listener.
    func replay(_ order: ReplayedExchange.Order, listener name: String) throws(GatewayError) {
        let servers = acceptors.values.map(\.server).sorted { $0.name < $1.name }
        let server =
            servers.first { $0.name == name }
            ?? (name != CaptureStore.importListener ? nil : servers.first(where: \.settings.isForward) ?? servers.only)
        guard let server else {
            throw GatewayError(.gateway, .requestDenied, "the listener \(name) does not exist any more")
        }
        try ReplayedExchange.start(order, on: server)
    }

    /// The current numbers, and the counters so far.
    var numbers: LoopNumbers {
        var listeners: [String: LoopNumbers.Listener] = [:]
        for (name, counters) in counters {
            listeners[name] = LoopNumbers.Listener(accepted: counters.accepted, series: counters.all)
        }
        for server in acceptors.values.map(\.server) + leaving {
            listeners[server.name]?.connections += server.connectionCount
            listeners[server.name]?.busy += server.busyCount
        }
        return LoopNumbers(
            listeners: listeners, pools: transport?.poolNumbers ?? [], connects: transport?.connects ?? 0,
            failedConnects: transport?.failedConnects ?? 0)
    }

    private func closeEntrances() {
        for entrance in entrances { entrance.close() }
        entrances = []
    }

    /// Closes everything now.
    func close() {
        closeEntrances()
        for acceptor in acceptors.values {
            acceptor.close()
            acceptor.server.closeAll()
        }
        for server in leaving { server.closeAll() }
        for monitor in monitors { monitor.stop() }
        monitors = []
        transport?.closeIdle()
    }
}

extension Array {
    /// The only element; `nil` if there are none or several.
    fileprivate var only: Element? { count == 1 ? first : nil }
}

extension ServerSettings {
    /// The settings of a listener's definition for its connections.
    init(_ listener: ListenerDefinition) {
        self.init()
        limits.head = listener.limits.head.bytes
        limits.fieldLines = listener.limits.fieldLines
        limits.requestTarget = listener.limits.requestTarget.bytes
        headTimeout = listener.limits.headTimeout
        idleTimeout = listener.limits.idleTimeout
        bodyMinRate = listener.limits.bodyMinRate.map { max(1, $0.count / $0.period.seconds) }
        isForward = listener.mode == .forward
        if listener.socks {
            let asks = listener.chain.entries.middlewares.contains { $0.ware is any AuthenticatingWare }
            socks = asks ? .withPassword : .open
        }
        speaksHttp2 = listener.http2
        proxyHeaderPeers = listener.proxyHeaderPeers
        refusesAmbiguousPaths = listener.refusesAmbiguousPaths
        tls = listener.tls?.context
        if let tls = listener.tls { handshakeTimeout = tls.handshakeTimeout }
    }
}

extension ForwardRules {
    /// The settings of a listener's definition for the destinations of its clients.
    init(_ listener: ListenerDefinition) {
        self.init()
        connectPorts = listener.connectPorts.compactMap { UInt16(exactly: $0) }
        deniesPrivate = listener.denyPrivate
        deniesMetadata = listener.deniesMetadata
        upstreamProxy = listener.upstreamProxy
        // Without interception, every tunnel would pass unread.
        if listener.hasPlaceholders || listener.jail != nil {
            unreadHosts = listener.intercept?.allowOpaque ?? .init([])
        }
    }
}
