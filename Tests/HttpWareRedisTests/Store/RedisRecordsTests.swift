import HttpCaching
import HttpWareTesting
import Testing

@testable import HttpWare
@testable import HttpWareRedis

/// Two gateways' records in one real Redis server.
@Suite(.timeLimit(.minutes(10))) struct RedisRecordsTests {
    private let redis: TestRedis
    private let client: RedisClient
    private let a: RedisRecords
    private let b: RedisRecords

    init() throws {
        redis = try TestRedis()
        // On a busy machine an answer may take longer than usual.
        var definition = try redis.definition
        definition.timeout = .seconds(10)
        client = RedisClient(definition)
        a = RedisRecords(client)
        b = RedisRecords(RedisClient(definition))
    }

    private func key(_ text: String) -> Digest256 { Digest256(of: [text]) }

    @Test func `a record of one gateway is read, replaced and removed by the other one`() async {
        #expect(await b.get(key("x")) == .none)
        #expect(await a.put([1, 0, 13, 10], under: key("x"), for: .seconds(60)) == .kept)
        #expect(await b.get(key("x")) == .record([1, 0, 13, 10]))
        #expect(await b.get(key("y")) == .none)
        #expect(await b.put([], under: key("x"), for: .seconds(60)) == .kept)
        #expect(await a.get(key("x")) == .record([]))
        #expect(await b.remove(key("x")))
        #expect(await a.get(key("x")) == .none)
        #expect(await b.remove(key("x")), "a second removal changes nothing, and did not fail")
    }

    @Test func `of many claims at once one succeeds, and the others get its record`() async {
        let claims = await withTaskGroup(of: (UInt8, RecordClaim).self) { group in
            for number in 0..<20 as Range<UInt8> {
                let records = number % 2 == 0 ? a : b
                group.addTask { (number, await records.claim(key("once"), with: [number], for: .seconds(60))) }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        let taken = claims.filter { $0.1 == .taken }
        #expect(taken.count == 1)
        for (number, claim) in claims where claim != .taken { #expect(claim == .held(taken.map(\.0)), "\(number)") }
        #expect(await a.get(key("once")) == .record(taken.map(\.0)))
    }

    @Test func `a record has the lifetime that it was given, and is gone behind it`() async throws {
        _ = await a.put([1], under: key("long"), for: .seconds(100))
        _ = await a.claim(key("claimed"), with: [2], for: .seconds(100))
        for name in ["long", "claimed"] {
            let left = try await client.command([
                "PTTL", RedisArgument(client.definition.tagged("s:", key(name).hex)),
            ])
            guard case .integer(let milliseconds) = left else { throw RedisFailure(.unavailable, "PTTL: \(left)") }
            #expect((1...100_000).contains(milliseconds), "\(name)")
        }
        #expect(await a.put([3], under: key("short"), for: .zero) == .kept, "a millisecond at least")
        try await eventually { await a.get(key("short")) == .none }
        #expect(await b.claim(key("short"), with: [4], for: .seconds(60)) == .taken)
    }

    @Test func `a server that does not answer is told, and no record is said to be missing`() async {
        _ = await a.put([1], under: key("x"), for: .seconds(60))
        redis.kill()
        #expect(await a.get(key("x")) == .unavailable)
        #expect(await a.put([2], under: key("x"), for: .seconds(60)) == .unavailable)
        #expect(await a.claim(key("y"), with: [2], for: .seconds(60)) == .unavailable)
        #expect(await a.remove(key("x")) == false)
    }

    @Test func `no purge of cached responses visits a record`() async {
        _ = await a.put([1], under: key("x"), for: .seconds(60))
        let store = RedisStore(client)
        _ = await store.purge { _, _ in true }
        #expect(await b.get(key("x")) == .record([1]))
    }
}
