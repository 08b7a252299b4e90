import Glibc

/// Makes one connection to an endpoint: resolves its addresses, tries them one after another, and performs the TLS handshake if
/// the endpoint needs one, within one deadline.
///
/// If all addresses of a name fail, or a connection takes longer than usual, the name is looked up again: a server may have moved.
///
/// It keeps itself alive until it has answered. Used on its loop's thread only.
final class Connector: SocketEventHandler, LoopTimerHandler {
    /// The start of each step, in nanoseconds of the loop's clock.
    struct Times {
        var resolveStarted: Int64 = 0
        var connectStarted: Int64 = 0
        var connected: Int64 = 0
        /// The end of the TLS handshake; 0 without one.
        var secured: Int64 = 0
    }

    /// An established connection.
    struct Link {
        let socket: SocketEvents
        /// TLS with the origin server, or with the upstream proxy that takes its requests; `nil` without TLS.
        let tls: TlsSession?
        /// Whether the connection speaks HTTP/2.
        let isHttp2: Bool
    }

    typealias Completion = (Result<Link, GatewayError>, Times) -> Void

    private let loop: EventLoop
    private let resolver: Resolver?
    private let endpoint: Endpoint
    /// The versions that the connection may speak.
    private let version: Endpoint.Version
    private var addresses: ArraySlice<SocketAddress> = []
    /// The name that was looked up, and all of its addresses so far; `nil` if the addresses were given.
    private var name: (host: String, port: UInt16)?
    private var known: [SocketAddress] = []
    /// Whether the name was looked up again.
    private var hasLookedAgain = false
    private var ends: LoopInstant
    private var socket: SocketEvents?
    private var handshake: TlsHandshake?
    /// TLS with the upstream proxy, which carries everything after it; `nil` before it is established, or without it.
    private var carrier: TlsSession?
    private var proxyHandshake: ProxyHandshake?
    private let timer: LoopTimer
    private var completion: Completion?
    private var lastError = GatewayError(.upstream, .destinationUnavailable, "no address to connect to", mayRetry: true)
    private var times = Times()
    private var ownReference: Connector?

    private init(
        _ endpoint: Endpoint, speaking version: Endpoint.Version, loop: EventLoop, resolver: Resolver?,
        completion: @escaping Completion
    ) {
        self.loop = loop
        self.resolver = resolver
        self.endpoint = endpoint
        self.version = version
        self.completion = completion
        ends = loop.now
        timer = LoopTimer(loop: loop)
    }

    /// The time after which a connection takes longer than usual: the first packet was probably lost, or no host has the address.
    static let slowness = Duration.milliseconds(1_100)

    /// Connects. Calls `completion` once, immediately or later, on the loop's thread.
    static func connect(
        to endpoint: Endpoint, speaking version: Endpoint.Version, loop: EventLoop, resolver: Resolver?,
        timeout: Duration, completion: @escaping Completion
    ) {
        let connector = Connector(
            endpoint, speaking: version, loop: loop, resolver: resolver, completion: completion)
        connector.ownReference = connector  // released by answerCaller(_:)
        connector.timer.handler = connector
        connector.ends = loop.now + timeout
        if (loop.transport as? LoopTransport)?.standInClient != nil {
            connector.lastError = GatewayError(
                .upstream, .destinationUnavailable, "\(endpoint.name) is not connected to in a test run")
            return connector.answerCaller(.failure(connector.lastError))
        }
        connector.timer.set(after: min(timeout, Connector.slowness))
        connector.start()
    }

    private func start() {
        times.resolveStarted = loop.now.nanoseconds
        if let hop = endpoint.key.hop { return judge { self.find(hop) } }
        if !endpoint.isNamed { return found(endpoint.addresses) }
        guard let resolver else { return answerCaller(.failure(lastError)) }
        name = (endpoint.key.host, endpoint.key.port)
        resolver.resolve(endpoint.key.host, port: endpoint.key.port) { result in
            switch result {
            case .success(let addresses): self.found(addresses)
            case .failure(let error):
                let fault: GatewayError.Fault = error == .timeout ? .dnsTimeout : .dnsError
                self.answerCaller(.failure(GatewayError(.upstream, fault, "\(error)", mayRetry: true)))
            }
        }
    }

