import Glibc

/// Makes one connection to an endpoint: finds its addresses, tries them one after the other, within one deadline.
///
/// It keeps itself alive until it has answered. Used on its loop's thread only.
final class Connector: SocketEventHandler, LoopTimerHandler {
    /// When each step began, in nanoseconds of the loop's clock.
    struct Times {
        var resolveStarted: Int64 = 0
        var connectStarted: Int64 = 0
        var connected: Int64 = 0
    }

    typealias Completion = (Result<Int32, GatewayError>, Times) -> Void

    private let loop: EventLoop
    private let resolver: Resolver?
    private let endpoint: Endpoint
    private var addresses: ArraySlice<SocketAddress> = []
    private var socket: SocketEvents?
    private let timer: LoopTimer
    private var completion: Completion?
    private var lastError = GatewayError(.upstream, .destinationUnavailable, "no address to connect to", mayRetry: true)
    private var times = Times()
    private var ownReference: Connector?

    private init(_ endpoint: Endpoint, loop: EventLoop, resolver: Resolver?, completion: @escaping Completion) {
        self.loop = loop
        self.resolver = resolver
        self.endpoint = endpoint
        self.completion = completion
        timer = LoopTimer(loop: loop)
    }

    /// Connects; answers once, at once or later, on the loop's thread.
    static func connect(
        to endpoint: Endpoint, loop: EventLoop, resolver: Resolver?, timeout: Duration, completion: @escaping Completion
    ) {
        let connector = Connector(endpoint, loop: loop, resolver: resolver, completion: completion)
        connector.ownReference = connector  // released by answer(_:)
        connector.timer.handler = connector
        connector.timer.set(after: timeout)
        connector.start()
    }

    private func start() {
        times.resolveStarted = loop.now.nanoseconds
        if let address = endpoint.address { return found([address]) }
        guard let resolver else { return answer(.failure(lastError)) }
        resolver.resolve(endpoint.key.host, port: endpoint.key.port) { result in
            switch result {
            case .success(let addresses): self.found(addresses)
            case .failure(let error):
                let fault: GatewayError.Fault = error == .timeout ? .dnsTimeout : .dnsError
                self.answer(.failure(GatewayError(.upstream, fault, "\(error)", mayRetry: true)))
            }
        }
    }

    /// Why no connection is made to a private address.
    static func denied(_ endpoint: Endpoint) -> GatewayError {
        GatewayError(
            .downstream, .destinationProhibited, "\(endpoint.name) has a private address, which is denied")
    }

    private func found(_ found: [SocketAddress]) {
        guard completion != nil else { return }
        addresses = found[...]
        // Judged after the names were resolved, so that a name cannot point inward.
        if endpoint.key.deniesPrivate {
            addresses = addresses.filter { !$0.isPrivate }[...]
            if addresses.isEmpty {
                return answer(.failure(Connector.denied(endpoint)))
            }
        }
        times.connectStarted = loop.now.nanoseconds
        tryNext()
    }

    private func tryNext() {
        while let address = addresses.popFirst() {
            switch Socket.connect(to: address) {
            case .connected(let descriptor):
                return answer(.success(descriptor))
            case .inProgress(let descriptor):
                let events = SocketEvents(loop: loop, descriptor: descriptor, handler: self)
                socket = events
                if events.enableWriting() { return }
                lastError = Connector.error(ENOMEM, endpoint)
            case .failed(let code):
                lastError = Connector.error(code, endpoint)
            }
        }
        answer(.failure(lastError))
    }

    func socketReadable() {}

    func socketWritable() {
        guard let socket else { return }
        let code = Socket.pendingError(socket.descriptor)
        self.socket = nil
        if code == 0 {
            let descriptor = socket.detach()
            answer(.success(descriptor))
        } else {
            socket.close()
            lastError = Connector.error(code, endpoint)
            tryNext()
        }
    }

    func timerFired(_ timer: LoopTimer) {
        let fault: GatewayError.Fault = times.connectStarted == 0 ? .dnsTimeout : .connectionTimeout
        let what =
            times.connectStarted == 0 ? "finding the address of \(endpoint.name)" : "connecting to \(endpoint.name)"
        answer(.failure(GatewayError(.upstream, fault, "\(what) took too long", mayRetry: true)))
    }

    private func answer(_ result: Result<Int32, GatewayError>) {
        guard let completion else {
            if case .success(let descriptor) = result { Socket.close(descriptor) }
            return
        }
        self.completion = nil
        timer.cancel()
        socket?.close()
        socket = nil
        times.connected = loop.now.nanoseconds
        completion(result, times)
        ownReference = nil
    }

    private static func error(_ code: Int32, _ endpoint: Endpoint) -> GatewayError {
        let text = String(cString: strerror(code)).lowercased()
        let reason = "connecting to \(endpoint.name): \(text)"
        switch code {
        case ECONNREFUSED, ENOENT: return GatewayError(.upstream, .connectionRefused, reason, mayRetry: true)
        case ETIMEDOUT: return GatewayError(.upstream, .connectionTimeout, reason, mayRetry: true)
        case EMFILE, ENFILE, EADDRNOTAVAIL:
            return GatewayError(.upstream, .connectionLimitReached, reason, mayRetry: true)
        default: return GatewayError(.upstream, .destinationUnavailable, reason, mayRetry: true)
        }
    }
}
