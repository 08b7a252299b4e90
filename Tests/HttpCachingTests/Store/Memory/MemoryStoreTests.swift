import HttpWare
import StoreRig
import Testing

@testable import HttpCaching

@Suite struct MemoryStoreTests {
    private func key(_ number: Int) -> CacheKey { CacheKey(Array("http://a.com/\(number)".utf8)) }

    private func response(
        _ bytes: Int, vary: [String] = [], request: [String] = [], date: WallTime = noon
    ) throws -> StoredResponse {
        let asked = fields(request)
        let head = StoredHead(
            status: .ok, fields: fields(["Cache-Control: max-age=60"]),
            times: MessageTimes(requested: date, received: date, date: date, age: 0),
            directives: ResponseDirectives(["max-age=60"]), lifetime: FreshnessLifetime(seconds: 60, source: .maxAge),
            vary: try #require(VaryKey(fields(vary)) { asked.values(of: $0) }), mode: .shared)
        return StoredResponse(head, content: .bytes(Array(repeating: 0x78, count: bytes)))
    }

    @Test func `a stored response is found under its key, and nowhere else`() throws {
        let store = MemoryStore(limit: .mebibytes(1))
        let one = try response(10)
        #expect(store.store(one, under: key(1)))
        #expect(store.find(key(1)) { _ in true }.response === one)
        #expect(store.find(key(2)) { _ in true }.response == nil)
        #expect(store.find(key(1)) { _ in false }.hasOthers)
        #expect(!store.find(key(2)) { _ in false }.hasOthers)
    }

    @Test func `a response takes the place of the one that answered the same requests`() throws {
        let store = MemoryStore(limit: .mebibytes(1))
        let first = try response(10)
        let second = try response(20)
        store.store(first, under: key(1))
        store.store(second, under: key(1))
        #expect(store.find(key(1)) { _ in true }.response === second)
        #expect(store.census.responses == 1)
        #expect(store.census.bytes == second.size + key(1).uri.count)
    }

    @Test func `variants stand side by side, the most recent is asked first, RFC 9111 §4.1`() throws {
        let store = MemoryStore(limit: .mebibytes(1))
        let old = try response(1, vary: ["Vary: A"], request: ["A: 1"], date: after(-10))
        let new = try response(1, vary: ["Vary: B"], request: ["B: 1"], date: after(-5))
        let older = try response(1, vary: ["Vary: A"], request: ["A: 2"], date: after(-20))
        for response in [old, new, older] { store.store(response, under: key(1)) }
        #expect(store.census.responses == 3)
        #expect(store.find(key(1)) { _ in true }.response === new)
        #expect(store.find(key(1)) { $0 !== new }.response === old)
    }

    @Test func `a hundred thousand variants of one key stay few`() throws {
        let store = MemoryStore(limit: .mebibytes(100))
        for number in 0..<2000 {
            store.store(try response(1, vary: ["Vary: A"], request: ["A: \(number)"]), under: key(1))
        }
        #expect(store.census.responses <= 128)
    }

    @Test(arguments: [1, 40_000, 1 << 20], [true, false])
    func `content of any size is kept as it came, with a known length or without one`(size: Int, isKnown: Bool)
        async throws
    {
        let store = MemoryStore(limit: .mebibytes(64))
        let content = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 9) }
        let writer = try #require(store.write(under: key(1), length: isKnown ? size : nil))
        var rest = content[...]
        while !rest.isEmpty {
            #expect(writer.append(Array(rest.prefix(10_000))))
            rest = rest.dropFirst(10_000)
        }
        writer.finish(try response(0).head)
        let found = try #require(store.find(key(1)) { _ in true }.response)
        #expect(found.content.count == size)
        #expect(found.content.inMemory == content)
        #expect(store.census.bytes >= size)
        #expect(store.census.bytes < size + 66_000)
    }

    @Test func `the limit holds, whatever comes`() throws {
        let store = MemoryStore(limit: .kibibytes(256), shards: 4)
        for number in 0..<5000 {
            store.store(try response(number * 37 % 9000), under: key(number % 1700))
            if number % 3 == 0 { _ = store.find(key(number * 7 % 1700)) { _ in true } }
            if number % 11 == 0 { store.invalidate(key(number * 5 % 1700)) }
            #expect(store.census.bytes <= 256 * 1024)
        }
        #expect(store.census.evicted > 0)
    }

    @Test func `a response that is larger than its room is not stored`() throws {
        let store = MemoryStore(limit: .kibibytes(64), shards: 4)
        #expect(!store.store(try response(20_000), under: key(1)))
        #expect(store.census.responses == 0)
    }

    @Test func `an update takes the place of what it updates, once`() throws {
        let store = MemoryStore(limit: .mebibytes(1))
        let first = try response(10)
        let update = try response(10)
        store.store(first, under: key(1))
        store.replace(first, with: update.head, under: key(1))
        let found = try #require(store.find(key(1)) { _ in true }.response)
        #expect(found !== first && found.content.count == 10)
        store.remove(first, under: key(1))
        #expect(store.find(key(1)) { _ in true }.response === found)
        store.remove(found, under: key(1))
        #expect(store.find(key(1)) { _ in true }.response == nil)
        #expect(store.census.responses == 0 && store.census.bytes == 0)
    }

    @Test func `invalidation takes all variants, RFC 9111 §4.4`() throws {
        let store = MemoryStore(limit: .mebibytes(1))
        store.store(try response(1, vary: ["Vary: A"], request: ["A: 1"]), under: key(1))
        store.store(try response(1, vary: ["Vary: A"], request: ["A: 2"]), under: key(1))
        store.invalidate(key(1))
        #expect(store.census.responses == 0)
    }

    /// Meant for the thread sanitizer: `make races`.
    @Test func `many threads use it at once, and each finds what belongs to its key`() async throws {
        let store = MemoryStore(limit: .kibibytes(512), shards: 2)
        let heads = try (0..<8).map { try response(1, vary: ["Vary: A"], request: ["A: \($0)"]).head }
        await withTaskGroup(of: Int.self) { group in
            for seed in 0..<4 {
                group.addTask {
                    var random = SplitMix(state: UInt64(seed))
                    var wrong = 0
                    for _ in 0..<3000 {
                        let number = Int(random.unit() * 200)
                        let key = self.key(number)
                        var found: StoredResponse?
                        if case .response(let response) = store.find(key, where: { _ in true }) { found = response }
                        if let found, case .bytes(let bytes) = found.content {
                            if bytes.first != UInt8(number) || found.fields[.cacheControl] != "max-age=60" {
                                wrong += 1
                            }
                        }
                        let head = heads[Int(random.unit() * 8)]
                        switch Int(random.unit() * 10) {
                        case 0: store.invalidate(key)
                        case 1: if let found { store.remove(found, under: key) }
                        case 2: if let found { store.replace(found, with: head, under: key) }
                        case 3: _ = await store.purge { $1.fields.isEmpty }
                        default:
                            let writer = store.write(under: key, length: nil)
                            _ = writer?.append(Array(repeating: UInt8(number), count: 1 + Int(random.unit() * 4000)))
                            writer?.finish(head)
                        }
                    }
                    return wrong
                }
            }
            for await wrong in group { #expect(wrong == 0) }
        }
        #expect(store.census.bytes <= 512 * 1024 && store.census.responses > 0)
    }

    /// Requests for keys by Zipf's law, with a scan of keys that come once among them: what caches of content meet.
    private func hits(_ find: (Int) -> Bool) -> Double {
        var random = SplitMix(state: 7)
        let keys = 20_000
        let weights = (1...keys).map { 1 / Double($0) }
        var sums: [Double] = []
        for weight in weights { sums.append((sums.last ?? 0) + weight) }
        var hits = 0
        var scan = keys
        let requests = 200_000
        for _ in 0..<requests {
            if random.unit() < 0.3 {
                scan += 1
                _ = find(scan)
                continue
            }
            let point = random.unit() * (sums.last ?? 1)
            var low = 0
            var high = keys - 1
            while low < high {
                let middle = (low + high) / 2
                if sums[middle] < point { low = middle + 1 } else { high = middle }
            }
            if find(low) { hits += 1 }
        }
        return Double(hits) / Double(requests)
    }

    @Test func `responses that are read once do not crowd out frequent ones: more hits than the least recently used`()
        throws
    {
        let room = 1000
        let one = try response(488)  // 1,024 bytes and a little, counted
        let store = MemoryStore(limit: ByteCount(bytes: room * one.size), shards: 1)
        let ours = hits { number in
            if store.find(self.key(number), where: { _ in true }).response != nil { return true }
            store.store(one, under: self.key(number))
            return false
        }
        var order: [Int: Int] = [:]
        var ages: [(number: Int, stamp: Int)] = []
        var oldest = 0
        var stamp = 0
        let recent = hits { number in
            stamp += 1
            let isHit = order[number] != nil
            order[number] = stamp
            ages.append((number, stamp))
            while order.count > room {
                let (candidate, when) = ages[oldest]
                oldest += 1
                if order[candidate] == when { order[candidate] = nil }
            }
            return isHit
        }
        print("hits on a Zipf trace with scans: S3-FIFO \(ours), LRU \(recent)")
        #expect(ours > recent * 1.03, "\(ours) of all requests hit, with LRU \(recent)")
    }

    // MARK: Families

    private func keys(_ number: Int) -> [CacheKey] {
        let (anna, bert) = (Digest256(of: ["anna"]), Digest256(of: ["bert"]))
        return [
            key(number), key(number).of(anna), key(number).of(bert), key(number).of(share: "a"),
            key(number).of(share: "b"), key(number).of(anna).of(share: "b"),
        ]
    }

    private func isThere(_ key: CacheKey, _ store: MemoryStore) -> Bool {
        if case .response = store.find(key, where: { _ in true }) { true } else { false }
    }

    @Test func `keys of one URI with different parts hold responses of their own`() throws {
        let store = MemoryStore(limit: .mebibytes(1))
        var stored: [StoredResponse] = []
        for key in keys(1) {
            let response = try response(10)
            store.store(response, under: key)
            stored.append(response)
        }
        for (key, response) in zip(keys(1), stored) { #expect(store.find(key) { _ in true }.response === response) }
    }

    @Test(arguments: 0..<6) func `an invalidation by any key removes all responses for the URI`(index: Int) async throws
    {
        let store = MemoryStore(limit: .mebibytes(1))
        for key in keys(1) + keys(2) { store.store(try response(10), under: key) }
        store.invalidate(keys(1)[index])
        for key in keys(1) {
            #expect(!isThere(key, store) && !store.find(key) { _ in false }.hasOthers)
            #expect(await store.load(key).isEmpty)
        }
        for key in keys(2) { #expect(isThere(key, store)) }
        #expect(await store.list(limit: 100) { _, _ in true }.count == 6)
        // A later response under the key is found again, and the next invalidation removes it as well.
        for key in keys(1) { store.store(try response(10), under: key) }
        for key in keys(1) { #expect(isThere(key, store)) }
        store.invalidate(keys(1)[0])
        for key in keys(1) { #expect(!isThere(key, store)) }
    }

    @Test func `an update of an invalidated response does not bring it back`() throws {
        let store = MemoryStore(limit: .mebibytes(1))
        let key = keys(1)[1]
        store.store(try response(10), under: key)
        let stored = try #require(store.find(key) { _ in true }.response)
        store.replace(stored, with: stored.head, under: key)
        #expect(isThere(key, store))
        let updated = try #require(store.find(key) { _ in true }.response)
        store.invalidate(key)
        store.replace(updated, with: updated.head, under: key)
        #expect(!isThere(key, store))
    }

    @Test func `families without responses are forgotten`() throws {
        let families = KeyFamilies()
        for number in 0..<100_000 { _ = families.join(keys(number)[1]) }
        #expect(families.count <= 64 * 16)
        #expect(families.join(key(1)) == nil)
    }
}

extension Found {
    fileprivate var response: StoredResponse? { if case .response(let response) = self { response } else { nil } }

    fileprivate var hasOthers: Bool { if case .none(let hasOthers) = self { hasOthers } else { true } }
}
