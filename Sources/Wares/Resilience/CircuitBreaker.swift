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
    /// Whether each service or each endpoint has its own circuit.
    public var per = Scope.service
    /// The response time from which a response counts as a failure; `nil` for no limit.
    public var slow: Duration?
    /// How a refused request is answered.
    public var fallback = Fallback.none

    /// The owner of a circuit.
    public enum Scope: String, OptionWord {
        /// The service.
        case service
        /// Each endpoint of the service.
        case endpoint
    }

    /// The source of responses while the circuit is open.
    public enum Fallback: Sendable, Equatable {
        /// Nothing.
        case none
        /// A response of any age from a cache further out.
        case stored
        /// The service of this name.
        case service(String)
    }

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

    /// Made once, and shared by all exchanges.
    private var watch: EndpointWatch?

    var windowSeconds: Int { (window.milliseconds + 999) / 1000 }

    // MARK: Requests

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        if per == .endpoint { return enterEndpoints(exchange) }
        if slow != nil { exchange[Start.self] = exchange.now }
        return exchange.withServiceNote(Circuit.self, ofPassthrough: false) { $0.isClosed } ?? true
            ? .pass : enterCircuit(exchange)
    }

    /// A function of its own, so that requests of a closed circuit do not pay for it.
    @inline(never)
    private func enterCircuit(_ exchange: Exchange) -> Verdict {
        guard exchange[Diverted.self] != true, let circuit = exchange.serviceNotes?.note(Circuit.self) else {
            return .pass
        }
        switch circuit.admitRequest(probes: halfOpen, at: exchange.now) {
        case .passes: return .pass
        case .probes(let probe):
            exchange.note("probes whether \(exchange.service ?? "") has recovered")
            exchange[Probe.self] = probe
            // If the client leaves, its probe is given up, so that another request can be the probe.
            exchange.onEnd { _ in circuit.gaveUp(probe) }
            return .pass
        case .refused(let pause): return refuse(for: pause, exchange)
        }
    }

    private func enterEndpoints(_ exchange: Exchange) -> Verdict {
        guard exchange[Diverted.self] != true, let notes = exchange.serviceNotes, !notes.isPassthrough else {
            return .pass
        }
        let circuits = notes.note(EndpointCircuits.self)
        let watcher = watch ?? EndpointWatch(self)
        exchange.steering = EndpointSteering(watcher: watcher)
        guard !circuits.areClosed else { return .pass }
        switch circuits.admit(exchange.endpointNames, probes: halfOpen, at: exchange.now) {
        case .passes: break
        case .avoids(let names):
            exchange.note("not sent to \(names.joined(separator: ", ")): the circuit is open")
            exchange.steering?.avoided = names
        case .probes(let name, let circuit, let probe, let names):
            exchange.note("probes whether \(name) has recovered")
            exchange.steering?.preferred = name
            exchange.steering?.avoided = names
            exchange[EndpointProbe.self] = EndpointProbe.Value(name: name, number: probe)
            exchange.onEnd { _ in circuit.gaveUp(probe) }
        case .refused(let pause):
            exchange.steering = nil
            return refuse(for: pause, exchange)
        }
        return .pass
    }

    private func refuse(for pause: Duration, _ exchange: Exchange) -> Verdict {
        let seconds = RetryAfter.seconds(pause)
        let name = exchange.service ?? ""
        if case .service(let other) = fallback, exchange.divert(to: other) {
            exchange[Diverted.self] = true
            exchange.note("sent to \(other): the circuit of \(name) is open for \(seconds)s", asDecision: true)
            return .pass
        }
        if fallback == .stored { exchange[StaleFallback.self] = true }
        exchange.note("rejected: the circuit of \(name) is open for \(seconds)s", asDecision: true)
        // The failure that opened the circuit is the reason for the refusal, unless that was a status.
        let cause =
            per == .service
            ? exchange.serviceNotes?.note(Circuit.self).cause : exchange.serviceNotes?.note(EndpointCircuits.self).cause
        if let cause { exchange[AnswerCause.self] = cause }
        var response = HttpResponse.problem(status, "too many requests to this service failed; the circuit is open")
        response.fields.set(.retryAfter, to: seconds)
        return .abort(with: response)
    }

    // MARK: Responses

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        guard per == .service, exchange[Diverted.self] != true,
            var hasFailed = failures.judge(response.status, exchange)
        else { return .pass }
        if let slow, !hasFailed, let start = exchange[Start.self], exchange.now - start >= slow { hasFailed = true }
        // The origin servers that a forward proxy's clients choose do not share a circuit.
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
            if let sum = circuit.failed(self, by: exchange.failure, at: exchange.now) {
                exchange.note("opened: \(sum.marked) of \(sum.all) failed in \(window.optionText)")
            }
        } else if let probe = exchange[Probe.self] {
            switch circuit.ended(probe, hasFailed: hasFailed, self, by: exchange.failure, at: exchange.now) {
            case .opened: exchange.note("opened again: the probe failed")
            case .closed: exchange.note("closed: \(halfOpen) of \(halfOpen) probes passed")
            case nil: break
            }
        }
    }

    /// Counts an attempt at an endpoint.
    fileprivate func ended(_ endpoint: String, _ outcome: EndpointOutcome, _ time: Duration, _ exchange: Exchange) {
        var hasFailed: Bool
        var failure: GatewayError?
        switch outcome {
        case .answered(let status): hasFailed = failures.statuses.contains(status.code)
        case .failed(let error):
            failure = error
            guard let isFailure = failures.judge(error, error.status) else { return }
            hasFailed = isFailure
        }
        if let slow, time >= slow { hasFailed = true }
        guard let circuits = exchange.serviceNotes?.note(EndpointCircuits.self) else { return }
        let circuit = circuits.circuit(of: endpoint)
        if circuit.isClosed {
            guard hasFailed else { return circuit.passed(at: exchange.now) }
            guard circuit.failed(self, by: failure, at: exchange.now) != nil else { return }
        } else {
            guard let probe = exchange[EndpointProbe.self], probe.name == endpoint,
                circuit.ended(probe.number, hasFailed: hasFailed, self, by: failure, at: exchange.now) == .opened
            else { return }
        }
        circuits.noteOpened()
    }

    /// When the request passed the ware.
    private enum Start: ExchangeKey { typealias Value = LoopInstant }
    /// Whether the request goes to the fallback service, which has its own circuit or none.
    private enum Diverted: ExchangeKey { typealias Value = Bool }
    /// The endpoint that the exchange probes, and the number of the probe.
    private enum EndpointProbe: ExchangeKey {
        struct Value {
            let name: String
            let number: Int
        }
    }
    /// The number of the exchange's probe.
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
            - circuitBreaker: { per: endpoint, slow: 2s, fallback: { stored: true } }
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

            With `slow`, a response that takes that long to begin counts as a failure, too. With `per: endpoint`, each endpoint
            of the service has a circuit: requests avoid endpoints whose circuit is open, and test requests go to them when
            `openFor` is over. Requests are refused only if the circuits of all endpoints are open.

            `fallback` says what a client gets in place of a refusal. `service` names another service of this file, which
            gets the request; `stored: true` allows an `httpCache` before this ware to answer with a stored response of any
            age, unless the response forbids that. A request that carries a token for its own service is not sent to another.

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
        options.read("per", into: &per, doc: "owner of a circuit: the service, or each endpoint of it")
        options.read(
            "slow", into: &slow, in: .milliseconds(1) ... .seconds(3600),
            doc: "time to the beginning of a response from which on it counts as a failure; by default none does")
        options.read("fallback", doc: "answer to requests in place of a refusal while the circuit is open") { options in
            var service: String?
            var isStored = false
            options.readName("service", into: &service, of: "services", doc: "service that gets the requests")
            options.read(
                "stored", into: &isStored, doc: "lets a cache before this ware answer with a stored response of any age"
            )
            if isStored { options.exclusive("service", "stored") }
            if options.isWritten, service == nil, !isStored, !options.hasErrors {
                options.fail("has no effect; write service: NAME or stored: true")
            }
            if let service { fallback = .service(service) } else if isStored { fallback = .stored }
        }
        if per == .endpoint { watch = EndpointWatch(self) }
        options.refuseEmpty("failures", "write such as [5xx], or the circuit never opens")
    }
}

/// Passes the outcomes of attempts to the ware.
private final class EndpointWatch: EndpointWatcher {
    private let ware: CircuitBreaker

    init(_ ware: CircuitBreaker) { self.ware = ware }

    func ended(_ endpoint: String, _ outcome: EndpointOutcome, after time: Duration, in exchange: Exchange) {
        ware.ended(endpoint, outcome, time, exchange)
    }
}
