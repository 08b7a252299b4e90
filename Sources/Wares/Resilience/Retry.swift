public import HttpWare

/// Sends failed requests again, if they are safe to repeat, with a pause and within a budget.
public struct Retry: Middleware, Postware {
    /// The maximum number of attempts, including the first.
    public var attempts: Int
    /// The outcomes after which a request is sent again.
    public var retryOn: FailureSet
    /// The methods whose requests are safe to process twice; `nil` for all idempotent methods. RFC 9110 §9.2.2.
    public var methods: [HttpMethod]?
    /// The pause before an attempt: a random part of the lower end, which doubles with each attempt up to the upper end.
    public var backoff: DurationRange
    /// The longest `Retry-After` that is obeyed; a longer one ends the attempts.
    public var retryAfter: Duration
    /// The time limit of each attempt until the response begins; `nil` leaves that of the service.
    public var perTry: Duration?
    /// The maximum size of a request's content that is kept for another attempt.
    public var maxBody: ByteCount
    /// The share of a service's requests of the last ten seconds that can be sent again; ten requests always can.
    public var budget: Ratio

    private let pauses: Backoff

    public var contentNeed: ContentNeed { .kept(upTo: maxBody.bytes) }
    public var mayReplay: Bool { true }
    public var responseStatuses: StatusSet { retryOn.responseStatuses }

    /// With a `seed`, the pauses are the same each time.
    public init(
        attempts: Int = 2,
        retryOn: FailureSet = FailureSet([.connect, .reset], statuses: [502, 503, 504]),
        methods: [HttpMethod]? = nil,
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
        pauses = Backoff(seed: seed ?? ReplaceableRandom.number())
    }

