// One file: the list of all metrics, in the order in which they are written.

import Acme
import Capturing
import Credentials
import GatewayConfig
import HttpCaching
import HttpWare
import HttpWareRedis
import Wares

extension AdminEndpoint {
    /// The metrics for Prometheus.
    static func metrics(_ subject: AdminSubject) -> [AdminEndpoint] {
        [
            AdminEndpoint(path: "/metrics", access: .local) { _, _ in
                .wait { _, _ in
                    let numbers = await subject.census.numbers()
                    let text = Metrics(subject, numbers).text
                    return .abort(
                        with: HttpResponse(
                            .ok, fields: ["Content-Type": "text/plain; version=0.0.4; charset=utf-8"],
                            content: .text(text)))
                }
            }
        ]
    }
}

/// The metrics of a gateway at one moment. The values of labels are names and addresses from the configuration, never data from
/// requests.
private struct Metrics {
    private var output = MetricsText()

    var text: String { output.text }

    init(_ subject: AdminSubject, _ loops: [LoopNumbers]) {
        addGateway(subject)
        addListeners(loops)
        addCertificates(subject)
        addExchanges(loops)
        addUpstream(subject, loops)
        addEndpoints(subject)
        addDiscovery(subject)
        addResilience(subject)
        addWares(subject)
        addCredentials(subject)
        addCaches(subject, loops)
        addCaptures(subject)
        addLoops(loops)
        addProcess(ProcessNumbers())
    }

    /// Only while services are looked for.
    private mutating func addDiscovery(_ subject: AdminSubject) {
        let status = subject.status.now
        guard let sources = status.discovery?.report.sources else { return }
        let found = status.configuration.found
        output.beginFamily("httpware_discover_up", .gauge, "1 if a source of services answers.")
        for source in sources { output.add([("source", source.name)], source.failure == nil ? 1 : 0) }
        output.beginFamily(
            "httpware_discover_since_seconds", .gauge,
            "When a source last answered with something new or, if it does not answer, since when, in seconds since 1970."
        )
        for source in sources {
            output.add([("source", source.name)], Double(source.since.sinceEpoch) / 1e9)
        }
        output.beginFamily("httpware_discover_updates_total", .counter, "Different answers of a source of services.")
        for source in sources { output.add([("source", source.name)], source.updates) }
        output.beginFamily("httpware_discover_failures_total", .counter, "Failures to ask a source of services.")
        for source in sources { output.add([("source", source.name)], source.failures) }
        output.beginFamily(
            "httpware_discover_instances", .gauge, "Programs that were found, by whether they take requests.")
        for source in sources {
            let own = found.instances.filter { $0.source == source.name && !$0.isIgnored }
            let used = own.count { found.reason(for: $0) == nil }
            output.add([("source", source.name), ("state", "used")], used)
            output.add([("source", source.name), ("state", "unused")], own.count - used)
        }
        output.add(
            "httpware_discover_problems", .gauge, "Mistakes in labels and service files.", found.problems.count)
    }

    private mutating func addGateway(_ subject: AdminSubject) {
        let status = subject.status.now
        output.beginFamily("httpware_build_info", .gauge, "Versions of the program and its libraries, as labels.")
        output.add([("version", Gateway.version), ("libevent", EventLoop.libraryVersion)], 1)
        output.add(
            "httpware_ready", .gauge, "1 if every loop serves and none drains.", subject.phase() == .ready ? 1 : 0)
        let reload = status.lastReload
        output.add(
            "httpware_config_last_reload_success", .gauge, "1 if the last reload of the configuration succeeded.",
            reload.outcome.isSuccess ? 1 : 0)
        output.add(
            "httpware_config_last_reload_timestamp_seconds", .gauge,
            "When the configuration was last loaded, or refused.",
            Double(reload.time.seconds) + Double(reload.time.nanoseconds) / 1e9)
        output.add("httpware_config_reloads_total", .counter, "Attempted reloads.", status.reloads)
        output.add("httpware_config_reload_failures_total", .counter, "Failed reloads.", status.failedReloads)
    }

