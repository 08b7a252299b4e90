public import HttpWare

/// Sends a request again that failed, if that can do no harm and may help.
///
/// | option       | type              | default                            | allowed      |
/// |--------------|-------------------|------------------------------------|--------------|
/// | `attempts`   | whole number      | `2`                                | 1 … 5        |
/// | `retryOn`    | set of failures   | `[connect, reset, 502, 503, 504]`  |              |
/// | `methods`    | list of methods   | the idempotent ones                |              |
/// | `backoff`    | range of durations | `100ms..2s`                       |              |
/// | `retryAfter` | duration          | `10s`                              | 0s … 5m      |
/// | `perTry`     | duration          | none                               | 1ms … 1h     |
/// | `maxBody`    | byte count        | `1MiB`                             | 0B … 1GiB    |
/// | `budget`     | ratio             | `0.2`                              |              |
public struct Retry: Middleware, Postware {
    /// How often a request is sent at most, the first time included.
    public var attempts: Int
    /// What is worth another try.
    public var retryOn: FailureSet
    /// The methods whose requests may be processed twice. RFC 9110 §9.2.2.
    public var methods: [HttpMethod]
    /// How long is waited before a try: a random part of the lower end, doubled for each further one up to the upper end.
    public var backoff: DurationRange
    /// The longest `Retry-After` that is waited for; a longer one is the end.
    public var retryAfter: Duration
    /// How long each try may take until the response's head; `nil` leaves it to the service.
    public var perTry: Duration?
    /// The most content that a request may have to be sent again.
    public var maxBody: ByteCount
    /// The part of a service's requests that may be sent again: of all that went upstream in the last ten seconds; ten always may.
    public var budget: Ratio

    private let pauses: Backoff

    public var contentNeed: ContentNeed { .kept(upTo: maxBody.bytes) }
    public var mayReplay: Bool { true }
    public var responseStatuses: StatusSet { retryOn.responseStatuses }

    /// A `seed` makes the pauses the same each time.
    public init(
        attempts: Int = 2,
        retryOn: FailureSet = FailureSet([.connect, .reset], statuses: [502, 503, 504]),
        methods: [HttpMethod] = [.get, .head, .options, .trace, .put, .delete],
        backoff: ClosedRange<Duration> = .milliseconds(100) ... .seconds(2), retryAfter: Duration = .seconds(10),
        perTry: Duration? = nil, maxBody: ByteCount = .mebibytes(1), budget: Ratio = 0.2, seed: UInt64? = nil
    ) {
        self.attempts = attempts
        self.retryOn = retryOn
        self.methods = methods
        self.backoff = DurationRange(backoff)
        self.retryAfter = retryAfter
        self.perTry = perTry
        self.maxBody = maxBody
        self.budget = budget
        pauses = Backoff(seed: seed ?? .random(in: .min ... .max))
    }

