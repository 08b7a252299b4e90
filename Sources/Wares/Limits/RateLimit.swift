public import HttpWare

/// Lets each client, or whoever the key tells apart, send so many requests in a time.
///
/// | option    | type             | default        | allowed      |
/// |-----------|------------------|----------------|--------------|
/// | `rate`    | rate             | required       | 1/h … 1000000/s |
/// | `burst`   | whole number     | as many as `rate` | 1 … 1000000 |
/// | `key`     | `ip`, `header.NAME`, `jwt.CLAIM`, `route` | `ip` | |
/// | `store`   | `memory`         | `memory`       |              |
/// | `mode`    | `reject`, `delay` | `reject`      |              |
/// | `status`  | status           | `429`          | 400 … 599    |
/// | `headers` | list of `RateLimit`, `RateLimit-Policy`, `Retry-After` | all | |
///
/// All loops share one table: its parts are behind mutexes.
public struct RateLimit: Middleware, Postware, CountingWare {
    /// What happens to a request that is over the limit.
    public enum Mode: String, OptionWord {
        case reject
        /// It waits until it is within the limit, if that is soon.
        case delay
    }

    /// A field that tells the client.
    public enum Field: String, OptionWord {
        case rateLimit = "RateLimit"
        case policy = "RateLimit-Policy"
        case retryAfter = "Retry-After"
    }

    public let rate: Rate
    /// How many may come at once.
    public let burst: Int
    public let key: RequestKey
    public let mode: Mode
    /// Of the refusal.
    public let status: HttpStatus
    public let headers: Set<Field>

    private let limit: Gcra
    private let table = RateTable()
    /// What `RateLimit-Policy` says; `nil` where it is not sent.
    private let policy: FieldLine?
    private let tells: Bool
    /// The longest wait, in nanoseconds.
    private let patience: Int64

    public var holdsState: Bool { true }
    public var counter: any WareCounter { table }

    /// Without a `burst` as many as `rate` names may come at once.
    public init(
        _ rate: Rate, burst: Int? = nil, key: RequestKey = .ip, mode: Mode = .reject,
        status: HttpStatus = .tooManyRequests, headers: Set<Field> = Set(Field.allCases)
    ) {
        let burst = max(1, burst ?? rate.count)
        self.rate = rate
        self.burst = burst
        self.key = key
        self.mode = mode
        self.status = status
        self.headers = headers
        limit = Gcra(rate, burst: burst)
        let seconds = max(1, (limit.tolerance + 999_999_999) / 1_000_000_000)
        policy =
            headers.contains(.policy)
            // A word and two numbers are a field value.
            ? try? FieldLine("RateLimit-Policy", "\"\(key.word)\";q=\(burst);w=\(seconds)") : nil
        tells = headers.contains(.policy) || headers.contains(.rateLimit)
        patience = mode == .delay ? min(limit.tolerance, 10_000_000_000) : 0
    }

