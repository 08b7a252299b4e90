import HttpCaching
import HttpWare
import StoreRig
import Testing

@Suite struct StoreListTests {
    /// A store that has nothing but what the contract demands.
    private final class PlainStore: CacheStore {
        let inner = MemoryStore(limit: .mebibytes(4))

        func find(_ key: CacheKey, where isSelected: (StoredResponse) -> Bool) -> Found {
            inner.find(key, where: isSelected)
        }
        func load(_ key: CacheKey) async -> [StoredResponse] { await inner.load(key) }
        func write(under key: CacheKey, length: Int?) -> (any StoreWriter)? { inner.write(under: key, length: length) }
        func replace(_ response: StoredResponse, with update: StoredHead, under key: CacheKey) {
            inner.replace(response, with: update, under: key)
        }
        func remove(_ response: StoredResponse, under key: CacheKey) { inner.remove(response, under: key) }
        func invalidate(_ key: CacheKey) { inner.invalidate(key) }
        func purge(where isSelected: @Sendable (CacheKey, StoredHead) -> Bool) async -> StorePurge {
            await inner.purge(where: isSelected)
        }
        var census: StoreCensus { inner.census }
    }

    private func key(_ number: Int) -> CacheKey { CacheKey(Array("http://a.com/\(number)".utf8)) }

    private func response(_ tags: [String] = [], vary: [String] = [], request: [String] = []) throws -> StoredResponse {
        let asked = fields(request)
        let head = StoredHead(
            status: .ok, fields: fields(["Cache-Control: max-age=60"]),
            times: MessageTimes(requested: noon, received: noon, date: noon, age: 0),
            directives: ResponseDirectives(["max-age=60"]), lifetime: FreshnessLifetime(seconds: 60, source: .maxAge),
            vary: try #require(VaryKey(fields(vary)) { asked.values(of: $0) }), mode: .shared, tags: tags)
        return StoredResponse(head, content: .bytes([0x78]))
    }

    @Test func `each response is listed once, however many there are`() async throws {
        let store = MemoryStore(limit: .mebibytes(16), shards: 3)
        for number in 0..<3000 { store.store(try response(), under: key(number)) }
        for value in ["1", "2"] {
            store.store(try response(vary: ["Vary: A"], request: ["A: \(value)"]), under: key(7))
        }
        let items = await store.list(limit: .max) { _, _ in true }
        #expect(items.count == 3002)
        #expect(Set(items.map(\.key)).count == 3000)
        #expect(items.allSatisfy { $0.size ?? 0 > 0 })
        #expect(items.reduce(0) { $0 + ($1.size ?? 0) } <= store.census.bytes)
    }

    @Test(arguments: [0, 1, 10, 255, 256, 257])
    func `a list ends at its limit`(limit: Int) async throws {
        let memory = MemoryStore(limit: .mebibytes(16), shards: 1)
        let plain = PlainStore()
        for number in 0..<600 {
            memory.store(try response(), under: key(number))
            plain.inner.store(try response(), under: key(number))
        }
        for store in [memory, plain] as [any CacheStore] {
            #expect(await store.list(limit: limit) { _, _ in true }.count == limit)
            #expect(store.census.responses == 600)
        }
    }

    @Test func `only what is meant is listed, in stores with and without a way of their own`() async throws {
        let plain = PlainStore()
        plain.inner.store(try response(["a", "b"]), under: key(1))
        plain.inner.store(try response(["b"]), under: key(2))
        plain.inner.store(try response(), under: key(3))
        for store in [plain, plain.inner] as [any CacheStore] {
            #expect(Set(await store.list(limit: 9) { $1.tags.contains("b") }.map(\.key)) == [key(1), key(2)])
            #expect(await store.list(limit: 9) { found, _ in found == key(3) }.map(\.key) == [key(3)])
        }
    }

    @Test func `a purge takes away what is meant, and nothing else`() async throws {
        let store = MemoryStore(limit: .mebibytes(16))
        for number in 0..<1000 { store.store(try response(number % 10 == 0 ? ["ten"] : []), under: key(number)) }
        #expect(await store.purge { $1.tags.contains("ten") } == StorePurge(count: 100))
        #expect(store.census.responses == 900)
        #expect(await store.purge { $1.tags.contains("ten") }.count == 0)
        #expect(store.find(key(10)) { _ in true }.response == nil)
        #expect(store.find(key(11)) { _ in true }.response != nil)
        #expect(await store.purge { _, _ in true }.count == 900)
        #expect(store.census.bytes == 0)
    }

    @Test func `responses that stay are listed and purged, while other responses come and go`() async throws {
        let store = MemoryStore(limit: .mebibytes(32), shards: 2)
        for number in 0..<500 { store.store(try response(["stays"]), under: key(number)) }
        let others = try (1000..<4000).map { (key: key($0), response: try response()) }
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                for (index, other) in others.enumerated() {
                    store.store(other.response, under: other.key)
                    if index % 2 == 0 { store.invalidate(others[index / 2].key) }
                }
            }
            group.addTask {
                for _ in 0..<20 {
                    let listed = await store.list(limit: .max) { $1.tags == ["stays"] }
                    #expect(listed.count == 500)
                }
            }
        }
        #expect(await store.purge { $1.tags == ["stays"] }.count == 500)
        let left = await store.list(limit: .max) { _, _ in true }
        #expect(left.count == store.census.responses)
    }

    @Test func `a response that is updated while a purge looks at it is still purged`() async throws {
        let store = MemoryStore(limit: .mebibytes(1))
        let first = try response(["t"])
        store.store(first, under: key(1))
        let head = first.head
        let update = ThreadLock(true)
        let purged = await store.purge { found, candidate in
            // Between the look and the purge it is validated.
            let isFirst = update.withLock { isFirst in
                defer { isFirst = false }
                return isFirst
            }
            if isFirst { store.replace(first, with: head, under: found) }
            return candidate.tags == ["t"]
        }
        #expect(purged.count == 1)
        #expect(store.census.responses == 0)
    }

    @Test func `responses under a key are loaded, the most recent first`() async throws {
        let store = MemoryStore(limit: .mebibytes(1))
        for value in ["1", "2", "3"] {
            store.store(try response([value], vary: ["Vary: A"], request: ["A: \(value)"]), under: key(1))
        }
        #expect(await store.load(key(1)).map(\.tags) == [["3"], ["2"], ["1"]])
        #expect(await store.load(key(2)).isEmpty)
    }
}

extension Found {
    fileprivate var response: StoredResponse? { if case .response(let response) = self { response } else { nil } }
}