    // MARK: Downstream

    private mutating func addListeners(_ loops: [LoopNumbers]) {
        var open: [String: (connections: Int, busy: Int, accepted: Int)] = [:]
        for (name, listener) in loops.flatMap(\.listeners) {
            let sum = open[name] ?? (0, 0, 0)
            open[name] = (sum.0 + listener.connections, sum.1 + listener.busy, sum.2 + listener.accepted)
        }
        let sums = open.sorted { $0.key < $1.key }
        output.beginFamily("httpware_connections", .gauge, "Open connections of clients.")
        for (name, sum) in sums { output.add([("listener", name)], sum.connections) }
        output.beginFamily("httpware_requests_in_flight", .gauge, "Connections of clients with a request in progress.")
        for (name, sum) in sums { output.add([("listener", name)], sum.busy) }
        output.beginFamily("httpware_connections_accepted_total", .counter, "Accepted connections of clients.")
        for (name, sum) in sums { output.add([("listener", name)], sum.accepted) }
    }

    // MARK: Exchanges

    private struct Place: Hashable {
        let listener: String
        let key: ExchangeCounters.Key

        var labels: [(String, String)] {
            [("listener", listener), ("route", key.route ?? ""), ("service", key.service ?? "")]
        }
    }

    private mutating func addCertificates(_ subject: AdminSubject) {
        output.beginFamily(
            "httpware_certificate_expiry_timestamp_seconds", .gauge,
            "When a certificate expires: of a listener (server), of the authority for intercepted tunnels (authority), or shown to origin servers (client)."
        )
        func add(_ kind: String, _ user: (String, String), _ name: String, _ end: Int64) {
            output.add([("kind", kind), user, ("name", name)], Int(end))
        }
        let configuration = subject.status.now.configuration
        let kept = subject.certificates?.reports(at: WallTime(seconds: 0)) ?? []
        for listener in configuration.listeners {
            let user = ("listener", listener.name)
            for facts in listener.tls?.certificates ?? [] {
                add("server", user, facts.names.sorted().first ?? "", facts.end.seconds)
            }
            for (settings, report) in kept where settings == listener.tls?.acme {
                if let facts = report.certificate { add("server", user, report.name, facts.end.seconds) }
            }
            if let authority = listener.intercept?.authority {
                add("authority", user, authority.subject, authority.end)
            }
        }
        for service in configuration.services {
            if let facts = service.tls?.certificate {
                add("client", ("service", service.name), facts.names.sorted().first ?? "", facts.end.seconds)
            }
        }
    }

    private mutating func addExchanges(_ loops: [LoopNumbers]) {
        var sums: [Place: ExchangeCounters.Series] = [:]
        for (name, listener) in loops.flatMap(\.listeners) {
            for (key, series) in listener.series {
                sums[Place(listener: name, key: key), default: ExchangeCounters.Series()].add(series)
            }
        }
        let all = sums.map { (labels: $0.key.labels, series: $0.value) }
            .sorted { $0.labels.map(\.1).lexicographicallyPrecedes($1.labels.map(\.1)) }

        output.beginFamily(
            "httpware_requests_total", .counter,
            "Requests by class of status; none if the client left first.")
        for (labels, series) in all {
            for (digit, count) in series.statuses.enumerated() where count > 0 {
                output.add(labels + [("code", digit == 0 ? "none" : "\(digit)xx")], count)
            }
        }
        output.beginFamily(
            "httpware_request_duration_seconds", .histogram, "Time from a request's head to the end of its response.")
        for (labels, series) in all { output.add(labels, series.durations) }
        addMeasures(all.compactMap { one in one.series.measures.map { (labels: one.labels, measures: $0) } })
        output.beginFamily("httpware_request_content_bytes_total", .counter, "Content from clients.")
        for (labels, series) in all { output.add(labels, series.requestBytes) }
        output.beginFamily("httpware_response_content_bytes_total", .counter, "Content sent to clients.")
        for (labels, series) in all { output.add(labels, series.responseBytes) }
        output.beginFamily(
            "httpware_response_unfiltered_bytes_total", .counter,
            "Content of responses to clients before filters such as compress.")
        for (labels, series) in all { output.add(labels, series.unfilteredBytes) }
        output.beginFamily(
            "httpware_upstream_requests_total", .counter,
            "Requests that went upstream, by whether their connection had served others before.")
        for (labels, series) in all where series.sentFirst + series.sentReused > 0 {
            output.add(labels + [("reused", "false")], series.sentFirst)
            output.add(labels + [("reused", "true")], series.sentReused)
        }
        output.beginFamily(
            "httpware_failures_total", .counter, "Exchanges that failed, by their fault in Proxy-Status (RFC 9209).")
        for (labels, series) in all {
            for (fault, count) in series.failures.sorted(by: { $0.key < $1.key }) {
                output.add(labels + [("fault", fault)], count)
            }
        }
    }

