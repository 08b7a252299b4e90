public import HttpWare

/// Limits the rate of requests per client, or per another key; answers 429 above it.
///
/// All loops share one table, whose parts are guarded by mutexes. With a redis store, all gateways that name it share
/// one limit.
public struct RateLimit: Middleware, Postware, CountingWare {
    /// The treatment of a request above the limit.
    public enum Mode: String, OptionWord {
        /// It is refused.
        case reject
        /// It waits until it is within the limit, if that is soon.
        case delay
    }

    /// The treatment of a request if the store does not answer within its `timeout`.
    public enum OnError: String, OptionWord {
        /// The gateway counts it by itself.
        case memory
        /// It passes.
        case allow
        /// It is answered with 503 (Service Unavailable).
        case refuse
    }

    /// A response field that informs the client of the limit.
    public enum Field: String, OptionWord {
        case rateLimit = "RateLimit"
        case policy = "RateLimit-Policy"
        case retryAfter = "Retry-After"
    }

    /// The number of requests in a period.
    public let rate: Rate
    /// The number of requests that can come at once.
    public let burst: Int
    /// The property of a request by which the limit applies.
    public let key: RequestKey
    /// The treatment of a request above the limit.
    public let mode: Mode
    /// The status of refusals.
    public let status: HttpStatus
    /// The response fields that inform the client of the limit.
    public let headers: Set<Field>
    /// The treatment of a request if the store does not answer.
    public let onError: OnError

    private let limit: Gcra
    /// The shared limit of a store; `nil` if the gateway counts by itself.
    private let shared: (any SharedRate)?
    private let table = RateTable()
    /// The field lines that inform the client. If `RateLimit` is among them, it is last and ends before the first number that
    /// changes.
    private let told: FieldBlock
    private let tellsLeft: Bool
    private var tells: Bool { !told.isEmpty }
    /// The longest wait, in nanoseconds.
    private let patience: Int64

    public var holdsState: Bool { true }
    public var counter: any WareCounter { table }

    /// Without a `burst`, the number in `rate` is the burst. With a `store`, requests are counted there, together with those of
    /// all limits of the same name, rate, burst and key.
    public init(
        _ rate: Rate, burst: Int? = nil, key: RequestKey = .ip, mode: Mode = .reject,
        status: HttpStatus = .tooManyRequests, headers: Set<Field> = Set(Field.allCases),
        store: (any RateServer)? = nil,
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
        // Cannot throw: a word and two numbers are a valid field value.
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
            return $0.rate(limit, name: name, patience: patience)
        }
    }

    // MARK: Requests

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        guard let shared else { return decide(takeHere(request, exchange), exchange) }
        guard shared.mayAnswer else { return doWithout(request, exchange) }
        let digest = key.digest(request, exchange)
        return .wait { request, exchange in
            guard let decision = await shared.countRequest(of: digest) else { return doWithout(request, exchange) }
            table.count(decision)
            return decide(decision, exchange)
        }
    }

    private func takeHere(_ request: borrowing HttpRequest, _ exchange: Exchange) -> Gcra.Decision {
        table.countRequest(of: key.number(request, exchange), limit, at: exchange.now, patience: patience)
    }

    /// Decides without the store, which does not answer.
    private func doWithout(_ request: borrowing HttpRequest, _ exchange: Exchange) -> Verdict {
        table.noAnswer(isRefused: onError == .refuse)
        exchange.note("the store does not answer")
        switch onError {
        case .memory: return decide(takeHere(request, exchange), exchange)
        case .allow: return .pass
        case .refuse:
            var response = HttpResponse.problem(.serviceUnavailable, "requests cannot be counted at the moment")
            response.fields.append(FieldLine(.retryAfter, number: 1))
            return .abort(with: response)
        }
    }

    /// Carries out a decision of the table or of the store.
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
        var response = HttpResponse.problem(status, "the rate limit of \(rate) is exceeded")
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

    /// Adds `RateLimit-Policy: "ip";q=100;w=60` and `RateLimit: "ip";r=50;t=30`. Both fields are lists, so that they can
    /// contain several limits, and the origin server's own. draft-ietf-httpapi-ratelimit-headers-10 §3 and §4.
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

extension RateLimit: Safeguard {}