    /// Checks the host against denied addresses, although the upstream proxy resolves its name.
    private func judge(_ next: @escaping () -> Void) {
        if endpoint.addresses.contains(where: endpoint.denies) {
            return answerCaller(.failure(Connector.denied(endpoint)))
        }
        guard endpoint.key.deniesPrivate else { return next() }
        let host = endpoint.key.host
        if Authority.isLocal(host) { return answerCaller(.failure(Connector.denied(endpoint))) }
        guard endpoint.isNamed, let resolver else { return next() }
        resolver.resolve(host, port: endpoint.key.port) { result in
            if case .success(let addresses) = result, addresses.allSatisfy(\.isPrivate) {
                return self.answerCaller(.failure(Connector.denied(self.endpoint)))
            }
            next()
        }
    }

    /// Resolves the addresses of the upstream proxy, which may be private.
    private func find(_ hop: UpstreamProxy.Hop) {
        guard completion != nil else { return }
        if let address = IPAddress(hop.host) { return found([.ip(address, port: hop.port)]) }
        guard let resolver else { return answerCaller(.failure(lastError)) }
        name = (hop.host, hop.port)
        resolver.resolve(hop.host, port: hop.port) { result in
            switch result {
            case .success(let addresses): self.found(addresses)
            case .failure(let error):
                let fault: GatewayError.Fault = error == .timeout ? .dnsTimeout : .dnsError
                self.answerCaller(.failure(GatewayError(.upstream, fault, "the proxy: \(error)", mayRetry: true)))
            }
        }
    }

    /// The error for a denied address.
    static func denied(_ endpoint: Endpoint) -> GatewayError {
        GatewayError(
            .downstream, .destinationProhibited,
            endpoint.key.deniesPrivate
                ? "\(endpoint.name) has a private address, which is denied"
                : "\(endpoint.name) has the address of a cloud's metadata service, which is denied")
    }

    private func found(_ found: [SocketAddress]) {
        guard completion != nil else { return }
        known += found
        addresses = found[...]
        // Checked after resolution, so that a name cannot point to an internal address.
        if endpoint.key.deniesPrivate || endpoint.key.deniesMetadata, endpoint.key.hop == nil {
            addresses = addresses.filter { !endpoint.denies($0) }[...]
            if addresses.isEmpty {
                return answerCaller(.failure(Connector.denied(endpoint)))
            }
        }
        times.connectStarted = loop.now.nanoseconds
        tryNext()
    }

    private func tryNext() {
        carrier = nil
        while let address = addresses.popFirst() {
            switch Socket.connect(to: address) {
            case .connected(let descriptor):
                return connected(SocketEvents(loop: loop, descriptor: descriptor, handler: self))
            case .inProgress(let descriptor):
                let events = SocketEvents(loop: loop, descriptor: descriptor, handler: self)
                socket = events
                if events.enableWriting() { return }
                lastError = Connector.error(ENOMEM, endpoint)
            case .failed(let code):
                lastError = Connector.error(code, endpoint)
            }
        }
        endpoint.moves?.note(at: loop.now)
        lookAgain { found in
            if found.isEmpty { self.answerCaller(.failure(self.lastError)) } else { self.found(found) }
        }
    }

    /// Looks the name up again, once. `completion` gets the addresses that were not known; none if there are none.
    private func lookAgain(_ completion: @escaping ([SocketAddress]) -> Void) {
        guard let name, let resolver, !hasLookedAgain else { return completion([]) }
        hasLookedAgain = true
        resolver.otherAddresses(than: known, of: name.host, port: name.port, completion: completion)
    }