    /// The metrics that the `metrics` ware enables: exchanges by OpenTelemetry's names (HTTP metrics, server), with the
    /// classes of statuses as codes.
    private mutating func addMeasures(_ all: [(labels: [(String, String)], measures: ExchangeMeasures)]) {
        guard !all.isEmpty else { return }
        output.beginFamily(
            "http_server_request_duration_seconds", .histogram,
            "Time from a request's head to the end of its response, by method and class of status.")
        for (labels, measures) in all {
            let labels = labels.map { ($0.0 == "route" ? "http_route" : $0.0, $0.1) }
            for kind in measures.kinds {
                let code = kind.digit == 0 ? "none" : "\(kind.digit)xx"
                output.add(
                    labels + [("http_request_method", kind.method), ("http_response_status_code", code)],
                    kind.durations)
            }
        }
        output.beginFamily("httpware_ware_decisions_total", .counter, "Decisions of wares, in both directions.")
        for (labels, measures) in all {
            for ware in measures.wares {
                for decision in WareStep.Decision.allCases where ware[decision] > 0 {
                    output.add(labels + [("ware", ware.label), ("decision", decision.rawValue)], ware[decision])
                }
            }
        }
        output.beginFamily("httpware_ware_duration_seconds", .histogram, "Time that wares took, including their waits.")
        for (labels, measures) in all {
            for ware in measures.wares where ware.durations.count > 0 {
                output.add(labels + [("ware", ware.label)], ware.durations)
            }
        }
    }

    // MARK: Upstream, loops, process

    private mutating func addUpstream(_ subject: AdminSubject, _ loops: [LoopNumbers]) {
        output.add(
            "httpware_upstream_connects_total", .counter, "Connections made to origin servers.",
            loops.map(\.connects).reduce(0, +))
        output.add(
            "httpware_upstream_connect_failures_total", .counter,
            "Failed attempts to connect to origin servers.",
            loops.map(\.failedConnects).reduce(0, +))
        let pools = PoolSum.byEndpoint(loops)
        output.beginFamily("httpware_upstream_connections", .gauge, "Connections to the endpoints of services.")
        // Services can share an endpoint with its connections.
        let named = Set(
            subject.status.now.configuration.services.flatMap(\.endpoints).map { "\($0.host):\($0.port)" })
        for endpoint in named.sorted() {
            let pool = pools[endpoint] ?? PoolSum()
            output.add([("endpoint", endpoint), ("state", "active")], pool.open - pool.idle)
            output.add([("endpoint", endpoint), ("state", "idle")], pool.idle)
        }
        output.beginFamily(
            "httpware_upstream_requests_waiting", .gauge,
            "Requests that wait for a connection, because pool.maxPerEndpoint is reached or a shared one is being made."
        )
        for endpoint in named.sorted() { output.add([("endpoint", endpoint)], pools[endpoint]?.waiting ?? 0) }
    }

