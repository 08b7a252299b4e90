#if HTTPWARE_BENCH
    @testable import HttpWare

    /// The property that distinguishes the routes.
    private enum Kind: String, CaseIterable {
        case hosts, paths
        /// A hundred paths for each host, every fourth with a capture, and a method.
        case mixed

        func match(_ index: Int) throws -> RequestMatch {
            var match = RequestMatch()
            switch self {
            case .hosts: match.hosts = [try HostPattern(optionText: "host-\(index).example.com")]
            case .paths: match.paths = [try PathPattern(optionText: "/service-\(index)/**")]
            case .mixed:
                match.hosts = [try HostPattern(optionText: "host-\(index / 100).example.com")]
                let tail = index % 4 == 0 ? "/{id}/edit" : "/**"
                match.paths = [try PathPattern(optionText: "/api/service-\(index)\(tail)")]
                match.methods = [.get, .head]
            }
            return match
        }

        func target(_ index: Int) -> String {
            switch self {
            case .hosts: "http://host-\(index).example.com/users/7"
            case .paths: "http://example.com/service-\(index)/users/7"
            case .mixed: "http://host-\(index / 100).example.com/api/service-\(index)/users/7"
            }
        }
    }

    /// Looks up the last of `count` routes or, with `isMissing`, a request that no route matches.
    private func lookup(_ kind: Kind, among count: Int, isMissing: Bool = false) -> Benchmark {
        let what = isMissing ? "no route" : "the last"
        let matches = (0..<count).compactMap { try? kind.match($0) }
        return lookup(
            "\(what) of \(count) routes, by \(kind.rawValue)", matches, kind.target(isMissing ? count + 100 : count - 1)
        )
    }

    private func lookup(_ name: String, _ matches: [RequestMatch], _ target: String) -> Benchmark {
        let plan = ExchangePlan(chain: .empty, service: nil, route: nil)
        let table = RouteTable(matches.map { RouteTable.Route(match: $0, plan: plan) }, listenerPlan: plan)
        return Benchmark(name: name) { times in
            guard let request = try? HttpRequest(.get, target) else { return }
            var captures: [(name: String, value: String)] = []
            for _ in 0..<times { keep(try? table.plan(for: request, captures: &captures)) }
        }
    }

    let routeBenchmarks =
        [lookup("the only route, which takes every request", [RequestMatch()], "http://example.com/users/7")]
        + Kind.allCases.flatMap { kind in
            [1, 100, 10_000].map { lookup(kind, among: $0) } + [lookup(kind, among: 10_000, isMissing: true)]
        }
#endif
