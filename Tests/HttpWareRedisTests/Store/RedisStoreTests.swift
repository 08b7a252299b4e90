import HttpWareTesting
import StoreRig
import Testing

@testable import HttpCaching
@testable import HttpWare
@testable import HttpWareRedis

/// Two gateways' stores in one real Redis server.
@Suite(.timeLimit(.minutes(10))) struct RedisStoreTests {
    private let redis: TestRedis
    private let seat: TestLoop
    /// Stands still: a busy machine is not a slow server.
    private let clock = ManualClock()
    private let a: RedisStore
    private let b: RedisStore

    init() throws {
        redis = try TestRedis()
        seat = try TestLoop(clock: clock)
        a = RedisStore(RedisClient(try redis.definition))
        b = RedisStore(RedisClient(try redis.definition), near: .mebibytes(8))
    }

    private func key(_ number: Int) -> CacheKey { CacheKey(Array("http://a.com/\(number)".utf8)) }

    private func head(
        _ lines: [String] = [], vary: [String] = [], request: [String] = [], lifetime: Int64 = 60, tags: [String] = []
    ) throws -> StoredHead {
        let asked = fields(request)
        let now = SystemLoopClock().wallNow()
        return StoredHead(
            status: .ok, fields: fields(["Cache-Control: max-age=60", "ETag: \"x\""] + lines),
            times: MessageTimes(requested: now, received: now, date: now, age: 0),
            directives: ResponseDirectives(["max-age=60"]),
            lifetime: FreshnessLifetime(seconds: lifetime, source: .maxAge),
            vary: try #require(VaryKey(fields(vary)) { asked.values(of: $0) }), mode: .shared, tags: tags)
    }

    private static func content(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) }
    }

    /// Both listen to what the other changes.
    private func begin() async throws {
        for store in [a, b] { _ = await find(key(0), in: store) }
        try await eventually { a.isTold && b.isTold }
    }

    private enum Seen: Equatable { case atHand, mustWait, none }

    private func find(_ key: CacheKey, in store: RedisStore) async -> Seen {
        await seat.loop.submit {
            switch store.find(key, where: { _ in true }) {
            case .response: .atHand
            case .mustWait: .mustWait
            case .none: .none
            }
        }
    }

    private func load(_ key: CacheKey, from store: RedisStore) async -> [StoredResponse] {
        await seat.beginTask { await store.load(key) }.value
    }

    /// Until it is at hand: word of the storing may come after a first look, and takes away what that brought.
    private func hold(_ key: CacheKey, in store: RedisStore) async throws {
        try await eventually {
            _ = await load(key, from: store)
            return await find(key, in: store) == .atHand
        }
    }

    @discardableResult
    private func put(
        _ content: [UInt8], _ head: StoredHead, under key: CacheKey, in store: RedisStore, piece: Int = 100_000
    ) async -> Bool {
        let isTaken = await seat.loop.submit {
            guard let writer = store.write(under: key, length: nil) else { return false }
            for start in stride(from: 0, to: content.count, by: piece) {
                guard writer.append(Array(content[start..<min(start + piece, content.count)])) else { return false }
            }
            writer.finish(head)
            return true
        }
        // Commands of one loop are done in their order.
        _ = await seat.beginTask { await store.client.commands([["PING"]], within: .seconds(5)) }.value
        return isTaken
    }

    private func read(_ response: StoredResponse, _ part: Range<Int>? = nil) async -> [UInt8]? {
        await response.read(part, on: seat.loop)
    }

    @Test func `a response that one gateway stores is read by the other one, and then at hand`() async throws {
        try await begin()
        #expect(await load(key(1), from: b).isEmpty)
        let content = RedisStoreTests.content(1000)
        let head = try head(["X: y"], tags: ["news"])
        await put(content, head, under: key(1), in: a)
        #expect(await find(key(1), in: a) == .atHand)
        #expect(await find(key(1), in: b) == .mustWait)
        let found = await load(key(1), from: b)
        #expect(found.count == 1)
        #expect(found.first?.fields["X"] == "y")
        #expect(found.first?.tags == ["news"])
        #expect(found.first?.head.received == head.received)
        #expect(await read(try #require(found.first)) == content)
        try await hold(key(1), in: b)
        #expect(b.census.responses == 1)
    }

    @Test func `variants stand beside each other, and the same one is replaced`() async throws {
        try await begin()
        for (value, text) in [("1", "a"), ("2", "b"), ("1", "c")] {
            await put(Array(text.utf8), try head(vary: ["Vary: A"], request: ["A: \(value)"]), under: key(1), in: a)
        }
        let found = await load(key(1), from: b)
        #expect(Set(await texts(found)) == ["b", "c"])
    }

    private func texts(_ found: [StoredResponse]) async -> [String] {
        var texts: [String] = []
        for response in found { texts.append(String(decoding: await read(response) ?? [], as: UTF8.self)) }
        return texts
    }

    @Test(arguments: [0, 1, RedisRecord.chunkSize - 1, RedisRecord.chunkSize, RedisRecord.chunkSize + 1, 3_000_000])
    func `content of any length comes back, whole and in parts`(count: Int) async throws {
        try await begin()
        let content = RedisStoreTests.content(count)
        #expect(await put(content, try head(), under: key(1), in: a))
        let found = try #require(await load(key(1), from: b).first)
        #expect(found.content.count == count)
        #expect(await read(found) == content)
        guard count > 10 else { return }
        for part in [1..<count, 0..<(count - 1), (count / 2)..<(count / 2 + 3)] {
            #expect(await read(found, part) == Array(content[part]))
        }
        if count <= RedisRecord.chunkSize {
            try await hold(key(1), in: b)
        } else {
            #expect(await find(key(1), in: b) == .mustWait)
        }
    }

    @Test func `a response that one gateway invalidates is gone from the other one's memory`() async throws {
        try await begin()
        await put([1], try head(), under: key(1), in: a)
        try await hold(key(1), in: b)
        await seat.loop.submit { a.invalidate(key(1)) }
        try await eventually { await find(key(1), in: b) != .atHand }
        #expect(await find(key(1), in: a) == .mustWait)
        #expect(await load(key(1), from: b).isEmpty)
        // Replaced by a newer one: the older one is not used there any more.
        await put([1], try head(), under: key(2), in: a)
        try await hold(key(2), in: b)
        await put([2], try head(), under: key(2), in: a)
        try await eventually { await find(key(2), in: b) != .atHand }
        #expect(await texts(await load(key(2), from: b)) == ["\u{2}"])
    }

    private func keys(_ number: Int) -> [CacheKey] {
        [key(number), key(number).of(Digest256(of: ["anna"])), key(number).of(share: "a"), key(number).of(share: "b")]
    }

    @Test(arguments: 0..<4)
    func `an invalidation by any key removes all responses for the URI, in all gateways`(index: Int) async throws {
        try await begin()
        for key in keys(1) + keys(2) { await put([1], try head(), under: key, in: a) }
        for key in keys(1) + keys(2) { try await hold(key, in: b) }
        await seat.loop.submit { a.invalidate(keys(1)[index]) }
        for key in keys(1) {
            try await eventually { await find(key, in: b) != .atHand }
            #expect(await find(key, in: a) == .mustWait)
            #expect(await load(key, from: a).isEmpty)
            #expect(await load(key, from: b).isEmpty)
        }
        for key in keys(2) { #expect(await texts(await load(key, from: b)) == ["\u{1}"]) }
        // Later responses are found again, beside each other.
        for (number, key) in keys(1).enumerated() { await put([UInt8(number)], try head(), under: key, in: a) }
        for (number, key) in keys(1).enumerated() {
            #expect(await texts(await load(key, from: b)) == [String(UnicodeScalar(UInt8(number)))])
        }
        #expect(await b.list(limit: 100) { _, _ in true }.count == 8)
        let purge = await b.purge { key, _ in key.uri == self.key(1).uri }
        #expect(purge == StorePurge(count: 4))
        for key in keys(1) { #expect(await load(key, from: a).isEmpty) }
    }

    @Test(arguments: [100, 600_000])
    func `an update takes the place of the response that it is about, and of no other`(count: Int) async throws {
        try await begin()
        let content = RedisStoreTests.content(count)
        await put(content, try head(["V: 1"]), under: key(1), in: a)
        let stored = try #require(await load(key(1), from: b).first)
        let update = try head(["V: 2"], lifetime: 600)
        await seat.loop.submit { b.replace(stored, with: update, under: key(1)) }
        try await eventually { await load(key(1), from: a).first?.fields["V"] == "2" }
        let updated = try #require(await load(key(1), from: a).first)
        #expect(await read(updated) == content)
        // The former one is not there any more: neither an update nor a removal of it does anything.
        let third = try head(["V: 3"])
        await seat.loop.submit {
            a.replace(stored, with: third, under: key(1))
            a.remove(stored, under: key(1))
        }
        #expect(await load(key(1), from: a).first?.fields["V"] == "2")
        await seat.loop.submit { a.remove(updated, under: key(1)) }
        #expect(await load(key(1), from: a).isEmpty)
        try await eventually { await find(key(1), in: b) != .atHand }
    }

    @Test func `responses purged by tag or prefix go everywhere, and the rest is listed`() async throws {
        try await begin()
        for number in 0..<300 {
            await put([1], try head(tags: number % 3 == 0 ? ["third"] : []), under: key(number), in: a)
        }
        for number in 0..<6 { _ = await load(key(number), from: b) }
        #expect(await b.list(limit: 1000) { _, _ in true }.count == 300)
        #expect(await b.list(limit: 7) { _, head in head.tags.isEmpty }.count == 7)
        #expect(await a.purge { _, head in head.tags == ["third"] } == StorePurge(count: 100))
        try await eventually { await find(key(3), in: b) == .mustWait }
        #expect(await load(key(3), from: b).isEmpty)
        #expect(await load(key(4), from: b).count == 1)
        #expect(await b.purge { key, _ in key.uri.starts(with: Array("http://a.com/1".utf8)) }.count > 50)
        #expect(
            await a.list(limit: 1000) { _, _ in true }.allSatisfy { !$0.key.description.hasPrefix("http://a.com/1") })
        #expect(await a.purge { _, _ in true }.count > 0)
        #expect(await a.list(limit: 1) { _, _ in true }.isEmpty)
    }

    @Test func `a purge that does not reach Redis says so`() async throws {
        try await begin()
        await put([1], try head(), under: key(1), in: a)
        #expect(await a.purge { _, _ in false } == StorePurge(count: 0))
        redis.kill()
        #expect(await a.purge { _, _ in true } == StorePurge(count: 0, isWhole: false))
        try redis.start()
        try await eventually { await a.purge { _, _ in true } == StorePurge(count: 0) }
    }

    @Test func `a purge during which Redis goes away says that it did not reach all`() async throws {
        try await begin()
        for number in 0..<300 { await put([1], try head(), under: key(number), in: a) }
        let redis = redis
        let purge = await a.purge { _, _ in
            redis.kill()
            return true
        }
        #expect(!purge.isWhole)
        #expect(purge.count < 300)
    }

    @Test func `a stored response expires by itself`() async throws {
        try await begin()
        await put(RedisStoreTests.content(600_000), try head(), under: key(1), in: a)
        let keys = try #require(
            try await a.client.command(["KEYS", "*"], within: .seconds(10)).array?.compactMap(\.bytes))
        #expect(keys.count == 2)
        for key in keys {
            let left = try #require(
                try await a.client.command(["PTTL", RedisArgument(key)], within: .seconds(10)).integer)
            #expect((86_000_000...86_460_000).contains(left), "a minute and a day")
        }
        // Content without readers does not stay for long, and content that was never finished goes.
        await seat.loop.submit {
            a.invalidate(key(1))
            let writer = a.write(under: key(2), length: nil)
            _ = writer?.append([UInt8](repeating: 1, count: 256 << 10))
            _ = writer?.append([UInt8](repeating: 1, count: 256 << 10))
            writer?.cancel()
        }
        _ = await seat.beginTask { await a.client.commands([["PING"]], within: .seconds(10)) }.value
        let left = try #require(
            try await a.client.command(["KEYS", "*"], within: .seconds(10)).array?.compactMap(\.bytes))
        #expect(left.count == 1)
        for key in left {
            #expect(
                try #require(try await a.client.command(["PTTL", RedisArgument(key)], within: .seconds(10)).integer)
                    <= 60_000)
        }
    }

    @Test func `whatever Redis holds is a response of ours or a miss`() async throws {
        try await begin()
        let client = b.client
        for (number, count) in [(1, 100), (2, 600_000)] {
            await put(RedisStoreTests.content(count), try head(), under: key(number), in: a)
        }
        let keys = try #require(
            try await client.command(["KEYS", "*"], within: .seconds(10)).array?.compactMap(\.bytes)
        ).map {
            RedisArgument($0)
        }
        for name in keys {
            guard let pairs = try await client.command(["HGETALL", name], within: .seconds(10)).array else { continue }
            for place in stride(from: 0, to: pairs.count, by: 2) {
                let field = RedisArgument(try #require(pairs[place].bytes))
                let value = try #require(pairs[place + 1].bytes)
                var damaged: [[UInt8]] = [
                    [], Array(value.dropLast()), value + [0], [UInt8](repeating: 0xff, count: 200),
                ]
                for index in [0, 31, 32, 33, value.count / 2, value.count - 1] {
                    var other = value
                    other[index] ^= 0x5a
                    damaged.append(other)
                }
                for other in damaged {
                    _ = try await client.command(["HSET", name, field, RedisArgument(other)], within: .seconds(10))
                    for number in [1, 2] {
                        for response in await load(key(number), from: b) {
                            // Of a content of several pieces a later one may be damaged: then it is cut off.
                            let read = await read(response)
                            #expect(read == nil || read == RedisStoreTests.content(number == 1 ? 100 : 600_000))
                        }
                    }
                }
                _ = try await client.command(["HSET", name, field, RedisArgument(value)], within: .seconds(10))
            }
            // Another kind of value.
            _ = try await client.command(["RENAME", name, "kept"], within: .seconds(10))
            _ = try await client.command(["SET", name, "text"], within: .seconds(10))
            for number in [1, 2] { _ = await load(key(number), from: b) }
            #expect(await b.list(limit: 10) { _, _ in true }.count <= 2)
            _ = try await client.command(["RENAME", "kept", name], within: .seconds(10))
        }
        #expect(await read(try #require(await load(key(2), from: b).first)) == RedisStoreTests.content(600_000))
    }

    @Test func `while changes are not told nothing is used from memory, and afterwards it is empty`() async throws {
        try await begin()
        await put([1], try head(), under: key(1), in: a)
        #expect(await find(key(1), in: a) == .atHand)
        redis.kill()
        try await eventually { !a.isTold }
        #expect(await find(key(1), in: a) != .atHand)
        #expect(a.census.responses == 0)
        #expect(a.census.limit == RedisStore.usualNear.bytes && b.census.limit == 8 << 20)
        #expect(await load(key(1), from: a).isEmpty)
        #expect(await find(key(1), in: a) == .none, "the server failed just now")
        #expect(await put([1], try head(), under: key(1), in: a) == false)
        try redis.start()
        try await eventually { a.isTold && b.isTold }
        // Each connection finds out by itself that the server is back, when its pause ends.
        try await eventually {
            clock.advance(by: .milliseconds(100))
            await put([2], try head(), under: key(1), in: a)
            return await texts(await load(key(1), from: b)) == ["\u{2}"]
        }
    }

    @Test func `responses that were invalidated while Redis was stopped are not used afterwards`() async throws {
        try await begin()
        await put([1], try head(), under: key(1), in: a)
        await put([2], try head(), under: key(2), in: a)
        try await hold(key(1), in: b)
        redis.pause()
        // Later than what came last, so that the server is seen to be silent.
        clock.advance(by: .milliseconds(1))
        await seat.settle()
        let before = a.client.status.commands
        let late = seat.beginTask { await a.load(key(2)) }
        try await eventually { a.client.status.commands > before }
        clock.advance(by: .seconds(1))
        #expect(await late.value.isEmpty)
        // Not sent: the server failed just now.
        await seat.loop.submit { a.invalidate(key(1)) }
        redis.resume()
        // By itself, too soon for the subscription to end: the first gateway is asked for nothing.
        try await eventually { await keys(in: b) == [key(2)] }
        try await eventually { await find(key(1), in: b) != .atHand }
        try await eventually {
            clock.advance(by: .milliseconds(100))
            return await load(key(2), from: b).count == 1
        }
        #expect(await load(key(1), from: b).isEmpty)
        try await eventually {
            clock.advance(by: .milliseconds(100))
            return await load(key(2), from: a).count == 1
        }
        #expect(await load(key(1), from: a).isEmpty)
    }

    /// The keys that the server has, whatever is in memory.
    private func keys(in store: RedisStore) async -> Set<CacheKey> {
        Set(await store.list(limit: 100) { _, _ in true }.map(\.key))
    }

    @Test func `a response that was asked for before its key was changed is not held`() {
        let near = NearCache(limit: .mebibytes(1))
        #expect(near.ticket(for: key(1)) == nil)
        near.clear(isTold: true)
        let response = StoredResponse(try! head(), content: .bytes([1]), key: key(1))
        func isHeld() -> Bool {
            if case .response? = near.store?.find(key(1), where: { _ in true }) { true } else { false }
        }
        let early = near.ticket(for: key(1))
        near.forget(key(1))
        near.put(response, under: key(1), early)
        #expect(!isHeld())
        let present = near.ticket(for: key(1))
        near.put(response, under: key(1), present)
        #expect(isHeld())
        let former = near.ticket(for: key(1))
        near.clear()
        near.put(response, under: key(1), former)
        #expect(!isHeld())
        near.clear(isTold: false)
        near.put(response, under: key(1), present)
        #expect(near.store == nil)
    }

    @Test func `a message that cannot be understood is about everything, and one's own about nothing`() {
        let sender = RedisChange.makeSender()
        let other = RedisChange.makeSender()
        let changes: [RedisChange] = [
            .key(key(1)), .key(key(1).of(share: "a")), .key(key(1).of(Digest256(of: ["anna"]))), .uri(key(1)),
        ]
        for change in changes {
            #expect(RedisChange(change.message(from: sender), except: sender) == nil)
            #expect(RedisChange(change.message(from: sender), except: other) == change)
        }
        #expect(RedisChange(RedisChange.several.message(from: sender), except: sender) == nil)
        for strange in [[], sender, [1], other + [UInt8(ascii: "?")], [UInt8](repeating: 0, count: 100)] {
            #expect(RedisChange(strange, except: sender) == .several)
        }
    }
}
