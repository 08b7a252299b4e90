import GatewayConfig
import HttpWare

extension AdminEndpoint {
    /// The services with their endpoints, and the connections to them.
    static func services(_ subject: AdminSubject) -> [AdminEndpoint] {
        [
            AdminEndpoint(path: "/v1/services", access: .known) { _, _ in
                .wait { _, _ in
                    let numbers = await subject.census.numbers()
                    return .abort(with: .json(services(subject.status.now.configuration, numbers)))
                }
            }
        ]
    }

    private static func services(_ configuration: GatewayConfiguration, _ loops: [LoopNumbers]) -> Json {
        let pools = PoolSum.byEndpoint(loops)
        var named: Set<String> = []
        let services = configuration.services.map { service -> Json in
            let endpoints = service.endpoints.map { endpoint -> Json in
                let name = "\(endpoint.host):\(endpoint.port)"
                named.insert(name)
                let pool = pools[name] ?? PoolSum()
                return .object([
                    ("url", .text(endpoint.url)),
                    ("weight", .number(endpoint.weight)), ("at", .text("\(endpoint.location)")),
                    ("connections", pool.json),
                ])
            }
            return .object([
                ("name", .text(service.name)), ("at", .text("\(service.location)")),
                ("balance", .text(service.balance.rawValue)), ("endpoints", .list(endpoints)),
            ])
        }
        // Clients of a forward proxy choose these: there may be many.
        let passing = pools.filter { !named.contains($0.key) }.sorted {
            ($1.value.open, $0.key) < ($0.value.open, $1.key)
        }
        return .object([
            ("services", .list(services)),
            (
                "passthrough",
                .object([
                    ("count", .number(passing.count)),
                    (
                        "endpoints",
                        .list(
                            passing.prefix(mostPassing).map {
                                .object([("endpoint", .text($0.key)), ("connections", $0.value.json)])
                            })
                    ),
                ])
            ),
        ])
    }

    private static let mostPassing = 100
}

/// The connections to one endpoint, over all loops.
struct PoolSum {
    var open = 0
    var idle = 0
    var waiting = 0

    /// By `host:port`.
    static func byEndpoint(_ loops: [LoopNumbers]) -> [String: PoolSum] {
        var sums: [String: PoolSum] = [:]
        for pool in loops.flatMap(\.pools) {
            sums[pool.endpoint, default: PoolSum()].open += pool.open
            sums[pool.endpoint, default: PoolSum()].idle += pool.idle
            sums[pool.endpoint, default: PoolSum()].waiting += pool.waiting
        }
        return sums
    }

    var json: Json {
        .object([("open", .number(open)), ("idle", .number(idle)), ("requestsWaiting", .number(waiting))])
    }
}