extension RateLimit: ConfigurableWare {
    public static let name: WareName = "rateLimit"
    public static let chainPlace: ChainPlace? = .rateLimits
    public static let about = WareAbout(
        "Limits the rate of requests per client, or per another key; answers 429 above it.",
        source: "draft-ietf-httpapi-ratelimit-headers-10, RFC 6585 §4",
        example: #"""
            - rateLimit: { rate: 600/m, burst: 50, key: header.X-Api-Key }
            - rateLimit: { rate: 10/s, key: [ip, route] }
            """#,
        details: #"""
            Up to `burst` requests can come at once, and after that one each time `rate` allows it (generic cell rate
            algorithm). A request above the limit is answered with `status` and `Retry-After`. With `mode: delay` it
            waits until it is within the rate, if that takes no longer than `burst` requests at this rate, at most 10 s,
            and if no more than 10,000 other requests wait.

            The `key` decides which requests share a limit: those with the same client address (`ip`; for IPv6 the upper
            64 bits), principal (`principal`), field value (`header.NAME`), cookie (`cookie.NAME`), claim of an accepted
            token (`jwt.CLAIM`) or route (`route`). The principal is that of the last authenticating ware before this
            one, or else that of the client's certificate. With a list of keys, each combination has its own limit.
            Requests without the address, principal, field, cookie or claim, and those in which the field occurs twice,
            share one limit.

            Fields and cookies are read as they are at this place of the chain. If an earlier ware accepted one as a
            credential and removed it, as `apiKey` does, its value still counts. `check` warns of a key that can never
            be present.

            All loops share the limit. At most 65,536 keys are kept. When the table is full, a key with its whole burst
            available is forgotten, or, if none is near, the key that is closest to that. The response informs the
            client: `RateLimit-Policy: "ip";q=50;w=5` is the burst, and the seconds until it is available again;
            `RateLimit: "ip";r=49;t=1` is the number of requests left, and the seconds until all of them are available.
            Only the first four limits of a chain do so.

            With the name of a redis store (`stores`), all gateways that name this store share the limit. Limits with
            the same `name`, `rate`, `burst` and `key` are one limit. The store decides, by its own clock; it must be
            Redis 5 or later, or Valkey. If it does not answer within its `timeout` (40 ms), or failed just before,
            `onError` decides: each gateway counts by itself (`memory`), the request passes (`allow`), or it is answered
            with 503 (`refuse`).
            """#,
        otherNames: ["limitReq", "localRateLimit", "requestLimit"])

    public init(options: inout OptionsReader) {
        let usual = RateLimit(Rate(1, per: .second))
        var rate: Rate?
        var burst: Int?
        var key = usual.key
        var store = "memory"
        var name: String?
        var onError = usual.onError
        var mode = usual.mode
        var status = usual.status
        var headers = Field.allCases.filter(usual.headers.contains)
        options.read(
            "rate", into: &rate, in: Rate(1, per: .hour)...Rate(1_000_000, per: .second),
            doc: "allowed number of requests per period, such as 600/m")
        options.require("rate")
        options.read(
            "burst", into: &burst, in: 1...1_000_000,
            doc: "number of requests accepted at once before the rate applies; by default the number in rate")
        options.readKey(
            "key", into: &key,
            doc: "property of requests that get a limit each, such as ip; with a list, each combination gets one")
        options.read(
            "store", into: &store,
            doc: "where requests are counted: memory of this gateway, or a redis store shared by several gateways")
        options.read(
            "name", into: &name,
            doc: "name of the limit in the redis store; separates limits with the same rate, burst and key")
        options.read(
            "onError", into: &onError,
            doc: "treatment of requests if the redis store does not answer: count in memory, allow, or refuse with 503")
        options.read(
            "mode", into: &mode,
            doc: "treatment of requests above the limit: reject at once, or delay until the rate allows them")
        options.read("status", into: &status, in: HttpStatus.errors, doc: "status of the response to refused requests")
        options.read("headers", into: &headers, doc: "response fields that inform the client of the limit")
        var server: (any RateServer)?
        if store != "memory" { server = options.findServer(store, for: "store") }
        options.useless("name", "onError", with: "store", store, is: "memory", hint: "name a redis store there")
        self.init(
            rate ?? usual.rate, burst: burst, key: key, mode: mode, status: status, headers: Set(headers),
            store: server,
            name: name ?? "", onError: onError)
    }
}