    // MARK: Requests

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        let replays = exchange.record.replays
        if let tries = exchange[Tries.self] {
            // Not one of ours: a request that was held, say, begins anew.
            if tries.replays != replays { exchange[Tries.self] = TryCount(replays: replays) }
        } else {
            exchange[Tries.self] = TryCount(replays: replays)
            // Known from the first request on, to those who ask what was sent again.
            exchange.withServiceNote(RetryBudget.self) { _ in }
        }
        if let perTry { exchange.timeouts.perTry = perTry }
        return .pass
    }

    // MARK: Responses

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        guard retryOn.judge(response.status, exchange) == true else { return .pass }
        return answer(response, exchange)
    }

    private func answer(_ response: HttpResponse, _ exchange: Exchange) -> Answer {
        let tries = exchange[Tries.self]?.count ?? 1
        guard tries < attempts else {
            if attempts > 1 { exchange.note("not retried: that was the \(Retry.ordinal(tries)) of \(attempts)") }
            return .pass
        }
        let method = exchange.request.method
        // What was not sent, or not looked at, cannot have been processed.
        let isUntouched = exchange.failure.map { $0.fault.isBeforeRequest || $0.isUnprocessed } ?? false
        guard isUntouched || methods.contains(method) else {
            exchange.note("not retried: \(method) may not be processed twice")
            return .pass
        }
        let content = exchange.request.content
        let size = content.isEmpty ? 0 : content.bytes?.count ?? max(content.length ?? 0, exchange.record.requestBytes)
        guard size <= maxBody.bytes, !exchange.record.outgrewKept else {
            exchange.note("not retried: the content is larger than \(maxBody)")
            return .pass
        }
        var pause = pauses.pause(before: tries, in: backoff)
        if exchange.responder == .upstream, let asked = RetryAfter.pause(response, at: exchange.wallNow) {
            guard asked <= retryAfter else {
                exchange.note("not retried: it asks to wait for \(RetryAfter.seconds(asked))s")
                return .pass
            }
            pause = max(pause, asked)
        }
        if let deadline = exchange.deadline, exchange.now + pause >= deadline {
            exchange.note("not retried: there is no time left")
            return .pass
        }
        if let notes = exchange.serviceNotes,
            !notes.note(RetryBudget.self).take(budget, of: notes.requests, at: exchange.now)
        {
            exchange.note("not retried: too many requests to \(notes.name) were")
            return .pass
        }
        exchange[Tries.self] = TryCount(count: tries + 1, replays: exchange.record.replays + 1)
        let what = exchange.failure?.proxyStatusName ?? "\(response.status.code)"
        exchange.note("retried after \(what), \(Retry.ordinal(tries + 1)) of \(attempts)", asDecision: true)
        return .replay(after: pause)
    }

    private static func ordinal(_ number: Int) -> String {
        switch number {
        case 1: "1st"
        case 2: "2nd"
        case 3: "3rd"
        default: "\(number)th"
        }
    }

    /// How often the entries sent the request inward, all together: a second one does not multiply what the first one asks for.
    private enum Tries: ExchangeKey { typealias Value = TryCount }
    private struct TryCount {
        var count = 1
        /// How many replays the exchange has then.
        let replays: Int
    }
}

extension Retry: ConfigurableWare {
    public static let name: WareName = "retry"
    public static let about = WareAbout(
        "Sends a request again that failed, if that can do no harm and may help.",
        source: "RFC 9110 §9.2.2 and §10.2.3, Envoy",
        example: #"""
            - retry: { attempts: 3, perTry: 2s, backoff: 50ms..1s }
            """#,
        details: #"""
            A failure is one of `retryOn`, as `circuitBreaker` has them: statuses, `connect`, `reset`, `timeout`. A request is sent again
            with one of `methods` only – another one where no connection was made, or where the origin server says that it did not look
            at it – and with content only if all of it was kept. It goes to another endpoint of the service where there is one. Several entries
            count together, so that they do not multiply the requests.

            Before each further try a random part of `backoff` is waited for: from nothing to its lower end, which doubles up to the upper one; or
            `Retry-After`, if that is longer. Asks the response for more than `retryAfter`, or is less time left for the whole, it goes on as it is.

            `budget` is the part of a service's requests that may be sent again: of all that went upstream in the last ten seconds, by whichever
            route and loop; ten in that time always may. `perTry` ends a try whose response has not begun by then, with 504.
            """#)

    public init(options: inout OptionsReader) {
        self.init()
        options.read("attempts", into: &attempts, in: 1...5, doc: "how often it is sent, the first time included")
        options.read("retryOn", into: &retryOn, doc: "what is worth another try")
        options.read("methods", into: &methods, doc: "which may be processed twice")
        options.read("backoff", into: &backoff, doc: "what is waited for before, at random up to it")
        options.read(
            "retryAfter", into: &retryAfter, in: .zero ... .seconds(300), doc: "the longest Retry-After to wait for")
        options.read(
            "perTry", into: &perTry, in: .milliseconds(1) ... .seconds(3600),
            doc: "how long one may take to the head of its response")
        options.read(
            "maxBody", into: &maxBody, in: .bytes(0) ... .gibibytes(1), doc: "the most content that is kept for it")
        options.read("budget", into: &budget, doc: "the part of a service's requests that may be sent again")
        if backoff.upper > .seconds(300) { options.fail(at: "backoff", "is too long; write at most 5m") }
    }
}
