/// Detects when an unreachable service is reachable again: makes a connection, and closes it.
///
/// It keeps itself alive until any connection to the service succeeds, or no watcher is left. After `longestWatch` it ends and declares
/// the service reachable, so that requests which still wait try for themselves. Used on its loop's thread only.
final class RecoveryProbe {
    private let service: UpstreamService
    private let transport: LoopTransport
    private var pause = RecoveryProbe.shortest
    private var next = 0
    private let ends: LoopInstant

    /// The pause between tries, doubled each time.
    static let shortest = Duration.milliseconds(50)
    static let longest = Duration.milliseconds(500)
    /// The timeout of one try.
    private static let patience = Duration.seconds(1)
    /// The maximum duration of the probe.
    private static let longestWatch = Duration.seconds(600)

    private init(_ service: UpstreamService, _ transport: LoopTransport) {
        self.service = service
        self.transport = transport
        ends = transport.loop.now + RecoveryProbe.longestWatch
    }

    /// Starts a probe, on the transport's loop.
    static func start(_ service: UpstreamService, _ transport: LoopTransport) {
        RecoveryProbe(service, transport).wait()
    }

    private func wait() {
        transport.loop.schedule(after: pause) { self.probe() }
        pause = min(pause * 2, RecoveryProbe.longest)
    }

    private func probe() {
        let reachability = service.notes.reachability
        guard reachability.isUnreachable, reachability.isWatched else { return }
        let endpoints = service.reachable
        guard transport.loop.now < ends, !endpoints.isEmpty else { return reachability.reached() }
        let endpoint = endpoints[next % endpoints.count]
        next += 1
        if let refuses = transport.standInRefuses { return refuses(endpoint) ? wait() : reachability.reached() }
        Connector.connect(
            to: endpoint, speaking: endpoint.key.speaks, loop: transport.loop, resolver: transport.resolver,
            timeout: min(service.connectTimeout, RecoveryProbe.patience)
        ) { result, _ in
            guard case .success(let link) = result else { return self.wait() }
            link.socket.close()
            reachability.reached()
        }
    }
}
