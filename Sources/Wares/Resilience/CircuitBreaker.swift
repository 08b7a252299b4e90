public import HttpWare

/// Refuses requests to a service that keeps failing, and lets a few through later to test whether it has recovered.
///
/// The circuit belongs to the service: all loops and all entries of this ware for the service share it.
public struct CircuitBreaker: Middleware, Postware {
    /// The share of failed requests that opens the circuit.
    public var failureRatio: Ratio
    /// The minimum number of requests in `window` before the circuit can open.
    public var minRequests: Int
    /// The period in which requests count, in whole seconds.
    public var window: Duration
    /// How long the open circuit refuses all requests.
    public var openFor: Duration
    /// The number of test requests that must succeed before the circuit closes.
    public var halfOpen: Int
    /// The outcomes that count as failures.
    public var failures: FailureSet
    /// The status of refusals.
    public var status: HttpStatus

    public init(
        failureRatio: Ratio = 0.5, minRequests: Int = 20, window: Duration = .seconds(10),
        openFor: Duration = .seconds(10), halfOpen: Int = 3,
        failures: FailureSet = FailureSet([.connect, .timeout], statuses: StatusSet([500...599])),
        status: HttpStatus = .serviceUnavailable
    ) {
        self.failureRatio = failureRatio
        self.minRequests = minRequests
        self.window = window
        self.openFor = openFor
        self.halfOpen = halfOpen
        self.failures = failures
        self.status = status
    }

    var windowSeconds: Int { (window.milliseconds + 999) / 1000 }

    // MARK: Requests

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        exchange.withServiceNote(Circuit.self, ofPassthrough: false) { $0.isClosed } ?? true
            ? .pass : enterCircuit(exchange)
    }

    /// In a function of its own, so that requests of a closed circuit do not pay for it.
    @inline(never)
    private func enterCircuit(_ exchange: Exchange) -> Verdict {
        guard let circuit = exchange.serviceNotes?.note(Circuit.self) else { return .pass }
        switch circuit.admitRequest(probes: halfOpen, at: exchange.now) {
        case .passes: return .pass
        case .probes(let probe):
            exchange.note("probes whether \(exchange.service ?? "") has recovered")
            exchange[Probe.self] = probe
            // A client that leaves takes its probe along, and another request may be one.
            exchange.onEnd { _ in circuit.gaveUp(probe) }
            return .pass
        case .refused(let pause):
            let seconds = RetryAfter.seconds(pause)
            exchange.note(
                "rejected: the circuit of \(exchange.service ?? "") is open for \(seconds)s", asDecision: true)
            var response = HttpResponse.problem(status, "too many requests to this service failed; the circuit is open")
            response.fields.set(.retryAfter, to: seconds)
            return .abort(with: response)
        }
    }

    // MARK: Responses

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        guard let hasFailed = failures.judge(response.status, exchange) else { return .pass }
        // The origins that a forward proxy's clients ask for have no circuit together.
        exchange.withServiceNote(Circuit.self, ofPassthrough: false) { circuit in
            if !circuit.isClosed || hasFailed {
                judge(circuit, hasFailed, exchange)
            } else {
                circuit.passed(at: exchange.now)
            }
        }
        return .pass
    }

    @inline(never)
    private func judge(_ circuit: Circuit, _ hasFailed: Bool, _ exchange: Exchange) {
        if circuit.isClosed {
            if let sum = circuit.failed(self, at: exchange.now) {
                exchange.note("opened: \(sum.marked) of \(sum.all) failed in \(window.optionText)")
            }
        } else if let probe = exchange[Probe.self] {
            switch circuit.ended(probe, hasFailed: hasFailed, self, at: exchange.now) {
            case .opened: exchange.note("opened again: the probe failed")
            case .closed: exchange.note("closed: \(halfOpen) of \(halfOpen) probes passed")
            case nil: break
            }
        }
    }

    /// The number of the probe that the exchange is.
    private enum Probe: ExchangeKey { typealias Value = Int }
}

extension CircuitBreaker: ConfigurableWare {
    public static let name: WareName = "circuitBreaker"
    public static let chainPlace: ChainPlace? = .circuitBreaker
    public static let orderRisks: [OrderRisk] = [
        .before(.retry, consequence: "it would count exchanges, not attempts; put retry first")
    ]
    public static let about = WareAbout(
        "Refuses requests to a service that keeps failing, and lets a few through later to test whether it has recovered.",
        source: "Traefik circuitBreaker, Polly",
        example: #"""
            - circuitBreaker: { failureRatio: 30%, minRequests: 50, openFor: 30s }
            """#,
        details: #"""
            The ware counts the outcome of each attempt in the last `window`, in whole seconds. If there are at least
            `minRequests`, and the share of failures reaches `failureRatio`, the circuit opens: for `openFor` every
            request is answered with `status` and `Retry-After`. Then the circuit is half-open: `halfOpen` test requests
            go to the service, and all others are still refused. If all test requests succeed, the circuit closes. The
            first one that fails opens it again.

            The circuit belongs to the service. All loops and all entries of this ware share it, and it survives reloads
            that do not change the service. `/v1/services` and the metrics show its state. A status in `failures`
            matches responses of the origin server, and faults that the client is told of with that status. `connect` is
            a connection that could not be made, `reset` one that ended before the response, and `timeout` any step that
            took too long. The origins of `passthrough` are independent of each other, so their requests always pass.

            List this ware after `retry`, so that it counts each attempt.
            """#,
        otherNames: ["breaker", "outlierDetection"])

    public init(options: inout OptionsReader) {
        self.init()
        options.read("failureRatio", into: &failureRatio, doc: "share of failed requests that opens the circuit")
        options.read(
            "minRequests", into: &minRequests, in: 1...1_000_000,
            doc: "minimum number of requests in window before the circuit can open")
        options.read(
            "window", into: &window, in: .seconds(1) ... .seconds(300),
            doc: "period in which requests and failures are counted, in whole seconds"
        )
        options.read(
            "openFor", into: &openFor, in: .milliseconds(1) ... .seconds(3600),
            doc: "how long the open circuit refuses all requests before it tests the service")
        options.read(
            "halfOpen", into: &halfOpen, in: 1...1000,
            doc: "number of test requests that must succeed before the circuit closes")
        options.read(
            "failures", into: &failures,
            doc:
                "outcomes that count as failures: statuses, connect (no connection), reset (connection closed early), timeout"
        )
        options.read(
            "status", into: &status, in: HttpStatus.errors,
            doc: "status of the response to refused requests, which also has Retry-After")
        if failures.statuses.isEmpty, failures.kinds.isEmpty, options.isGiven("failures") {
            options.fail(at: "failures", "is empty, so the circuit never opens; write such as [5xx]")
        }
    }
}
