import HttpWareTesting
import Testing

@testable import HttpWare
@testable import HttpWareRedis
@testable import Wares

/// Limits that are counted in a real Redis server.
@Suite(.timeLimit(.minutes(2))) struct SharedRateTests {
    private let fewAnHour = Rate(1, per: .hour)

    /// Has time for a server that is there: a busy machine takes it.
    private func patientClient(_ redis: TestRedis) throws -> RedisClient {
        var definition = try redis.definition
        definition.timeout = .seconds(10)
        return RedisClient(definition)
    }

    /// A gateway with a limit that is counted there.
    private func gateway(_ redis: TestRedis, _ limit: (RedisClient) -> RateLimit) throws -> TestExchange {
        try TestExchange([limit(try patientClient(redis))])
    }

    private func statuses(_ gateways: [TestExchange], _ count: Int) async throws -> [Int] {
        var statuses: [Int] = []
        for index in 0..<count {
            statuses.append(try await gateways[index % gateways.count].send(.get("/")).status.code)
        }
        return statuses
    }

    @Test func `gateways that name one store obey one limit`() async throws {
        let redis = try TestRedis()
        let gateways = try (0..<2).map { _ in
            try gateway(redis) { RateLimit(fewAnHour, burst: 5, store: $0, onError: .refuse) }
        }
        #expect(try await statuses(gateways, 8) == [200, 200, 200, 200, 200, 429, 429, 429])
        #expect(gateways[0].upstream.requests.count + gateways[1].upstream.requests.count == 5)
    }

    @Test func `responses say what is left for all gateways together`() async throws {
        let redis = try TestRedis()
        let gateways = try (0..<2).map { _ in try gateway(redis) { RateLimit(fewAnHour, burst: 3, store: $0) } }
        var told: [String] = []
        for gateway in gateways { told.append(try await gateway.send(.get("/")).fields["RateLimit"] ?? "") }
        // The seconds are by the server's own clock, which goes on.
        #expect(told.map { $0.prefix { $0 != "=" } } == [#""ip";r"#, #""ip";r"#])
        #expect(told.map { $0.split(separator: ";")[1] } == ["r=2", "r=1"])
    }

    @Test func `limits of another name, rate, burst or key are apart; those of the same are one`() async throws {
        let redis = try TestRedis()
        let limits: [(RedisClient) -> RateLimit] = [
            { RateLimit(fewAnHour, burst: 1, store: $0) },
            { RateLimit(fewAnHour, burst: 1, store: $0, name: "other") },
            { RateLimit(Rate(2, per: .hour), burst: 1, store: $0) },
            { RateLimit(fewAnHour, burst: 2, store: $0) },
            { RateLimit(fewAnHour, burst: 1, key: .route, store: $0) },
        ]
        let gateways = try limits.map { try gateway(redis, $0) }
        #expect(try await statuses(gateways, 5) == [200, 200, 200, 200, 200])
        let again = try gateway(redis, limits[0])
        #expect(try await statuses([again], 1) == [429])
    }

    @Test func `each key has its own limit, and none of it can be read in the store`() async throws {
        let redis = try TestRedis()
        let client = try patientClient(redis)
        let exchange = try TestExchange([RateLimit(fewAnHour, burst: 1, key: .header("X-Key"), store: client)])
        var statuses: [Int] = []
        for fields in [["X-Key": "s3cret-a"], ["X-Key": "s3cret-b"], ["X-Key": "s3cret-a"]] as [HttpFields] {
            statuses.append(try await exchange.send(.get("/", fields: fields)).status.code)
        }
        statuses.append(try await exchange.send(.get("/")).status.code)
        #expect(statuses == [200, 200, 429, 200])
        let keys = try await client.command(["KEYS", "*"], within: .seconds(30)).array ?? []
        let texts = keys.map { String(decoding: $0.bytes ?? [], as: UTF8.self) }
        #expect(texts.count == 3 && texts.allSatisfy { $0.hasPrefix("httpware:q:") && !$0.contains("s3cret") })
        for key in keys {
            let left = try await client.command(["PTTL", RedisArgument(key.bytes ?? [])], within: .seconds(30)).integer
            #expect((left ?? -1) > 0, "what is as good as forgotten goes by itself")
        }
    }

    @Test func `a server that has forgotten the script, or keeps nonsense, still counts`() async throws {
        let redis = try TestRedis()
        let client = try patientClient(redis)
        let exchange = try TestExchange([RateLimit(fewAnHour, burst: 2, store: client, onError: .refuse)])
        #expect(try await statuses([exchange], 1) == [200])
        _ = try await client.command(["SCRIPT", "FLUSH"], within: .seconds(30))
        #expect(try await statuses([exchange], 2) == [200, 429])
        let key = try await client.command(["KEYS", "*"], within: .seconds(30)).array?.first?.bytes ?? []
        for nonsense in ["nan", "x", "-1e300"] as [RedisArgument] {
            _ = try await client.command(["SET", RedisArgument(key), nonsense], within: .seconds(30))
            #expect(try await statuses([exchange], 1) == [200])
        }
        _ = try await client.command(["SET", RedisArgument(key), "1e300"], within: .seconds(30))
        #expect(try await statuses([exchange], 1) == [429])
    }

    @Test func `with delay a request waits until it is within the rate of all`() async throws {
        let redis = try TestRedis()
        let gateways = try (0..<2).map { _ in
            try gateway(redis) { RateLimit(Rate(6, per: .minute), burst: 1, mode: .delay, store: $0) }
        }
        #expect(try await statuses([gateways[0]], 1) == [200])
        let waiting = await gateways[1].start(.get("/"))
        // The answer comes by the server's own time; the wait is by ours.
        for _ in 0..<30 { await gateways[1].advance(by: .milliseconds(500)) }
        #expect(try await waiting.response().status == .ok)
    }

    // MARK: Without an answer

    @Test(arguments: [
        (RateLimit.OnError.memory, [200, 200, 429, 429]), (.allow, [200, 200, 200, 200]),
        (.refuse, [503, 503, 503, 503]),
    ])
    func `without the store requests are counted here, pass or are refused, as configured`(
        onError: RateLimit.OnError, expected: [Int]
    ) async throws {
        let redis = try TestRedis()
        redis.kill()
        let limit = RateLimit(fewAnHour, burst: 2, store: RedisClient(try redis.definition), onError: onError)
        let exchange = try TestExchange([limit])
        #expect(try await statuses([exchange], 4) == expected)
        #expect(limit.counter.numbers.first { $0.name == "httpware_rate_unanswered_total" }?.value == 4)
        if onError == .refuse {
            #expect(try await exchange.send(.get("/")).fields[.retryAfter] == "1")
        }
    }

    @Test func `a server that is stopped costs no more than 40 ms, and is found again`() async throws {
        let redis = try TestRedis()
        let client = RedisClient(try redis.definition)
        let exchange = try TestExchange([RateLimit(fewAnHour, burst: 3, store: client, onError: .refuse)])
        #expect(try await statuses([exchange], 1) == [200])
        redis.pause()
        let waiting = await exchange.start(.get("/"))
        await exchange.advance(by: RedisDefinition.usualTimeout)
        #expect(try await waiting.response().status == .serviceUnavailable)
        #expect(try await statuses([exchange], 1) == [503], "at once, as the server failed just now")
        redis.resume()
        var last = 503
        for _ in 0..<100 where last == 503 {
            await exchange.advance(by: .seconds(5))
            last = try await statuses([exchange], 1)[0]
        }
        #expect(last != 503)
    }

    @Test func `an answer that the script never gives is ignored`() throws {
        let redis = RedisClient(RedisDefinition(url: try RedisUrl(optionText: "redis://127.0.0.1:1")))
        let rate = RedisRate(redis, name: "a", Gcra(Rate(1, per: .second), burst: 4), patience: 1_000_000_000)
        func decision(_ members: [Int64]) -> Gcra.Decision? { rate.decision(.array(members.map { .integer($0) })) }
        #expect(decision([1, 1_500_000]) == .granted(left: 2, fullIn: 1_500_000_000))
        #expect(decision([0, 2_000_000]) == .refused(for: 2_000_000_000))
        #expect(decision([2, 500_000]) == .delayed(by: 500_000_000))
        for nonsense in [[], [1], [3, 0], [1, -1], [1, .max], [1, 6_000_002], [1, 1, 1]] as [[Int64]] {
            #expect(decision(nonsense) == nil, "\(nonsense)")
        }
        #expect(rate.decision(.null) == nil)
        #expect(rate.decision(.bytes([])) == nil)
        #expect(rate.decision(.array([.integer(1), .error("no")])) == nil)
    }
}