    // MARK: Requests

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        let replays = exchange.record.replays
        if let tries = exchange[Tries.self] {
            // The exchange was replayed by another ware, such as one that holds requests: the count starts again.
            if tries.replays != replays { exchange[Tries.self] = TryCount(replays: replays) }
        } else {
            exchange[Tries.self] = TryCount(replays: replays)
            // Makes the budget exist from the first request on, so that reports show it.
            exchange.withServiceNote(RetryBudget.self) { _ in }
        }
        if let perTry { exchange.timeouts.perTry = perTry }
        return .pass
    }

    // MARK: Responses

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        guard retryOn.judge(response.status, exchange) == true else { return .pass }
        return makeAnswer(response, exchange)
    }

    private func makeAnswer(_ response: HttpResponse, _ exchange: Exchange) -> Answer {
        let tries = exchange[Tries.self]?.count ?? 1
        guard tries < attempts else {
            if attempts > 1 { exchange.note("not retried: that was the \(Retry.ordinal(tries)) of \(attempts)") }
            return .pass
        }
        guard let request = exchange.request else { return .pass }
        let method = request.method
        // A request that was not sent, or not looked at, cannot have been processed.
        let isUntouched = exchange.failure.map { $0.fault.isBeforeRequest || $0.isUnprocessed } ?? false
        guard isUntouched || methods?.contains(method) ?? method.isIdempotent else {
            exchange.note("not retried: \(method) is not safe to repeat")
            return .pass
        }
        let content = request.content
        let size = content.isEmpty ? 0 : content.bytes?.count ?? max(content.length ?? 0, exchange.record.requestBytes)
        guard exchange.reopensContent || size <= maxBody.bytes && !exchange.record.outgrewKept else {
            exchange.note("not retried: the content is larger than \(maxBody)")
            exchange[NotRepeatable.self] = .isFinal
            return .pass
        }
        var pause = pauses.pause(before: tries, in: backoff)
        if exchange.responder == .upstream, let asked = RetryAfter.pause(response, at: exchange.wallNow) {
            guard asked <= retryAfter else {
                exchange.note("not retried: the response asks to wait for \(RetryAfter.seconds(asked))s")
                return .pass
            }
            pause = max(pause, asked)
        }
        if let deadline = exchange.deadline, exchange.now + pause >= deadline {
            exchange.note("not retried: there is no time left")
            return .pass
        }
        if let notes = exchange.serviceNotes,
            !notes.note(RetryBudget.self).takeRetry(budget, of: notes.requests, at: exchange.now)
        {
            exchange.note("not retried: the retry budget of \(notes.name) is spent")
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

    /// The number of attempts, shared by all entries of `retry` in a chain, so that two entries do not multiply their attempts.
    private enum Tries: ExchangeKey { typealias Value = TryCount }
    private struct TryCount {
        var count = 1
        /// The number of replays that the exchange has at that count.
        let replays: Int
    }
}

extension Retry: ConfigurableWare {
    public static let name: WareName = "retry"
    public static let chainPlace: ChainPlace? = .retry
    public static let about = WareAbout(
        "Sends failed requests again, if they are safe to repeat, with a pause and within a budget.",
        source: "RFC 9110 §9.2.2 and §10.2.3, Envoy",
        example: #"""
            - retry: { attempts: 3, perTry: 2s, backoff: 50ms..1s }
            """#,
        details: #"""
            Failures are described as in `circuitBreaker`: statuses, `connect`, `reset` and `timeout`. Only requests
            with one of `methods` are sent again, by default those with a method that IANA's registry calls idempotent: GET,
            HEAD, OPTIONS, TRACE, QUERY, PUT, DELETE, and most methods of WebDAV. Other requests are sent again if no connection was made, or if the
            origin server says that it did not process them. A request with content is sent again only if all of its
            content was kept. The next attempt uses another endpoint of the service, if there is one. Several entries of
            this ware count together, so that they do not multiply the requests.

            Before each further attempt the ware pauses for a random part of `backoff`: from zero to its lower end, which
            doubles with each attempt up to its upper end. If `Retry-After` is longer, the ware pauses for that. If the
            response asks for a longer wait than `retryAfter`, or too little of the total time is left, the response is
            passed on unchanged.

            `budget` limits the repeated requests to a share of all requests that went to the service in the last ten
            seconds, by any route and loop. Ten repeated requests in that time are always allowed. `perTry` ends an attempt
            whose response has not begun in time, with 504.
            """#,
        otherNames: ["retries", "proxyNextUpstream"])

    public init(options: inout OptionsReader) {
        self.init()
        options.read("attempts", into: &attempts, in: 1...5, doc: "maximum number of attempts, including the first")
        options.read(
            "retryOn", into: &retryOn,
            doc:
                "outcomes to repeat a request after: statuses, connect (no connection), reset (connection closed early), timeout"
        )
        var listed: [Located<HttpMethod>]?
        options.read(
            "methods", into: &listed,
            doc: "methods whose requests are safe to repeat; by default all idempotent methods")
        methods = listed?.map(\.value)
        for method in listed ?? [] where !method.value.isIdempotent {
            options.warn(
                at: "methods", in: method.location,
                "\"\(method.value)\" is not idempotent: a second attempt may do the work twice (RFC 9110 §9.2.2)")
        }
        options.read(
            "backoff", into: &backoff,
            doc: "range of the random pause before each further attempt: its limit starts at the lower end, and doubles"
        )
        options.read(
            "retryAfter", into: &retryAfter, in: .zero ... .seconds(300),
            doc: "longest Retry-After of a response to wait for; a longer one ends the attempts")
        options.read(
            "perTry", into: &perTry, in: .milliseconds(1) ... .seconds(3600),
            doc: "time limit of each attempt until its response begins; by default only the service's limits apply")
        options.read(
            "maxBody", into: &maxBody, in: .bytes(0) ... .gibibytes(1),
            doc: "maximum size of a request's content that is kept for another attempt")
        options.read(
            "budget", into: &budget,
            doc: "maximum share of a service's requests that are repeated, counted over ten seconds")
        if backoff.upper > .seconds(300) { options.fail(at: "backoff", "is too long; write at most 5m") }
    }
}
