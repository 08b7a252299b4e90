/// Follows the endpoints of one service: checks their health, and resolves the addresses of their names. One loop does this for all
/// loops. Used on its loop's thread only.
public final class EndpointMonitor {
    private let service: UpstreamService
    private let balancer: Balancer
    private let transport: LoopTransport
    private var timers: [LoopTimer] = []
    private var checks: [ObjectIdentifier: SideCall] = [:]
    /// The timers of names, by the index of the configured endpoint.
    private var nameTimers: [Int: Int] = [:]
    private var isStopped = false

    /// The shortest time before a name is resolved again while its addresses work, whatever its TTL is.
    static let shortestRefresh = Duration.seconds(5)

    /// Makes a monitor for the service; `nil` if there is nothing to follow.
    public init?(_ service: UpstreamService, transport: LoopTransport) {
        guard let balancer = service.balancer, balancer.needsMonitor else { return nil }
        self.service = service
        self.balancer = balancer
        self.transport = transport
    }

    /// Whether it follows this service.
    public func follows(_ service: UpstreamService) -> Bool { self.service === service }

    /// Starts: the first checks and lookups are running when this returns.
    public func start() {
        if balancer.rules.resolvesNames, let resolver = transport.resolver {
            for (place, origin) in balancer.origins.enumerated() where origin.isNamed {
                timers.append(LoopTimer(loop: transport.loop))
                nameTimers[place] = timers.count - 1
                balancer.moves[place]?.tell { [monitor = Reference(self), loop = transport.loop] in
                    loop.execute { monitor.monitor?.lookAgain(place) }
                }
                resolve(place, origin, resolver, timer: timers.count - 1)
            }
        }
        if let check = balancer.rules.healthCheck {
            timers.append(LoopTimer(loop: transport.loop))
            checkAll(check, timer: timers.count - 1)
        }
    }

    /// Ends, and abandons running checks.
    public func stop() {
        isStopped = true
        for moves in balancer.moves { moves?.tell(nil) }
        for timer in timers { timer.cancel() }
        timers = []
        for check in checks.values { check.cancel() }
        checks = [:]
    }

    private func later(_ timer: Int, after pause: Duration, _ body: @escaping (EndpointMonitor) -> Void) {
        guard !isStopped else { return }
        timers[timer].cancel()
        timers[timer] = transport.loop.schedule(after: pause) { [weak self] in
            guard let self, !self.isStopped else { return }
            body(self)
        }
    }

    // MARK: Names

    /// The addresses of the names may have changed: they are looked up again, if that was not done within about a second.
    public func lookAgain() {
        for place in nameTimers.keys { lookAgain(place) }
    }

    /// The addresses of one name may have changed, because connections to them fail, or its checks do.
    private func lookAgain(_ place: Int) {
        guard !isStopped, let timer = nameTimers[place], let resolver = transport.resolver else { return }
        let origin = balancer.origins[place]
        if resolver.doubt(origin.key.host) {
            timers[timer].cancel()
            resolve(place, origin, resolver, timer: timer)
        } else if let left = resolver.timeLeft(for: origin.key.host) {
            later(timer, after: left) { $0.resolve(place, origin, resolver, timer: timer) }
        }
    }

    private func resolve(_ place: Int, _ origin: Endpoint, _ resolver: Resolver, timer: Int) {
        resolver.resolve(origin.key.host, port: origin.key.port) { [weak self] result in
            guard let self, !self.isStopped else { return }
            var pause = EndpointMonitor.shortestRefresh
            if case .success(let addresses) = result {
                balancer.resolved(place, addresses, at: transport.loop.now)
                let left = resolver.timeLeft(for: origin.key.host) ?? .zero
                pause = max(left, EndpointMonitor.shortestRefresh)
            }
            // Without an answer, the previous addresses are kept.
            later(timer, after: pause) { $0.resolve(place, origin, resolver, timer: timer) }
        }
    }

    // MARK: Health

    private func checkAll(_ check: Balancing.HealthCheck, timer: Int) {
        for member in balancer.members where checks[ObjectIdentifier(member)] == nil { beginCheck(check, member) }
        later(timer, after: check.interval) { $0.checkAll(check, timer: timer) }
    }

    private func beginCheck(_ check: Balancing.HealthCheck, _ member: EndpointMember) {
        let endpoint = member.endpoint.unpooled()
        let scheme = endpoint.tls == nil ? "http" : "https"
        guard
            let request = try? HttpRequest(
                .get, "\(scheme)://\(endpoint.authority)\(check.path)", fields: ["User-Agent": "httpware-health"])
        else { return }
        let host: String? = if case .value(let value) = service.host { value } else { nil }
        let call = SideCall(
            request, CallLimits(timeout: check.timeout), transport, to: endpoint, host: host, cutsContent: true
        ) { [weak self] result in
            guard let self else { return }
            checks[ObjectIdentifier(member)] = nil
            let failure: String? =
                switch result {
                case .success(let response):
                    check.statuses.contains(response.status.code) ? nil : "status \(response.status.code)"
                case .failure(let error): error.proxyStatusName
                }
            balancer.checked(member, failure: failure, at: transport.loop.now)
            if failure != nil { lookAgain(member.place) }
        }
        checks[ObjectIdentifier(member)] = call
        transport.inEvent { call.begin() }
    }
}

/// Reaches the monitor from other loops.
///
/// Unchecked: the monitor is read on its own loop only.
private final class Reference: @unchecked Sendable {
    private(set) weak var monitor: EndpointMonitor?

    init(_ monitor: EndpointMonitor) { self.monitor = monitor }
}
