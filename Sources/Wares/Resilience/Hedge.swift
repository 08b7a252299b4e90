public import HttpWare

/// Asks another endpoint as well if a response is late, and takes the response that comes first.
public struct Hedge: Middleware, Postware, CountingWare {
    /// How long a request waits until another endpoint is asked.
    public let after: HedgeDelay
    /// The methods whose requests may reach two endpoints.
    public let methods: [HttpMethod]
    /// The maximum number of further endpoints that are asked for one response.
    public let max: Int
    /// The maximum share of a service's requests of the last ten seconds for which other endpoints are asked. The first
    /// request can always be hedged.
    public let budget: Ratio
    private let keeping: HedgeKeeping

    public var holdsState: Bool { true }
    public var counter: any WareCounter { keeping }

    public init(
        after: HedgeDelay = .percentile(95), methods: [HttpMethod] = [.get, .head], max: Int = 1, budget: Ratio = 0.05
    ) {
        self.after = after
        self.methods = methods
        self.max = max
        self.budget = budget
        keeping = HedgeKeeping(after, budget)
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        guard methods.contains(request.method), request.upgrade == nil else { return .pass }
        let delay: Duration? =
            switch after {
            case .fixed(let duration): duration
            case .percentile: keeping.late(exchange)
            }
        exchange.hedging = Hedging(after: delay, most: max, keeper: keeping)
        return .pass
    }

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        guard let hedging = exchange.hedging, hedging.keeper === keeping else { return .pass }
        // Only responses without a server error count, because a failing server answers quickly.
        if exchange.responder == .upstream, let time = hedging.responseTime, response.status.code < 500 {
            keeping.add(time, exchange)
        }
        if hedging.asked > 0 {
            let count = hedging.asked == 1 ? "another endpoint" : "\(hedging.asked) other endpoints"
            exchange.note("asked \(count), which answered \(hedging.isWon ? "first" : "too late")", asDecision: true)
        }
        return .pass
    }
}

extension Hedge: ConfigurableWare {
    public static let name: WareName = "hedge"
    public static let chainPlace: ChainPlace? = .retry
    public static let about = WareAbout(
        "Asks another endpoint as well if a response is late, and takes the response that comes first.",
        source: "Dean and Barroso, The Tail at Scale; Envoy hedge_policy",
        example: #"""
            - hedge: { after: p95 }
            - hedge: { after: 50ms, methods: [GET], budget: 2% }
            """#,
        details: #"""
            If a request has waited for `after` and has no response, it is also sent to another endpoint of the service. The client
            gets the response that begins first; the other requests are cancelled. A failed connection, or 502, 503 or 504,
            does not win while another endpoint may still answer. Use this ware for requests that endpoints can answer equally
            well, and with `retry` around it: each of its attempts can be hedged.

            `p95` is the time that 95 of 100 recent responses did not exceed; `p50` to `p99` can be written. It is measured for
            each entry of the ware and each worker, from the first 20 responses on. Before that, no other endpoint is asked. Give
            services with different response times entries of their own.

            Another endpoint is asked only if it takes requests: never the same one, and never one that was tried
            already. A request with content is sent twice only if all of its content is at hand, because a ware such as `retry`
            keeps it. Upgrades, and requests in which placeholders were replaced by tokens, go to one endpoint.

            `budget` limits these requests to a share of all requests that went to the service in the last ten seconds, by
            any route and worker. One in that time is always allowed, unless `budget` is 0. The metric
            `httpware_hedges_total` counts them by outcome: `won`, `lost`, `failed`, or `denied` by the budget.
            """#,
        otherNames: ["hedging", "hedgePolicy", "hedgedRequests", "speculativeRetry"])

    public init(options: inout OptionsReader) {
        var after = HedgeDelay.percentile(95)
        var methods: [HttpMethod] = [.get, .head]
        var max = 1
        var budget: Ratio = 0.05
        options.read(
            "after", into: &after,
            doc: "wait for a response before another endpoint is asked: a duration, or p50 to p99")
        var listed = methods.map { Located($0, at: options.location) }
        options.read("methods", into: &listed, doc: "methods whose requests may reach two endpoints")
        methods = listed.map(\.value)
        for method in listed where !method.value.isIdempotent {
            options.warn(
                at: "methods", in: method.location,
                "\"\(method.value)\" is not idempotent: two endpoints may do the work (RFC 9110 §9.2.2)")
        }
        options.read("max", into: &max, in: 1...3, doc: "maximum number of further endpoints for one response")
        options.read(
            "budget", into: &budget,
            doc: "maximum share of a service's requests that are sent to another endpoint, counted over ten seconds")
        self.init(after: after, methods: methods, max: max, budget: budget)
    }
}
