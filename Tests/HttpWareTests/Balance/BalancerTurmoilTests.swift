import Testing

@testable import HttpWare

/// One balancer on several loops at once, which choose, fail, check, resolve and report. Meant for the thread sanitizer: `make races`.
@Suite struct BalancerTurmoilTests {
    private static let loops = 4

    private func makeBalancer(_ rule: Balancing.Rule) -> Balancer {
        var balancing = Balancing()
        var ejection = Balancing.Ejection()
        (ejection.failures, ejection.base, ejection.longest) = (2, .nanoseconds(500), .nanoseconds(1500))
        balancing.rule = rule
        balancing.ejection = ejection
        balancing.healthCheck = Balancing.HealthCheck(path: "/")
        balancing.slowStart = .nanoseconds(300)
        balancing.resolvesNames = true
        let endpoints =
            [Endpoint(host: "a.test", port: 80, weight: 3)] + (1...3).map { Endpoint(host: "192.0.2.\($0)", port: 80) }
        return Balancer(endpoints, balancing, reachability: ServiceReachability())
    }

    /// Requests of one loop, each with what may happen meanwhile; answers how many found no endpoint.
    private static func requests(_ balancer: Balancer, loop: EventLoop, number: Int, rounds: Int) -> Int {
        let seat = BalancerSeat(balancer, LoopTransport(loop: loop, resolver: nil))
        var random = SplitMix64.spread(UInt64(number))
        var homeless = 0
        for round in 0..<rounds {
            random = SplitMix64.spread(random)
            let now = LoopInstant(nanoseconds: Int64(round) * 10)
            guard let member = seat.choose(key: random, excluding: [], at: now) else {
                homeless += 1
                continue
            }
            member.beginRequest()
            if random & 3 == 0 { balancer.failed(member, "status 503", at: now) } else { member.succeeded() }
            switch random >> 2 & 31 {
            case 0: balancer.checked(member, failure: random & 128 == 0 ? "status 500" : nil, at: now)
            case 1:
                let found = (0...random >> 8 & 3).compactMap { SocketAddress("198.51.100.\($0):80") }
                balancer.resolved(0, found, at: now)
            case 2: _ = balancer.reports(at: now)
            default: break
            }
            member.endRequest()
        }
        return homeless
    }

    @Test(arguments: [Balancing.Rule.roundRobin, .leastRequests, .random2, .hash(.ip)])
    func `every request finds an endpoint, and none stays under way`(rule: Balancing.Rule) async throws {
        let balancer = makeBalancer(rule)
        let homeless = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<Self.loops {
                let loop = try EventLoop.start(name: "turmoil")
                group.addTask {
                    defer {
                        loop.stop()
                        loop.join()
                    }
                    return await loop.submit { Self.requests(balancer, loop: loop, number: number, rounds: 4000) }
                }
            }
            return try await group.reduce(0, +)
        }
        #expect(homeless == 0)
        // Long after: each ejected endpoint is back, and warm, unless checks say otherwise, and nothing is under way.
        _ = balancer.reports(at: LoopInstant(nanoseconds: 1_000_000_000))
        let reports = balancer.reports(at: LoopInstant(nanoseconds: 2_000_000_000))
        #expect(reports.allSatisfy { $0.active == 0 && ($0.state == .open || $0.state == .unhealthy) })
        #expect(reports.contains { $0.ejections > 0 } && reports.contains { $0.lastFailure != nil })
    }
}
