public import HttpWare

/// Stops asking a service that fails: once too many of the last requests failed, none goes there for a while, then a few find out
/// whether it is well again.
///
/// | option         | type            | default                   | allowed   |
/// |----------------|-----------------|---------------------------|-----------|
/// | `failureRatio` | ratio           | `0.5`                     |           |
/// | `minRequests`  | whole number    | `20`                      | 1 … 1000000 |
/// | `window`       | duration        | `10s`                     | 1s … 5m   |
/// | `openFor`      | duration        | `10s`                     | 1ms … 1h  |
/// | `halfOpen`     | whole number    | `3`                       | 1 … 1000  |
/// | `failures`     | set of failures | `[connect, timeout, 5xx]` |           |
/// | `status`       | status          | `503`                     | 400 … 599 |
///
/// The circuit is the service's: all loops, and all entries of this ware for the service, share it.
public struct CircuitBreaker: Middleware, Postware {
    /// The part of the requests that has to fail.
    public var failureRatio: Ratio
    /// How many there have to be before they are judged.
    public var minRequests: Int
    /// How far back they are counted, in whole seconds.
    public var window: Duration
    /// How long no request goes there.
    public var openFor: Duration
    /// How many have to pass then, one after the other or at once.
    public var halfOpen: Int
    /// What counts as failed.
    public var failures: FailureSet
    /// Of what is answered while none goes there.
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
        exchange.withServiceNote(Circuit.self, ofPassthrough: false) { $0.isClosed } ?? true ? .pass : enter(exchange)
    }

    /// Apart from those whose circuit is closed.
    @inline(never)
    private func enter(_ exchange: Exchange) -> Verdict {
        guard let circuit = exchange.serviceNotes?.note(Circuit.self) else { return .pass }
        switch circuit.enter(probes: halfOpen, at: exchange.now) {
        case .passes: return .pass
        case .probes(let probe):
            exchange.note("probes whether \(exchange.service ?? "") is well again")
            exchange[Probe.self] = probe
            // A client that leaves takes its probe along, and another request may be one.
            exchange.onEnd { _ in circuit.gaveUp(probe) }
            return .pass
        case .refused(let pause):
            let seconds = RetryAfter.seconds(pause)
            exchange.note(
                "rejected: the circuit of \(exchange.service ?? "") is open for \(seconds)s", asDecision: true)
            var response = HttpResponse.problem(status, "too many requests to this service failed; it is left alone")
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
    public static let about = WareAbout(
        "Stops asking a service that fails, and finds out after a while whether it is well again.",
        source: "Traefik circuitBreaker, Polly",
        example: #"""
            - circuitBreaker: { failureRatio: 30%, minRequests: 50, openFor: 30s }
            """#,
        details: #"""
            It counts what becomes of each try in the last `window`, in whole seconds: one of `failures`, or not. Once there were
            `minRequests`, and `failureRatio` of them failed, the circuit opens, and for `openFor` every request is answered with
            `status` and `Retry-After`. Then it is half-open: `halfOpen` requests go there, the others are still refused. Have all of
            them passed, it closes; the first that fails opens it again.

            The circuit is the service's: all loops share it, all entries of this ware, and reloads that do not change the service.
            `/v1/services` and the metrics tell how it is. A status among `failures` means the origin server's response with it, and a
            fault that is told with it; `connect` is a connection that could not be made, `reset` one that ended before the response,
            `timeout` any step that took too long. The origins of `passthrough` have nothing in common, so requests there just pass.

            It stands behind `retry`, so that it counts tries.
            """#)

    public init(options: inout OptionsReader) {
        self.init()
        options.read("failureRatio", into: &failureRatio, doc: "the part of the requests that has to fail")
        options.read("minRequests", into: &minRequests, in: 1...1_000_000, doc: "how many there have to be")
        options.read(
            "window", into: &window, in: .seconds(1) ... .seconds(300), doc: "how far back they count, in whole seconds"
        )
        options.read(
            "openFor", into: &openFor, in: .milliseconds(1) ... .seconds(3600), doc: "how long none goes there then")
        options.read("halfOpen", into: &halfOpen, in: 1...1000, doc: "how many have to pass before it closes")
        options.read("failures", into: &failures, doc: "what counts: statuses, `connect`, `reset`, `timeout`")
        options.read("status", into: &status, in: HttpStatus.errors, doc: "of what is refused, with Retry-After")
        if failures.statuses.isEmpty, failures.kinds.isEmpty, options.isGiven("failures") {
            options.fail(at: "failures", "names nothing, so nothing ever fails")
        }
    }
}
