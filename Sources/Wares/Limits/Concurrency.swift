public import HttpWare

/// Limits the number of concurrent requests, with an optional queue.
///
/// All loops share the slots, which are guarded by a mutex.
public struct Concurrency: Middleware, CountingWare {
    /// The maximum number of concurrent requests, per key.
    public var max: Int
    /// The property of a request by which the limit applies; `nil` is one limit for all requests.
    public var key: RequestKey?
    /// The maximum number of waiting requests, per key.
    public var queue: Int
    /// The maximum wait of a request.
    public var queueTimeout: Duration
    /// The priority by which waiting requests continue; higher ones go first.
    public var priority: ConcurrencyPriority
    /// The status of refusals.
    public var status: HttpStatus

    private let slots = ConcurrencySlots()

    public var holdsState: Bool { true }
    public var counter: any WareCounter { slots }

    public init(
        max: Int = 100, key: RequestKey? = nil, queue: Int = 0, queueTimeout: Duration = .seconds(1),
        priority: ConcurrencyPriority = .none, status: HttpStatus = .serviceUnavailable
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
        // The request passed this ware before, and was sent again.
        if others != nil, slots.held(among: others) != nil { return .pass }
        let number = key?.number(request, exchange) ?? 0
        let priority = priority.number(request, exchange)
        let entry = slots.takeSlot(of: number, priority: priority, most: max, queue: queue, holding: others)
        guard case .full = entry, let look = slots.makeLook() else { return makeVerdict(entry, exchange) }
        return .wait { _, exchange in
            try await slots.waitForLook(look, within: queueTimeout)
            // If the client has left, no slot is taken: the exchange is over and would never free it.
            try Task.checkCancellation()
            return makeVerdict(
                slots.takeSlot(of: number, priority: priority, most: max, queue: queue, holding: others), exchange)
        }
    }

    private func makeVerdict(_ entry: ConcurrencySlots.Entry, _ exchange: Exchange) -> Verdict {
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

    /// Frees the slot before the client sees the end of the exchange, however the exchange ends.
    private func keep(_ slot: ConcurrencySlots.Slot, _ exchange: Exchange) {
        exchange[Held.self] = slot
        exchange.beforeEnd { slots.leave(slot) }
    }

    private func refuse(_ exchange: Exchange) -> Verdict {
        slots.noteRefusal()
        exchange.note(
            "rejected: \(max) at once\(key.map { " for \($0.text(exchange))" } ?? "")", asDecision: true)
        var response = HttpResponse.problem(status, "too many concurrent requests")
        response.fields.set(.retryAfter, to: 1)
        return .abort(with: response)
    }

    /// The slots of the exchange, as a list with the last one first.
    private enum Held: ExchangeKey { typealias Value = ConcurrencySlots.Slot }
}

extension Concurrency: KeyedWare {
    public var keys: [RequestKey] { key?.parts ?? [] }
}

extension Concurrency: Safeguard {}

extension Concurrency: ConfigurableWare {
    public static let name: WareName = "concurrency"
    public static let chainPlace: ChainPlace? = .concurrencyLimits
    public static let about = WareAbout(
        "Limits the number of concurrent requests, with an optional queue.",
        source: "Traefik inFlightReq",
        example: #"""
            - concurrency: { max: 50, queue: 200, queueTimeout: 2s, priority: { checkout: 10, reports: -10 } }
            """#,
        details: #"""
            At most `max` requests run at the same time, in all loops together, from this ware to the end of the
            response. With a `key`, this limit applies to each value of the key; keys are described under `rateLimit`.
            Up to `queue` more requests wait, each for at most `queueTimeout`. Waiting requests continue in the order of
            their `priority`, higher ones first, and requests of equal priority in the order of arrival. All others are
            answered with `status` and `Retry-After`. A slot becomes free just before the last byte of the response is
            sent, or when the exchange ends otherwise, so that the client's next request finds it free. If a client
            leaves while it waits, its place becomes free. A tunnel keeps its slot until it is closed.

            `priority` is either a number in a request field (`header.NAME`), which any client can set, or a number for
            each route, by name. Requests without a number have priority 0.
            """#,
        otherNames: ["inFlightReq", "limitConn", "maxConnections", "bulkhead", "admissionControl"])

    public init(options: inout OptionsReader) {
        self.init()
        options.read(
            "max", into: &max, in: 1...1_000_000,
            doc: "maximum number of requests in progress at the same time; with a key, for each of its values")
        options.readKey(
            "key", into: &key,
            doc:
                "property of requests that get a limit each, such as ip; by default all requests share one limit"
        )
        options.read(
            "queue", into: &queue, in: 0...10_000,
            doc: "maximum number of requests that wait for a free slot; with a key, for each of its values")
        options.read(
            "queueTimeout", into: &queueTimeout, in: .milliseconds(1) ... .seconds(3600),
            doc: "maximum time that a request waits for a free slot before it is refused")
        priority = ConcurrencyPriority(
            "priority", &options,
            doc: "priority of waiting requests, higher first: the number in a request field, or a number per route")
        options.read(
            "status", into: &status, in: HttpStatus.errors,
            doc: "status of the response to refused requests, which also has Retry-After")
    }
}