    /// Adds the endpoints of services that have several, or have health checks.
    private mutating func addEndpoints(_ subject: AdminSubject) {
        let now = SystemLoopClock().now()
        let services = subject.status.now.services.sorted { $0.key < $1.key }
        let all = services.flatMap { name, service in
            service.reports(at: now).map { (labels: [("service", name), ("endpoint", $0.name)], report: $0) }
        }
        output.beginFamily("httpware_endpoint_up", .gauge, "1 if the endpoint takes requests.")
        for (labels, report) in all {
            output.add(labels, report.state == .open || report.state == .warming ? 1 : 0)
        }
        output.beginFamily(
            "httpware_endpoint_state", .gauge, "The endpoint's state: 1 for the present state, 0 for the others.")
        for (labels, report) in all {
            for state in EndpointReport.State.allCases {
                output.add(labels + [("state", state.rawValue)], report.state == state ? 1 : 0)
            }
        }
        output.beginFamily("httpware_endpoint_requests", .gauge, "Requests in progress at the endpoint.")
        for (labels, report) in all { output.add(labels, report.active) }
        output.beginFamily(
            "httpware_endpoint_ejections_total", .counter, "Ejections of the endpoint after failures.")
        for (labels, report) in all { output.add(labels, report.ejections) }
        output.beginFamily("httpware_endpoint_health_checks_total", .counter, "Health checks of the endpoint.")
        for (labels, report) in all where report.checksPassed + report.checksFailed > 0 {
            output.add(labels + [("result", "passed")], report.checksPassed)
            output.add(labels + [("result", "failed")], report.checksFailed)
        }
        output.beginFamily("httpware_service_down", .gauge, "1 if no endpoint of the service is reachable or healthy.")
        for (name, service) in services where !service.isPassthrough {
            output.add([("service", name)], service.notes.reachability.isDown ? 1 : 0)
        }
    }

    private mutating func addResilience(_ subject: AdminSubject) {
        let status = subject.status.now
        let services = status.configuration.services.compactMap { service in
            status.services[service.name].map { (labels: [("service", service.name)], notes: $0.notes) }
        }
        let now = SystemLoopClock().now()
        let circuits = services.compactMap { service in
            service.notes.noteIfMade(Circuit.self).map { (labels: service.labels, report: $0.report(at: now)) }
        }
        output.beginFamily("httpware_circuit_state", .gauge, "State of the circuit: 0 closed, 1 half-open, 2 open.")
        for (labels, report) in circuits {
            output.add(labels, report.state == .closed ? 0 : report.state == .halfOpen ? 1 : 2)
        }
        output.beginFamily("httpware_circuit_opened_total", .counter, "Times that the circuit opened.")
        for (labels, report) in circuits { output.add(labels, report.opened) }
        output.beginFamily("httpware_circuit_refused_total", .counter, "Requests refused by an open circuit.")
        for (labels, report) in circuits { output.add(labels, report.refused) }
        let retries = services.compactMap { service in
            service.notes.noteIfMade(RetryBudget.self).map { (labels: service.labels, report: $0.report) }
        }
        output.beginFamily("httpware_retries_total", .counter, "Requests that were sent again.")
        for (labels, report) in retries { output.add(labels, report.retries) }
        output.beginFamily(
            "httpware_retries_denied_total", .counter, "Requests that were not sent again because of the retry budget.")
        for (labels, report) in retries { output.add(labels, report.denied) }
    }