    /// The connection takes longer than usual. If the name has other addresses by now, they are tried in place of this one.
    private func isSlow() {
        guard socket != nil else { return }
        endpoint.moves?.note(at: loop.now)
        lookAgain { found in
            guard !found.isEmpty, self.completion != nil, let socket = self.socket else { return }
            self.socket = nil
            socket.close()
            self.found(found)
        }
    }

    func socketReadable() {}

    func socketWritable() {
        guard let socket else { return }
        let code = Socket.pendingError(socket.descriptor)
        self.socket = nil
        if code == 0 {
            socket.disableWriting()
            connected(socket)
        } else {
            socket.close()
            lastError = Connector.error(code, endpoint)
            tryNext()
        }
    }

    private func connected(_ socket: SocketEvents) {
        guard let proxy = endpoint.key.hop?.tls else { return askProxy(socket) }
        startTls(on: socket, with: proxy, offering: [.http11])
    }

    /// Whether the next handshake is with the upstream proxy.
    private var securesProxy: Bool { carrier == nil && endpoint.key.hop?.tls != nil }

    /// The peer of the next handshake, for errors.
    private var tlsPeerName: String {
        securesProxy ? endpoint.key.hop.map { "the proxy \($0.name)" } ?? endpoint.name : endpoint.name
    }

    private func startTls(on socket: SocketEvents, with peer: TlsPeer, offering protocols: [ApplicationProtocol]) {
        guard
            let session = TlsSession(
                client: peer, offering: protocols, over: carrier, descriptor: socket.descriptor)
        else {
            socket.close()
            lastError = GatewayError(
                .upstream, .tlsProtocolError, "TLS with \(tlsPeerName) cannot begin", mayRetry: true)
            return tryNext()
        }
        let handshake = TlsHandshake(socket: socket, session: session, isServer: false, owner: self)
        self.handshake = handshake
        handshake.start(dueNanoseconds: .max)  // the connector's own deadline counts
    }

    /// Asks the upstream proxy for a tunnel, if there is a proxy and a tunnel is needed.
    private func askProxy(_ socket: SocketEvents) {
        guard let hop = endpoint.key.hop, endpoint.tls != nil || endpoint.key.isTunnel else { return reached(socket) }
        let shown = endpoint.key.host.utf8.contains(0x3a) ? "[\(endpoint.key.host)]" : endpoint.key.host
        // A fixed address overrides the proxy's own resolution of the name.
        let target = endpoint.isFixed ? endpoint.addresses.first.map { "\($0)" } : nil
        let handshake = ProxyHandshake(socket, carrier, hop, to: target ?? "\(shown):\(endpoint.key.port)") { result in
            self.proxyHandshake = nil
            switch result {
            case .success(let socket): self.reached(socket)
            case .failure(let error):
                self.lastError = error
                self.tryNext()
            }
        }
        proxyHandshake = handshake
        handshake.start()
    }

    /// From now on, the bytes reach the endpoint.
    private func reached(_ socket: SocketEvents) {
        times.connected = loop.now.nanoseconds
        guard introduce(on: socket) else { return tryNext() }
        guard let peer = endpoint.tls else {
            return answerCaller(.success(Link(socket: socket, tls: carrier, isHttp2: version == .h2)))
        }
        let offered: [ApplicationProtocol] =
            switch version {
            case .auto: [.h2, .http11]
            case .h1: [.http11]
            case .h2: [.h2]
            }
        startTls(on: socket, with: peer, offering: offered)
    }

    /// Sends the PROXY protocol header, if the endpoint expects one. A new connection accepts these few bytes at once.
    private func introduce(on socket: SocketEvents) -> Bool {
        guard let header = endpoint.key.proxyProtocol?.header(endpoint.key.client) else { return true }
        let result = header.withUnsafeBytes { Socket.write(socket.descriptor, $0) }
        if result == .bytes(header.count) { return true }
        socket.close()
        if case .failed(let code) = result { lastError = Connector.error(code, endpoint) }
        return false
    }