    // MARK: Requests

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        decide(
            table.take(key.number(request, exchange), limit, at: exchange.now, patience: patience), exchange)
    }

    /// Does what was decided, wherever that was.
    private func decide(_ decision: Gcra.Decision, _ exchange: Exchange) -> Verdict {
        switch decision {
        case .granted(let left, let fullIn):
            if tells { note(left, fullIn, exchange) }
            return .pass
        case .refused(let pause): return refuse(for: pause, exchange)
        case .delayed(let pause):
            guard table.beginWait() else { return refuse(for: pause, exchange) }
            if tells { note(0, limit.tolerance, exchange) }
            return .wait { _, exchange in
                defer { table.endWait() }
                try await exchange.sleep(for: .nanoseconds(pause))
                exchange.note("\(rate) for \(key.text(exchange))")
                return .pass
            }
        }
    }

    private func refuse(for pause: Int64, _ exchange: Exchange) -> Verdict {
        exchange.note("rejected: \(rate) for \(key.text(exchange))", asDecision: true)
        var response = HttpResponse.problem(status, "more than \(rate) requests")
        if tells {
            tell(&response, .init(left: 0, seconds: RateLimit.seconds(limit.tolerance + pause - limit.interval)))
        }
        if headers.contains(.retryAfter) {
            response.fields.set(.retryAfter, to: max(1, RateLimit.seconds(pause)))
        }
        return .abort(with: response)
    }

    private func note(_ left: Int, _ fullIn: Int64, _ exchange: Exchange) {
        let standing = RateStandings.Standing(left: left, seconds: RateLimit.seconds(fullIn))
        if exchange[Standings.self] == nil { exchange[Standings.self] = RateStandings() }
        exchange[Standings.self]?[table] = standing
    }

    // MARK: Responses

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        if tells, let standing = exchange[Standings.self]?[table] { tell(&response, standing) }
        return .pass
    }

    /// `RateLimit-Policy: "ip";q=100;w=60` and `RateLimit: "ip";r=50;t=30`: lists of items, so that several limits, and the origin
    /// server's own, can stand beside each other. draft-ietf-httpapi-ratelimit-headers-10 §3 and §4.
    private func tell(_ response: inout HttpResponse, _ standing: RateStandings.Standing) {
        if let policy { response.fields.append(policy) }
        guard headers.contains(.rateLimit) else { return }
        response.fields.append(RateLimit.fieldName) {
            $0.write("\"")
            $0.write(key.word)
            $0.write("\";r=")
            $0.write(standing.left)
            $0.write(";t=")
            $0.write(standing.seconds)
        }
    }

    private static func seconds(_ nanoseconds: Int64) -> Int {
        Int((max(0, nanoseconds) + 999_999_999) / 1_000_000_000)
    }

    private static let fieldName: FieldName = "RateLimit"

    private enum Standings: ExchangeKey { typealias Value = RateStandings }
}

extension RateLimit: ConfigurableWare {
    public static let name: WareName = "rateLimit"
    public static let about = WareAbout(
        "Lets each client, or whoever its key tells apart, send so many requests in a time.",
        source: "draft-ietf-httpapi-ratelimit-headers-10, RFC 6585 §4",
        example: #"""
            - rateLimit: { rate: 600/m, burst: 50, key: header.X-Api-Key }
            """#,
        details: #"""
            `burst` requests may come at once, and then one each time that `rate` allows it (the generic cell rate algorithm). One that is
            over is answered with `status` and `Retry-After`; with `mode: delay` it waits until it is within the rate, if that takes no longer than
            `burst` requests do, 10 s at most, and if no more than 10,000 others wait.

            A limit is one client's (`ip`; of IPv6 the upper 64 bits), of one value of a field (`header.NAME`), of one value of a claim that a
            ware before this one accepted (`jwt.CLAIM`), or the route's (`route`). Requests without an address, the field or the claim, or with
            two such fields, share one limit.

            It holds for all loops together. At most 65,536 keys are kept: then one that has its whole burst again gives way, or, where
            there is none near it, the one that comes to that first. The response says what is left: `RateLimit-Policy: "ip";q=50;w=5` – the burst, and
            the seconds in which it comes back – and `RateLimit: "ip";r=49;t=1` – what may come now, and when all of it may. The first four limits of a
            chain tell that.
            """#)

    public init(options: inout OptionsReader) {
        var rate = Rate(1, per: .second)
        var given: Rate?
        var burst: Int?
        var key = RequestKey.ip
        var store = "memory"
        var mode = Mode.reject
        var status = HttpStatus.tooManyRequests
        var headers = Field.allCases
        options.read(
            "rate", into: &given, in: Rate(1, per: .hour)...Rate(1_000_000, per: .second),
            doc: "how many may come in which time")
        options.require("rate")
        options.read("burst", into: &burst, in: 1...1_000_000, doc: "how many may come at once; as many as rate names")
        options.read("key", into: &key, doc: "what tells those apart who have a limit each")
        options.read("store", into: &store, doc: "where it is counted")
        options.read("mode", into: &mode, doc: "what happens to a request that is over the limit")
        options.read("status", into: &status, in: HttpStatus.errors, doc: "of the refusal")
        options.read("headers", into: &headers, doc: "which fields tell the client")
        if store != "memory" {
            options.fail(at: "store", "\"\(store)\" is not supported yet: limits are kept in memory; write memory")
        }
        rate = given ?? rate
        self.init(rate, burst: burst, key: key, mode: mode, status: status, headers: Set(headers))
    }
}