    /// Adds the counters of wares by label; entries with the same label are added up.
    private mutating func addWares(_ subject: AdminSubject) {
        let counters = subject.status.now.configuration.partsByLabel { ($0 as? any CountingWare)?.counter }
        var families: [(first: WareNumber, sums: [(label: String, part: WareNumber.Label?, sum: Int)])] = []
        for (label, parts) in counters {
            for number in parts.flatMap(\.numbers) {
                let family = families.firstIndex { $0.first.name == number.name } ?? families.count
                if family == families.count { families.append((number, [])) }
                let known = families[family].sums.lastIndex { $0.label == label && $0.part == number.label }
                if let known {
                    families[family].sums[known].sum += number.value
                } else {
                    families[family].sums.append((label, number.label, number.value))
                }
            }
        }
        for (first, sums) in families {
            output.beginFamily(first.name, first.isGauge ? .gauge : .counter, first.help)
            for (label, part, sum) in sums {
                output.add([("ware", label)] + (part.map { [($0.name, $0.value)] } ?? []), sum)
            }
        }
    }

    private mutating func addCaptures(_ subject: AdminSubject) {
        guard let store = subject.captures else { return }
        output.add("httpware_captures", .gauge, "Captured exchanges in memory.", store.count)
        output.add("httpware_captures_bytes", .gauge, "Memory of captured exchanges.", store.bytes)
        output.add(
            "httpware_captures_lost_total", .counter,
            "Exchanges that were not kept, because pinned captures filled the memory.", store.lost)
    }

    private mutating func addCredentials(_ subject: AdminSubject) {
        let reports = subject.status.now.configuration.credentials.map { $0.credential.report() }
        guard !reports.isEmpty else { return }
        func label(_ report: CredentialReport) -> [(String, String)] { [("credential", report.name)] }
        output.beginFamily("httpware_credential_ready", .gauge, "1 if there is a token that can be sent.")
        for report in reports {
            let isUsable = report.state == .ready || report.state == .refreshing && report.held == 0
            output.add(label(report), isUsable && report.token > 0 ? 1 : 0)
        }
        output.beginFamily(
            "httpware_credential_expiry_timestamp_seconds", .gauge, "When the token expires, if known.")
        for report in reports {
            if let expires = report.expires { output.add(label(report), Int(expires.seconds)) }
        }
        output.beginFamily("httpware_credential_refreshes_total", .counter, "Completed refreshes, by outcome.")
        for report in reports {
            for outcome in CredentialReport.Refresh.Outcome.allCases {
                output.add(label(report) + [("outcome", outcome.rawValue)], report.counts[outcome] ?? 0)
            }
        }
        output.beginFamily("httpware_credential_held_requests", .gauge, "Requests that wait for a token.")
        for report in reports { output.add(label(report), report.held) }
        output.beginFamily("httpware_credential_held_requests_total", .counter, "Requests that waited for a token.")
        for report in reports { output.add(label(report), report.heldTotal) }
        output.beginFamily(
            "httpware_credential_hold_refusals_total", .counter, "Requests that found no room, or waited too long.")
        for report in reports {
            output.add(label(report) + [("reason", "overflow")], report.overflows)
            output.add(label(report) + [("reason", "timeout")], report.timeouts)
        }
    }

    private mutating func addCaches(_ subject: AdminSubject, _ loops: [LoopNumbers]) {
        output.beginFamily("httpware_cache_requests_total", .counter, "Requests that caches saw, by result.")
        for (place, sum) in CacheSum.byPlace(loops) {
            let labels = [
                ("listener", place.listener), ("route", place.route ?? ""), ("service", place.service ?? ""),
            ]
            for result in CacheResult.allCases { output.add(labels + [("result", result.name)], sum[result]) }
        }
        let stores = ShownStore.all(subject.status.now.configuration).map {
            (labels: [("store", $0.name)], $0.store.census)
        }
        output.beginFamily("httpware_cache_store_responses", .gauge, "Stored responses.")
        for (labels, census) in stores { output.add(labels, census.responses) }
        output.beginFamily(
            "httpware_cache_store_bytes", .gauge, "Size of the stored responses, as counted against the limit.")
        for (labels, census) in stores { output.add(labels, census.bytes) }
        output.beginFamily("httpware_cache_store_limit_bytes", .gauge, "The size limit of the store.")
        for (labels, census) in stores { output.add(labels, census.limit) }
        output.beginFamily("httpware_cache_evictions_total", .counter, "Responses that were removed to make room.")
        for (labels, census) in stores { output.add(labels, census.evicted) }
        output.beginFamily(
            "httpware_cache_unwritten_total", .counter,
            "Responses that were not stored because writing was too slow or failed.")
        for (labels, census) in stores { output.add(labels, census.unwritten) }
        addRecords(subject)
        addRedis(subject)
    }

