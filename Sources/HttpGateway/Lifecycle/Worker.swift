import GatewayConfig
import HttpWare

/// One loop of the gateway, on its own thread: its listeners' sockets, connections and pools.
///
/// Unchecked: everything but `loop` is touched on the loop's thread only, through `loop.submit` and `loop.execute`.
final class Worker: @unchecked Sendable {
    let loop: EventLoop
    private var transport: LoopTransport?
    private var acceptors: [Acceptor] = []
    private var servers: [LoopServer] = []
    private let log: GatewayLog
    private let records: RecordRing?

    init(name: String, log: GatewayLog, records: RecordRing?) throws {
        self.log = log
        self.records = records
        loop = try EventLoop.start(name: name)
    }

    /// Makes what the loop's connections share.
    func prepare() throws {
        transport = LoopTransport(loop: loop, resolver: try Resolver(loop: loop))
    }

    /// Begins to accept on a listening descriptor, which it takes over.
    func listen(on descriptor: Int32, _ listener: ListenerDefinition, router: any ExchangeRouter, mostConnections: Int)
    {
        guard let transport else { return }
        var settings = ServerSettings()
        settings.limits.head = listener.limits.head.bytes
        settings.limits.fieldLines = listener.limits.fieldLines
        settings.limits.requestTarget = listener.limits.requestTarget.bytes
        settings.headTimeout = listener.limits.headTimeout
        settings.idleTimeout = listener.limits.idleTimeout
        settings.bodyMinRate = listener.limits.bodyMinRate.map { max(1, $0.count / $0.period.seconds) }
        settings.isForward = listener.mode == .forward
        var forward = ForwardRules()
        forward.connectPorts = listener.connectPorts.compactMap { UInt16(exactly: $0) }
        forward.deniesPrivate = listener.denyPrivate
        let log = self.log
        let server = LoopServer(
            name: listener.name, transport: transport, settings: settings, forward: forward,
            trustedProxies: listener.trustedProxies, bindAddress: listener.bind, router: router)
        server.records = records
        server.onFailure = { exchange in
            guard let failure = exchange.failure else { return }
            let place = [exchange.route, exchange.service, exchange.upstreamAddress].compactMap(\.self).joined(
                separator: " → ")
            switch failure.side {
            case .downstream: log.write(.debug, "\(exchange.listener): \(failure.reason)")
            case .upstream: log.write(.warning, "\(exchange.listener): \(place): \(failure.reason)")
            case .gateway:
                log.write(failure.fault == .noRoute ? .debug : .error, "\(exchange.listener): \(failure.reason)")
            }
        }
        servers.append(server)
        acceptors.append(
            Acceptor(
                descriptor: descriptor, loop: loop, server: server, mostConnections: mostConnections,
                reports: { log.write(.warning, $0) }))
    }

    /// Stops accepting, and lets exchanges finish; `done` is called on the loop when no connection is left.
    func drain(_ done: @escaping @Sendable () -> Void) {
        for acceptor in acceptors { acceptor.close() }
        acceptors = []
        var left = servers.count
        guard left > 0 else { return done() }
        for server in servers {
            var isEmpty = false
            server.onEmpty = {
                guard !isEmpty else { return }
                isEmpty = true
                left -= 1
                if left == 0 { done() }
            }
            server.drain()
        }
    }

    /// Closes everything now.
    func close() {
        for acceptor in acceptors { acceptor.close() }
        for server in servers { server.closeAll() }
        transport?.closeIdle()
    }
}
