public import HttpWare

/// Lets so many requests be under way at once; a few more may wait for one of them to end.
///
/// | option         | type         | default | allowed       |
/// |----------------|--------------|---------|---------------|
/// | `max`          | whole number | `100`   | 1 … 1000000   |
/// | `key`          | `ip`, `principal`, `header.NAME`, `cookie.NAME`, `jwt.CLAIM`, `route`, or a list of them | one limit for all | |
/// | `queue`        | whole number | `0`     | 0 … 10000     |
/// | `queueTimeout` | duration     | `1s`    | 1ms … 1h      |
/// | `priority`     | `header.NAME`, or map of routes to whole numbers | all the same | -1000 … 1000 |
/// | `status`       | status       | `503`   | 400 … 599     |
///
/// All loops share the slots: they are behind a mutex.
public struct Concurrency: Middleware, CountingWare {
    /// How many are under way at most, for each key.
    public var max: Int
    /// What tells those apart who have a limit each; `nil` is one limit for all.
    public var key: RequestKey?
    /// How many wait at most, for each key.
    public var queue: Int
    /// How long each waits.
    public var queueTimeout: Duration
    /// Who of those that wait goes first.
    public var priority: RequestPriority
    /// Of the refusal.
    public var status: HttpStatus

    private let slots = ConcurrencySlots()

    public var holdsState: Bool { true }
    public var counter: any WareCounter { slots }

    public init(
        max: Int = 100, key: RequestKey? = nil, queue: Int = 0, queueTimeout: Duration = .seconds(1),
        priority: RequestPriority = .none, status: HttpStatus = .serviceUnavailable
    ) {
        self.max = max
        self.key = key
        self.queue = queue
        self.queueTimeout = queueTimeout
        self.priority = priority
        self.status = status
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        let others = exchange[Held.self]
        // It was here before, and came again.
        if others != nil, slots.held(among: others) != nil { return .pass }
        let number = key?.number(request, exchange) ?? 0
        let priority = priority.number(request, exchange)
        let entry = slots.enter(number, priority: priority, most: max, queue: queue, holding: others)
        guard case .full = entry, let look = slots.makeLook() else { return take(entry, exchange) }
        return .wait { _, exchange in
            try await slots.take(look, within: queueTimeout)
            // A request whose client has left takes no slot: its exchange is over, and would not give it back.
            try Task.checkCancellation()
            return take(
                slots.enter(number, priority: priority, most: max, queue: queue, holding: others), exchange)
        }
    }

    private func take(_ entry: ConcurrencySlots.Entry, _ exchange: Exchange) -> Verdict {
        switch entry {
        case .full: return refuse(exchange)
        case .held(let slot):
            keep(slot, exchange)
            return .pass
        case .waiting(let slot):
            keep(slot, exchange)
            return .wait { _, exchange in
                guard try await slots.wait(for: slot, queueTimeout) else { return refuse(exchange) }
                if slot.priority != 0 { exchange.note("with priority \(slot.priority)") }
                return .pass
            }
        }
    }

    /// However the exchange ends, its slot is free before the client can know.
    private func keep(_ slot: ConcurrencySlots.Slot, _ exchange: Exchange) {
        exchange[Held.self] = slot
        exchange.beforeEnd { slots.leave(slot) }
    }

    private func refuse(_ exchange: Exchange) -> Verdict {
        slots.noteRefusal()
        exchange.note(
            "rejected: \(max) at once\(key.map { " for \($0.text(exchange))" } ?? "")", asDecision: true)
        var response = HttpResponse.problem(status, "too many requests are under way")
        response.fields.set(.retryAfter, to: 1)
        return .abort(with: response)
    }

    /// The slots of the exchange, the last one first.
    private enum Held: ExchangeKey { typealias Value = ConcurrencySlots.Slot }
}

extension Concurrency: KeyedWare {
    public var keys: [RequestKey] { key?.parts ?? [] }
}

extension Concurrency: ConfigurableWare {
    public static let name: WareName = "concurrency"
    public static let about = WareAbout(
        "Lets so many requests be under way at once; a few more may wait for one of them to end.",
        source: "Traefik inFlightReq",
        example: #"""
            - concurrency: { max: 50, queue: 200, queueTimeout: 2s, priority: { checkout: 10, reports: -10 } }
            """#,
        details: #"""
            `max` requests are under way at most, from here to the end of the response, in all loops together; with a `key`, so many of each, as
            `rateLimit` has them. `queue` more may wait, at most for `queueTimeout`: those with the higher `priority` go first, equal ones in the
            order of coming. All others are answered with `status` and `Retry-After`. A slot is free just before the last byte of the response is
            sent, or when its exchange ends in another way, so that the client's next request finds it free. A client that leaves gives up
            its place. A tunnel holds its slot until it is closed.

            `priority` is the number in a field (`header.NAME`), which anybody can write who can send the field, or each route's by its name. What
            has none has 0.
            """#)

    public init(options: inout OptionsReader) {
        self.init()
        options.read("max", into: &max, in: 1...1_000_000, doc: "how many are under way at once")
        options.readKey(
            "key", into: &key,
            doc:
                "what tells those apart who have a limit each, a list is all of them together; without it all share one"
        )
        options.read("queue", into: &queue, in: 0...10_000, doc: "how many may wait")
        options.read(
            "queueTimeout", into: &queueTimeout, in: .milliseconds(1) ... .seconds(3600), doc: "how long each waits")
        priority = RequestPriority("priority", &options, doc: "who of them goes first: higher ones")
        options.read("status", into: &status, in: HttpStatus.errors, doc: "of the refusal, with Retry-After")
    }
}