    /// The sessions and receipts of the stores whose contents are known here.
    private mutating func addRecords(_ subject: AdminSubject) {
        let stores = subject.status.now.configuration.stores.compactMap { configured in
            configured.store.records.census.map { (labels: [("store", configured.name)], census: $0) }
        }
        output.beginFamily("httpware_store_records", .gauge, "Kept sessions and receipts.")
        for (labels, census) in stores { output.add(labels, census.records) }
        output.beginFamily(
            "httpware_store_record_bytes", .gauge, "Size of the sessions and receipts, as counted against the limit.")
        for (labels, census) in stores { output.add(labels, census.bytes) }
        output.beginFamily("httpware_store_record_limit_bytes", .gauge, "The size limit of the sessions and receipts.")
        for (labels, census) in stores { output.add(labels, census.limit) }
        output.beginFamily(
            "httpware_store_records_refused_total", .counter,
            "Sessions and receipts that were refused because there was no room.")
        for (labels, census) in stores { output.add(labels, census.refused) }
    }

    private mutating func addRedis(_ subject: AdminSubject) {
        let servers = subject.status.now.configuration.stores.compactMap { configured in
            (configured.store.store as? RedisStore).map { (labels: [("store", configured.name)], status: $0.status) }
        }
        guard !servers.isEmpty else { return }
        output.beginFamily("httpware_redis_up", .gauge, "1 if the last connection and command succeeded.")
        for (labels, status) in servers { output.add(labels, status.fault == nil ? 1 : 0) }
        output.beginFamily("httpware_redis_connections", .gauge, "Open connections of loops.")
        for (labels, status) in servers { output.add(labels, status.connections) }
        output.beginFamily("httpware_redis_subscribed", .gauge, "1 if changes by other gateways are reported.")
        for (labels, status) in servers { output.add(labels, status.isSubscribed ? 1 : 0) }
        output.beginFamily("httpware_redis_commands_total", .counter, "Commands that were sent.")
        for (labels, status) in servers { output.add(labels, status.commands) }
        output.beginFamily("httpware_redis_failures_total", .counter, "Commands without an answer, sent or not.")
        for (labels, status) in servers { output.add(labels, status.failures) }
    }

    private mutating func addLoops(_ loops: [LoopNumbers]) {
        output.beginFamily(
            "httpware_loop_lag_seconds", .gauge,
            "Time that the loop took to respond to the last reading of its counters.")
        for (index, loop) in loops.enumerated() {
            output.add(
                [("loop", "\(index)")],
                Double(loop.lag.components.attoseconds) / 1e18 + Double(loop.lag.components.seconds))
        }
    }

    private mutating func addProcess(_ process: ProcessNumbers) {
        output.add("process_cpu_seconds_total", .counter, "CPU time of all threads.", process.cpuSeconds)
        output.add("process_resident_memory_bytes", .gauge, "Resident memory.", process.residentBytes)
        output.add("process_virtual_memory_bytes", .gauge, "Mapped memory.", process.virtualBytes)
        output.add("process_open_fds", .gauge, "Open descriptors.", process.openDescriptors)
        output.add("process_max_fds", .gauge, "The maximum number of open descriptors.", process.mostDescriptors)
        output.add("process_start_time_seconds", .gauge, "When the process started.", process.startSeconds)
    }
}
