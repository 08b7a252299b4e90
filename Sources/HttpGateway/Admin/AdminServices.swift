import GatewayConfig
import HttpWare
import Wares

extension AdminEndpoint {
    /// The services with their endpoints, and the connections to them.
    static func services(_ subject: AdminSubject) -> [AdminEndpoint] {
        [
            AdminEndpoint(path: "/v1/services", access: .known) { _, _ in
                .wait { _, exchange in
                    let now = exchange.now
                    let numbers = await subject.census.numbers()
                    return .abort(with: .json(services(subject.status.now, numbers, at: now)))
                }
            }
        ]
    }

    private static func services(
        _ status: GatewayStatus.Snapshot, _ loops: [LoopNumbers], at now: LoopInstant
    ) -> Json {
        let pools = PoolSum.byEndpoint(loops)
        var named: Set<String> = []
        let services = status.configuration.services.map { service -> Json in
            let running = status.services[service.name]
            let reports = running?.reports(at: now) ?? []
            let endpoints = service.endpoints.enumerated().map { place, endpoint -> Json in
                let name = "\(endpoint.host):\(endpoint.port)"
                named.insert(name)
                let pool = pools[name] ?? PoolSum()
                return .object([
                    ("url", .text(endpoint.url)),
                    ("weight", .number(endpoint.weight)), ("backup", .bool(endpoint.isBackup)),
                    ("at", .text("\(endpoint.location)")),
                    ("connections", pool.json),
                    ("addresses", .list(reports.filter { $0.place == place }.map { address($0, at: now) })),
                ])
            }
            return .object([
                ("name", .text(service.name)), ("at", .text("\(service.location)")),
                ("balance", .text(service.balance.rawValue)), ("endpoints", .list(endpoints)),
                ("fallback", .optional(service.fallbacks.first)),
                ("down", .bool(running?.notes.reachability.isDown ?? false)),
                ("discovered", .optional(service.discovered?.value)),
                ("circuit", circuit(running?.notes, at: now)),
                ("retries", retries(running?.notes)),
            ])
        }
        // Clients of a forward proxy choose these, so there may be many.
        let passing = pools.filter { !named.contains($0.key) }.sorted {
            ($1.value.open, $0.key) < ($0.value.open, $1.key)
        }
        return .object([
            ("services", .list(services)),
            ("splits", .list(status.configuration.routes.filter { !$0.shares.isEmpty }.map(split))),
            ("discovery", discovery(status)),
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

    /// The sources of services, and what they found; `null` if nothing looks for services.
    private static func discovery(_ status: GatewayStatus.Snapshot) -> Json {
        guard let discovery = status.discovery else { return .null }
        return .object([
            (
                "sources",
                .list(
                    discovery.report.sources.map { source in
                        .object([
                            ("source", .text(source.name)), ("answers", .bool(source.failure == nil)),
                            ("since", .text(source.since.rfc3339)), ("failure", .optional(source.failure)),
                            ("updates", .number(source.updates)), ("failures", .number(source.failures)),
                        ])
                    })
            ),
            ("found", status.configuration.found.json),
        ])
    }

    /// A route whose requests several services share.
    private static func split(_ route: RouteDefinition) -> Json {
        .object([
            ("route", .text(route.name)), ("at", .text("\(route.location)")),
            ("sticky", .optional(route.sticky?.words)), ("shares", .list(route.shares.map(\.json))),
        ])
    }

    /// The state of an endpoint, or of one of the addresses of its name.
    private static func address(_ report: EndpointReport, at now: LoopInstant) -> Json {
        .object([
            ("address", .text(report.name)), ("state", .text(report.state.rawValue)),
            ("requests", .number(report.active)),
            ("ejectedForMilliseconds", report.ejectedFor.map { .number($0.milliseconds) } ?? .null),
            ("ejections", .number(report.ejections)),
            ("checks", .object([("passed", .number(report.checksPassed)), ("failed", .number(report.checksFailed))])),
            (
                "lastFailure",
                report.lastFailure.map { failure in
                    // Another loop's clock may be slightly ahead.
                    let ago = max(0, (now - failure.time).milliseconds)
                    return .object([("what", .text(failure.what)), ("agoMilliseconds", .number(ago))])
                } ?? .null
            ),
        ])
    }

    private static let mostPassing = 100

    /// The state of the circuit; `null` if no `circuitBreaker` handled a request for the service.
    private static func circuit(_ notes: ServiceNotes?, at now: LoopInstant) -> Json {
        guard let report = notes?.noteIfMade(Circuit.self)?.report(at: now) else { return .null }
        return .object([
            ("state", .text(report.state.rawValue)),
            ("openForMilliseconds", report.openFor.map { .number($0.milliseconds) } ?? .null),
            ("opened", .number(report.opened)), ("refused", .number(report.refused)),
        ])
    }

    /// The requests that were sent again; `null` if no `retry` handled a request for the service.
    private static func retries(_ notes: ServiceNotes?) -> Json {
        guard let report = notes?.noteIfMade(RetryBudget.self)?.report else { return .null }
        return .object([("sent", .number(report.retries)), ("denied", .number(report.denied))])
    }
}

extension RouteShare {
    /// The share as the admin listener reports it.
    var json: Json { .object([("service", .text(serviceName)), ("weight", .number(weight))]) }
}

/// The connections to one endpoint, over all loops.
struct PoolSum {
    var open = 0
    var idle = 0
    var waiting = 0

    /// The sums by `host:port`.
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
