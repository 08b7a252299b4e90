public import HttpWare

/// Lets each client, or whoever the key tells apart, send so many requests in a time.
///
/// | option    | type             | default        | allowed      |
/// |-----------|------------------|----------------|--------------|
/// | `rate`    | rate             | required       | 1/h … 1000000/s |
/// | `burst`   | whole number     | as many as `rate` | 1 … 1000000 |
/// | `key`     | `ip`, `principal`, `header.NAME`, `cookie.NAME`, `jwt.CLAIM`, `route`, or a list of them | `ip` | |
/// | `store`   | `memory`, or a redis store | `memory` |          |
/// | `name`    | text             | none           | with a redis store |
/// | `onError` | `memory`, `allow`, `refuse` | `memory` |           |
/// | `mode`    | `reject`, `delay` | `reject`      |              |
/// | `status`  | status           | `429`          | 400 … 599    |
/// | `headers` | list of `RateLimit`, `RateLimit-Policy`, `Retry-After` | all | |
///
/// All loops share one table: its parts are behind mutexes. With a redis store all gateways that name it share one limit.
public struct RateLimit: Middleware, Postware, CountingWare {
    /// What happens to a request that is over the limit.
    public enum Mode: String, OptionWord {
        case reject
        /// It waits until it is within the limit, if that is soon.
        case delay
    }

    /// What becomes of a request where the store does not answer within its `timeout`.
    public enum OnError: String, OptionWord {
        /// The gateway counts it by itself.
        case memory
        /// It passes.
        case allow
        /// It is answered with 503 (Service Unavailable).
        case refuse
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

    public let onError: OnError

    private let limit: Gcra
    /// `nil` where the gateway counts by itself.
    private let shared: SharedRate?
    private let table = RateTable()
    /// The lines that tell the client, the last of them up to the first number that changes where `RateLimit` is one.
    private let told: FieldBlock
    private let tellsLeft: Bool
    private var tells: Bool { !told.isEmpty }
    /// The longest wait, in nanoseconds.
    private let patience: Int64

    public var holdsState: Bool { true }
    public var counter: any WareCounter { table }

    /// Without a `burst` as many as `rate` names may come at once. With a `store` it is counted there, together with all limits of
    /// that name, rate, burst and key.
    public init(
        _ rate: Rate, burst: Int? = nil, key: RequestKey = .ip, mode: Mode = .reject,
        status: HttpStatus = .tooManyRequests, headers: Set<Field> = Set(Field.allCases), store: RedisClient? = nil,
        name: String = "", onError: OnError = .memory
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
        var told: [FieldLine] = []
        // A word and two numbers are a field value.
        if headers.contains(.policy),
            let line = try? FieldLine("RateLimit-Policy", "\"\(key.word)\";q=\(burst);w=\(seconds)")
        {
            told.append(line)
        }
        tellsLeft = headers.contains(.rateLimit)
        if tellsLeft, let line = try? FieldLine("RateLimit", "\"\(key.word)\";r=") { told.append(line) }
        self.told = FieldBlock(told)
        patience = mode == .delay ? min(limit.tolerance, 10_000_000_000) : 0
        self.onError = onError
        shared = store.map { [limit, patience] in
            let name = "\(rate.optionText) \(burst) \(key.optionText) \(name)"
            return SharedRate($0, name: name, limit, patience: patience)
        }
    }

    // MARK: Requests

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        guard let shared else { return decide(takeHere(request, exchange), exchange) }
        guard shared.client.mayAnswer else { return doWithout(request, exchange) }
        let digest = key.digest(request, exchange)
        return .wait { request, exchange in
            guard let decision = await shared.take(digest) else { return doWithout(request, exchange) }
            table.count(decision)
            return decide(decision, exchange)
        }
    }

    private func takeHere(_ request: borrowing HttpRequest, _ exchange: Exchange) -> Gcra.Decision {
        table.take(key.number(request, exchange), limit, at: exchange.now, patience: patience)
    }

    /// The store does not answer.
    private func doWithout(_ request: borrowing HttpRequest, _ exchange: Exchange) -> Verdict {
        table.noAnswer(isRefused: onError == .refuse)
        exchange.note("the store does not answer")
        switch onError {
        case .memory: return decide(takeHere(request, exchange), exchange)
        case .allow: return .pass
        case .refuse:
            var response = HttpResponse.problem(.serviceUnavailable, "requests cannot be counted")
            response.fields.append(FieldLine(.retryAfter, number: 1))
            return .abort(with: response)
        }
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
        remember(standing, in: &exchange[Standings.self])
    }

    private func remember(_ standing: RateStandings.Standing, in standings: inout RateStandings?) {
        if standings == nil { standings = RateStandings() }
        standings?[table] = standing
    }

