import HttpWareTesting
import StoreRig
import Testing

@testable import HttpCaching
@testable import HttpWare
@testable import HttpWareRedis

/// Two gateways' stores in one real cluster.
@Suite(.timeLimit(.minutes(10))) struct RedisClusterStoreTests {
    private let cluster: TestCluster
    private let seat: TestLoop
    private let a: RedisStore
    private let b: RedisStore

    init() async throws {
        cluster = try await TestCluster()
        seat = try TestLoop(clock: ManualClock())
        a = RedisStore(RedisClient(try cluster.definition()))
        b = RedisStore(RedisClient(try cluster.definition(2)))
        for store in [a, b] { #expect(await store.client.masters(within: .seconds(5)).count == 3) }
    }

    private func key(_ number: Int) -> CacheKey { CacheKey(Array("http://a.com/\(number)".utf8)) }

    private func head(tags: [String]) throws -> StoredHead {
        let now = SystemLoopClock().wallNow()
        return StoredHead(
            status: .ok, fields: fields(["Cache-Control: max-age=60"]),
            times: MessageTimes(requested: now, received: now, date: now, age: 0),
            directives: ResponseDirectives(["max-age=60"]), lifetime: FreshnessLifetime(seconds: 60, source: .maxAge),
            vary: try #require(VaryKey(fields([])) { _ in [] }), mode: .shared, tags: tags)
    }

    private func put(_ content: [UInt8], _ number: Int, tags: [String], in store: RedisStore) async throws {
        let head = try head(tags: tags)
        let isTaken = await seat.loop.submit {
            guard let writer = store.write(under: key(number), length: nil) else { return false }
            guard writer.append(content) else { return false }
            writer.finish(head)
            return true
        }
        #expect(isTaken)
    }

    private func load(_ number: Int, from store: RedisStore) async -> [StoredResponse] {
        await seat.beginTask { await store.load(key(number)) }.value
    }

    private func isAtHand(_ number: Int, in store: RedisStore) async -> Bool {
        await seat.loop.submit {
            if case .response = store.find(key(number), where: { _ in true }) { true } else { false }
        }
    }

    @Test func `responses are spread over all masters, listed, purged and invalidated everywhere`() async throws {
        for store in [a, b] { _ = await isAtHand(0, in: store) }
        try await eventually { a.isTold && b.isTold }
        let large = [UInt8](repeating: 7, count: RedisRecord.chunkSize * 2 + 5)
        for number in 1...40 {
            try await put(
                number == 40 ? large : Array("\(number)".utf8), number, tags: number % 2 == 0 ? ["even"] : [], in: a)
        }
        try await eventually { await a.list(limit: 100) { _, _ in true }.count == 40 }
        for node in cluster.nodes { #expect(try await cluster.ask(node, ["DBSIZE"]).integer ?? 0 > 4) }
        let found = try #require(await load(40, from: b).first)
        #expect(await found.read(on: seat.loop) == large)
        #expect(await b.list(limit: 7) { _, _ in true }.count == 7)
        // Held in memory by one gateway, and changed by the other.
        try await eventually {
            _ = await load(1, from: b)
            return await isAtHand(1, in: b)
        }
        await seat.loop.submit { a.invalidate(key(1)) }
        try await eventually { await !isAtHand(1, in: b) }
        #expect(await load(1, from: b).isEmpty)
        let purge = await b.purge { _, head in head.tags == ["even"] }
        #expect(purge.count == 20)
        #expect(purge.isWhole)
        #expect(await a.list(limit: 100) { _, _ in true }.count == 19)
        #expect(await load(40, from: a).isEmpty)
    }

    @Test func `the keys of a response are in one slot`() async throws {
        try await put([1, 2, 3], 1, tags: [], in: a)
        var slots: Set<UInt16> = []
        var names: [String] = []
        try await eventually {
            for node in cluster.nodes {
                for name in try await cluster.ask(node, ["KEYS", "*"]).array ?? [] {
                    let bytes = name.bytes ?? []
                    slots.insert(RedisSlot.of(bytes))
                    names.append(String(decoding: bytes, as: UTF8.self))
                }
            }
            return names.count >= 2
        }
        #expect(slots.count == 1)
        #expect(names.contains { $0.hasPrefix("httpware:k:{") && $0.hasSuffix("}") })
        #expect(names.contains { $0.hasPrefix("httpware:c:{") && $0.count == "httpware:c:{}".count + 64 + 32 })
    }

    @Test func `a purge that does not reach every master says so`() async throws {
        try await put([1, 2, 3], 1, tags: [], in: a)
        try await eventually { await a.list(limit: 100) { _, _ in true }.count == 1 }
        cluster.nodes[2].kill()
        #expect(await b.purge { _, _ in true }.isWhole == false)
    }
}
