/// Follows the endpoints of one service: asks whether they are well, and which addresses their names have. On one loop, for all of
/// them. Used on its loop's thread only.
public final class EndpointMonitor {
    private let service: UpstreamService
    private let balancer: Balancer
    private let transport: LoopTransport
    private var timers: [LoopTimer] = []
    private var checks: [ObjectIdentifier: SideCall] = [:]
    private var isStopped = false

    /// How long the addresses of a name are believed, whatever the TTL says.
    static let refresh: ClosedRange<Duration> = .seconds(5) ... .seconds(300)

    /// One for the service, where there is anything to follow.
    public init?(_ service: UpstreamService, transport: LoopTransport) {
        guard let balancer = service.balancer, balancer.needsMonitor else { return nil }
        self.service = service
        self.balancer = balancer
        self.transport = transport
    }

    /// Whether it follows that service.
    public func follows(_ service: UpstreamService) -> Bool { self.service === service }

    /// Begins: the first checks and questions are under way when this returns.
    public func start() {
        if balancer.rules.resolvesNames, let resolver = transport.resolver {
            for (place, origin) in balancer.origins.enumerated() where origin.isNamed {
                timers.append(LoopTimer(loop: transport.loop))
                resolve(place, origin, resolver, timer: timers.count - 1)
            }
        }
        if let check = balancer.rules.healthCheck {
            timers.append(LoopTimer(loop: transport.loop))
            checkAll(check, timer: timers.count - 1)
        }
    }

    /// Ends; what is under way is given up.
    public func stop() {
        isStopped = true
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

    private func resolve(_ place: Int, _ origin: Endpoint, _ resolver: Resolver, timer: Int) {
        resolver.resolve(origin.key.host, port: origin.key.port) { [weak self] result in
            guard let self, !self.isStopped else { return }
            var pause = EndpointMonitor.refresh.lowerBound
            if case .success(let addresses) = result {
                balancer.resolved(place, addresses, at: transport.loop.now)
                let left = resolver.timeLeft(for: origin.key.host) ?? .zero
                pause = min(max(left, EndpointMonitor.refresh.lowerBound), EndpointMonitor.refresh.upperBound)
            }
            // Where there is no answer, what was known before is as good as anything.
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
        }
        checks[ObjectIdentifier(member)] = call
        transport.inEvent { call.begin() }
    }
}