    // MARK: Responses

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        if tells, let standing = exchange[Standings.self]?[table] { tell(&response, standing) }
        return .pass
    }

    /// `RateLimit-Policy: "ip";q=100;w=60` and `RateLimit: "ip";r=50;t=30`: lists of items, so that several limits, and the origin
    /// server's own, can stand beside each other. draft-ietf-httpapi-ratelimit-headers-10 §3 and §4.
    private func tell(_ response: inout HttpResponse, _ standing: RateStandings.Standing) {
        guard tellsLeft else { return response.fields.append(told) { _ in } }
        response.fields.append(told) {
            $0.write(Int(standing.left))
            $0.write(";t=")
            $0.write(Int(standing.seconds))
        }
    }

    private static func seconds(_ nanoseconds: Int64) -> Int {
        Int((max(0, nanoseconds) + 999_999_999) / 1_000_000_000)
    }

    private enum Standings: ExchangeKey { typealias Value = RateStandings }
}

extension RateLimit: KeyedWare {
    public var keys: [RequestKey] { key.parts }
}

extension RateLimit: ConfigurableWare {
    public static let name: WareName = "rateLimit"
    public static let about = WareAbout(
        "Lets each client, or whoever its key tells apart, send so many requests in a time.",
        source: "draft-ietf-httpapi-ratelimit-headers-10, RFC 6585 §4",
        example: #"""
            - rateLimit: { rate: 600/m, burst: 50, key: header.X-Api-Key }
            - rateLimit: { rate: 10/s, key: [ip, route] }
            """#,
        details: #"""
            `burst` requests may come at once, and then one each time that `rate` allows it (the generic cell rate algorithm). One that is
            over is answered with `status` and `Retry-After`; with `mode: delay` it waits until it is within the rate, if that takes no longer than
            `burst` requests do, 10 s at most, and if no more than 10,000 others wait.

            A limit is one client's (`ip`; of IPv6 the upper 64 bits), one principal's (`principal`: the one that the last
            authenticating ware before this one found, else that of the client's certificate), of one value of a field (`header.NAME`), of a cookie (`cookie.NAME`), or of a claim that a
            ware before this one accepted (`jwt.CLAIM`), or the route's (`route`). With a list each combination has its limit. Requests without an
            address, a principal, the field, the cookie or the claim, or with two such fields, share one limit.

            A field or a cookie is read as it stands at this place of the chain. If a ware before took it away as a credential that it accepted, as
            `apiKey` does, the value that was accepted counts. `check` warns of a key that can never be there.

            It holds for all loops together. At most 65,536 keys are kept: then one that has its whole burst again gives way, or, where
            there is none near it, the one that comes to that first. The response says what is left: `RateLimit-Policy: "ip";q=50;w=5` – the burst, and
            the seconds in which it comes back – and `RateLimit: "ip";r=49;t=1` – what may come now, and when all of it may. The first four limits of a
            chain tell that.

            With the name of a redis store (`stores`) it holds for all gateways that name that store: limits of the same `name`, `rate`, `burst` and
            `key` are one. Redis decides, by its own clock; version 5 or later, or Valkey. Where it does not answer within the store's `timeout`, 40 ms, or failed just
            before, each gateway counts by itself (`onError: memory`), lets the request pass (`allow`), or answers 503 (`refuse`).
            """#)

    public init(options: inout OptionsReader) {
        var rate = Rate(1, per: .second)
        var given: Rate?
        var burst: Int?
        var key = RequestKey.ip
        var store = "memory"
        var name: String?
        var onError = OnError.memory
        var mode = Mode.reject
        var status = HttpStatus.tooManyRequests
        var headers = Field.allCases
        options.read(
            "rate", into: &given, in: Rate(1, per: .hour)...Rate(1_000_000, per: .second),
            doc: "how many may come in which time")
        options.require("rate")
        options.read("burst", into: &burst, in: 1...1_000_000, doc: "how many may come at once; as many as rate names")
        options.readKey(
            "key", into: &key, doc: "what tells those apart who have a limit each; a list is all of them together")
        options.read("store", into: &store, doc: "where it is counted: in memory, or in a redis store for all gateways")
        options.read("name", into: &name, doc: "tells limits of one store apart that have the same rate, burst and key")
        options.read("onError", into: &onError, doc: "what becomes of a request where the store does not answer")
        options.read("mode", into: &mode, doc: "what happens to a request that is over the limit")
        options.read("status", into: &status, in: HttpStatus.errors, doc: "of the refusal")
        options.read("headers", into: &headers, doc: "which fields tell the client")
        var redis: RedisClient?
        if store != "memory" {
            redis = options.findRedis(store, for: "store")
        } else {
            for key in ["name", "onError"] where options.isGiven(key) {
                options.fail(at: key, "means nothing without a redis store; write store: NAME")
            }
        }
        rate = given ?? rate
        self.init(
            rate, burst: burst, key: key, mode: mode, status: status, headers: Set(headers), store: redis,
            name: name ?? "", onError: onError)
    }
}