    func timerFired(_ timer: LoopTimer) {
        if loop.now < ends {
            timer.set(after: ends - loop.now)
            return isSlow()
        }
        if times.connectStarted > 0 {
            endpoint.moves?.note(at: loop.now)
            if let name { resolver?.doubt(name.host) }
        }
        let fault: GatewayError.Fault = times.connectStarted == 0 ? .dnsTimeout : .connectionTimeout
        let what =
            times.connectStarted == 0
            ? "finding the address of \(Connector.target(of: endpoint))"
            : proxyHandshake != nil
                ? "the answer of the proxy \(endpoint.key.hop?.name ?? endpoint.name) to CONNECT"
                : handshake == nil
                    ? "connecting to \(Connector.target(of: endpoint))" : "the TLS handshake with \(tlsPeerName)"
        answerCaller(.failure(GatewayError(.upstream, fault, "\(what) took too long", mayRetry: true)))
    }

    private func answerCaller(_ result: Result<Link, GatewayError>) {
        guard let completion else {
            if case .success(let link) = result { link.socket.close() }
            return
        }
        self.completion = nil
        timer.cancel()
        socket?.close()
        socket = nil
        let handshake = self.handshake
        self.handshake = nil
        handshake?.close()
        proxyHandshake?.close()
        proxyHandshake = nil
        completion(result, times)
        ownReference = nil
    }

    /// The peer of the connection, for errors: the upstream proxy if there is one.
    private static func target(of endpoint: Endpoint) -> String {
        endpoint.key.hop.map { "the proxy \($0.name)" } ?? endpoint.name
    }

    private static func error(_ code: Int32, _ endpoint: Endpoint) -> GatewayError {
        let text = String(cString: strerror(code)).lowercased()
        let reason = "connecting to \(target(of: endpoint)): \(text)"
        switch code {
        case ECONNREFUSED, ENOENT: return GatewayError(.upstream, .connectionRefused, reason, mayRetry: true)
        case ETIMEDOUT: return GatewayError(.upstream, .connectionTimeout, reason, mayRetry: true)
        case EMFILE, ENFILE, EADDRNOTAVAIL:
            return GatewayError(.upstream, .connectionLimitReached, reason, mayRetry: true)
        default: return GatewayError(.upstream, .destinationUnavailable, reason, mayRetry: true)
        }
    }
}

extension Connector: TlsHandshakeOwner {
    func handshakeDone(_ handshake: TlsHandshake) {
        self.handshake = nil
        if securesProxy {
            carrier = handshake.session
            return askProxy(handshake.socket)
        }
        times.secured = loop.now.nanoseconds
        // The server chose one of the offered protocols, or none: OpenSSL accepts no other.
        let isHttp2 = handshake.session.applicationProtocol == .h2
        if version == .h2, !isHttp2 {
            handshake.socket.close()
            let reason = "\(endpoint.name) does not agree to HTTP/2"
            return answerCaller(.failure(GatewayError(.upstream, .tlsProtocolError, reason, mayRetry: true)))
        }
        answerCaller(.success(Link(socket: handshake.socket, tls: handshake.session, isHttp2: isHttp2)))
    }

    func handshakeFailed(_ handshake: TlsHandshake, _ fault: TlsFault) {
        let name: GatewayError.Fault =
            switch fault.kind {
            case .certificate: .tlsCertificateError
            case .alert: .tlsAlertReceived
            case .truncated, .broken: .connectionTerminated
            case .material, .plainHttp, .protocolError: .tlsProtocolError
            }
        lastError = GatewayError(
            .upstream, name, "the TLS handshake with \(tlsPeerName): \(fault.reason)", mayRetry: true)
    }

    func handshakeClosed(_ handshake: TlsHandshake) {
        guard self.handshake === handshake else { return }
        self.handshake = nil
        tryNext()
    }
}
