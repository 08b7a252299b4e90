#if HTTPWARE_BENCH
    @testable import HttpWare

    private let rules: [(name: String, rule: Balancing.Rule)] = [
        ("roundRobin", .roundRobin), ("leastRequests", .leastRequests), ("random2", .random2),
        ("hash", .hash(.ip)),
    ]

    private func balancing(_ rule: Balancing.Rule) -> Balancing {
        var balancing = Balancing()
        balancing.rule = rule
        balancing.ejection = Balancing.Ejection()
        balancing.slowStart = .seconds(10)
        return balancing
    }

    /// Chooses one of four endpoints for a request that ends at once. With `again`, chooses a second one, because the
    /// first has failed.
    private func choice(_ name: String, _ rule: Balancing.Rule, again: Bool) -> Benchmark {
        Benchmark(name: "an endpoint of four is chosen by \(name)\(again ? ", and another one than that" : "")") {
            times in
            guard let loop = try? EventLoop(name: "bench") else { return }
            let endpoints = (1...4).map { Endpoint(host: "192.0.2.\($0)", port: 80, weight: $0) }
            let balancer = Balancer(endpoints, balancing(rule), reachability: ServiceReachability())
            let seat = BalancerSeat(balancer, LoopTransport(loop: loop, resolver: nil))
            var tried: [EndpointMember] = []
            tried.reserveCapacity(1)
            for turn in 0..<times {
                let key = SplitMix64.spread(UInt64(turn))
                guard let member = seat.choose(key: key, excluding: [], at: loop.now) else { return }
                member.beginRequest()
                member.endRequest()
                if again {
                    tried.append(member)
                    keep(seat.choose(key: key, excluding: tried, at: loop.now))
                    tried.removeAll(keepingCapacity: true)
                } else {
                    member.succeeded()
                }
            }
        }
    }

    let balanceBenchmarks: [Benchmark] =
        rules.flatMap { [choice($0.name, $0.rule, again: false), choice($0.name, $0.rule, again: true)] }
        + rules.map { plainGet("to four endpoints, \($0.name)", endpoints: 4, balancing: balancing($0.rule), []) }
#endif
