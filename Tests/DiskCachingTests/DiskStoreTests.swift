import Foundation
import StoreRig
import HttpWareTesting
import Testing

@testable import DiskCaching
@testable import HttpCaching
@testable import HttpWare

/// A folder that goes with the test.
final class StoreFolder {
    let path: String

    init() {
        path = FileManager.default.temporaryDirectory.appending(path: "httpware-store-\(UUID().uuidString)").path
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    var data: String { path + "/data.mdb" }

    func has(_ name: String) -> Bool { FileManager.default.fileExists(atPath: "\(path)/\(name)") }

    /// Changes a byte in the middle of each of these bytes, wherever they stand in the file; answers how often that was.
    func damage(_ text: String) throws -> Int {
        var bytes = Array(try Data(contentsOf: URL(filePath: data)))
        let wanted = Array(text.utf8)
        var count = 0
        for start in bytes.indices.dropLast(wanted.count) where bytes[start] == wanted[0] {
            if bytes[start..<(start + wanted.count)] == wanted[...] {
                bytes[start + wanted.count / 2] ^= 1
                count += 1
            }
        }
        try Data(bytes).write(to: URL(filePath: data))
        return count
    }
}

@Suite struct DiskStoreTests {
    private let folder = StoreFolder()
    private let loop: EventLoop

    init() throws { loop = try EventLoop.start(name: "store test") }

    private func key(_ number: Int) -> CacheKey { CacheKey(Array("http://a.com/\(number)".utf8)) }

    private func head(
        _ lines: [String] = [], vary: [String] = [], request: [String] = [], date: WallTime = noon, tags: [String] = []
    ) throws -> StoredHead {
        let asked = fields(request)
        return StoredHead(
            status: .ok, fields: fields(["Cache-Control: max-age=60"] + lines),
            times: MessageTimes(requested: date, received: date, date: date, age: 0),
            directives: ResponseDirectives(["max-age=60"]), lifetime: FreshnessLifetime(seconds: 60, source: .maxAge),
            vary: try #require(VaryKey(fields(vary)) { asked.values(of: $0) }), mode: .shared, tags: tags)
    }

    /// A store that is open.
    private func open(
        _ limit: ByteCount = .mebibytes(64), verifier: String = "/bin/false"
    ) async throws -> DiskStore {
        let store = DiskStore(path: folder.path, limit: limit, verifier: verifier)
        try await eventually { store.isReady }
        return store
    }

    private static func content(_ count: Int, _ seed: Int = 0) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: ($0 &+ seed) &* 7 &+ $0 >> 8) }
    }

    /// Stores, in pieces; answers whether all pieces were taken.
    @discardableResult
    private func store(
        _ content: [UInt8], _ head: StoredHead, under key: CacheKey, in store: DiskStore, piece: Int = 100_000
    ) -> Bool {
        guard let writer = store.write(under: key, length: nil) else { return false }
        for start in stride(from: 0, to: content.count, by: piece) {
            guard writer.append(Array(content[start..<min(content.count, start + piece)])) else { return false }
        }
        writer.finish(head)
        store.settle(patience: .seconds(30))
        return true
    }

    /// Stores 600 responses of one byte, every third with a tag.
    private func fill(_ store: DiskStore) throws {
        for number in 0..<600 {
            let writer = try #require(store.write(under: key(number), length: 1))
            #expect(writer.append([1]))
            writer.finish(try head(tags: number % 3 == 0 ? ["three"] : []))
        }
        store.settle(patience: .seconds(30))
    }

    private func load(_ key: CacheKey, _ store: DiskStore) async -> [StoredResponse] {
        await Task(executorPreference: loop) { await store.load(key) }.value
    }

    private func content(of response: StoredResponse, _ part: Range<Int>? = nil) async -> [UInt8]? {
        await response.read(part, on: loop)
    }

    /// The content of the first response under the key.
    private func content(under key: CacheKey, _ store: DiskStore) async -> [UInt8]? {
        guard let found = await load(key, store).first else { return nil }
        return await content(of: found)
    }

    private func isKnown(_ key: CacheKey, _ store: DiskStore) -> Bool {
        if case .mustWait = store.find(key, where: { _ in true }) { true } else { false }
    }

    // MARK: Families

    private func keys(_ number: Int) -> [CacheKey] {
        [key(number), key(number).of(Digest256(of: ["anna"])), key(number).of(share: "a"), key(number).of(share: "b")]
    }

    @Test(arguments: 0..<4) func `an invalidation by any key removes all responses for the URI, also after a restart`(
        index: Int
    ) async throws {
        do {
            let store = try await open()
            for key in keys(1) + keys(2) { self.store([1], try head(), under: key, in: store) }
            for key in keys(1) { #expect(await content(under: key, store) == [1]) }
            store.close()
        }
        do {
            let store = try await open()
            for key in keys(1) + keys(2) { #expect(await content(under: key, store) == [1]) }
            store.invalidate(keys(1)[index])
            for key in keys(1) {
                #expect(!isKnown(key, store))
                #expect(await load(key, store).isEmpty)
            }
            self.store([2], try head(), under: keys(1)[2], in: store)
            store.close()
        }
        let store = try await open()
        #expect(await content(under: keys(1)[2], store) == [2])
        for key in [keys(1)[0], keys(1)[1], keys(1)[3]] { #expect(await load(key, store).isEmpty) }
        for key in keys(2) { #expect(await content(under: key, store) == [1]) }
        #expect(store.census.responses == 5)
        #expect(await store.list(limit: 100) { _, _ in true }.count == 5)
    }

    @Test func `an invalidation before the file is open removes all responses for the URI`() async throws {
        do {
            let store = try await open()
            for key in keys(1) + keys(2) { self.store([1], try head(), under: key, in: store) }
            store.close()
        }
        let store = DiskStore(path: folder.path, limit: .mebibytes(64), verifier: "/bin/false")
        store.invalidate(key(1))
        try await eventually { store.isReady }
        for key in keys(1) { #expect(await load(key, store).isEmpty) }
        for key in keys(2) { #expect(await content(under: key, store) == [1]) }
    }

    @Test func `a thousand responses of one family are invalidated at once, and removed soon`() async throws {
        let store = try await open()
        for number in 0..<1000 {
            let writer = try #require(store.write(under: key(1).of(share: "\(number)"), length: 1))
            #expect(writer.append([1]))
            writer.finish(try head())
        }
        store.settle(patience: .seconds(30))
        store.invalidate(key(1))
        for number in 0..<1000 { #expect(!isKnown(key(1).of(share: "\(number)"), store)) }
        store.settle(patience: .seconds(30))
        #expect(store.census.responses == 0)
    }

    @Test func `the row of a key that is a URI alone has not changed, and one with a family reads as written`() {
        let plain = DiskEntry(hash: 1, variant: 2, size: 3, length: 4)
        let member = DiskEntry(hash: 1, variant: 2, size: 3, length: 4, family: 5)
        #expect(plain.bytes.count == 40 && member.bytes.count == 48)
        for entry in [plain, member] { #expect(entry.bytes.withUnsafeBytes { DiskEntry($0) } == entry) }
        var other = member.bytes
        other[33] ^= 1
        #expect(other.withUnsafeBytes { DiskEntry($0) } == nil)
    }

    // MARK: Kept

    @Test(arguments: [0, 10, DiskChunk.size, DiskChunk.size + 1, 300_000])
    func `a response is there after a restart, whole`(count: Int) async throws {
        let content = DiskStoreTests.content(count)
        do {
            let store = try await open()
            #expect(self.store(content, try head(["ETag: \"a\""]), under: key(1), in: store))
            store.close()
        }
        let store = try await open()
        let found = try #require(await load(key(1), store).first)
        #expect(found.fields[.etag] == "\"a\"")
        #expect(found.content.count == count)
        #expect(await self.content(of: found) == content)
        #expect(store.census.responses == 1)
    }

    @Test func `a key that is not stored is answered at once`() async throws {
        let store = try await open()
        #expect(!isKnown(key(1), store))
        self.store([1], try head(), under: key(1), in: store)
        #expect(isKnown(key(1), store))
        #expect(!isKnown(key(2), store))
        #expect(await load(key(2), store).isEmpty)
    }

    @Test(arguments: [0..<1, 65_000..<66_000, 65_511..<65_513, 65_512..<131_024, 0..<200_000, 199_999..<200_000])
    func `any part of the content is brought`(part: Range<Int>) async throws {
        let store = try await open()
        let content = DiskStoreTests.content(200_000)
        self.store(content, try head(), under: key(1), in: store, piece: 7777)
        let found = try #require(await load(key(1), store).first)
        #expect(await self.content(of: found, part) == Array(content[part]))
    }

    @Test func `a key of 16 KiB is one like others`() async throws {
        let store = try await open()
        let long = CacheKey(Array(repeating: 0x6b, count: 16_384))
        self.store([1, 2], try head(), under: long, in: store)
        #expect(await content(under: long, store) == [1, 2])
    }

    // MARK: Changed

    @Test func `a response takes the place of the one that answered the same requests`() async throws {
        let store = try await open()
        self.store([1], try head(), under: key(1), in: store)
        self.store([2], try head(), under: key(1), in: store)
        let found = await load(key(1), store)
        #expect(found.count == 1)
        #expect(await content(of: try #require(found.first)) == [2])
    }

    @Test func `variants stand side by side, the most recent first, RFC 9111 §4.1`() async throws {
        let store = try await open()
        self.store([1], try head(vary: ["Vary: A"], request: ["A: 1"], date: after(-10)), under: key(1), in: store)
        self.store([2], try head(vary: ["Vary: A"], request: ["A: 2"], date: after(-5)), under: key(1), in: store)
        self.store([3], try head(vary: ["Vary: A"], request: ["A: 3"], date: after(-20)), under: key(1), in: store)
        var contents: [[UInt8]?] = []
        for response in await load(key(1), store) { contents.append(await content(of: response)) }
        #expect(contents == [[2], [1], [3]])
    }

    @Test func `variants of one key stay few`() async throws {
        let store = try await open()
        for number in 0..<300 {
            let writer = try #require(store.write(under: key(1), length: 1))
            #expect(writer.append([1]))
            writer.finish(try head(vary: ["Vary: A"], request: ["A: \(number)"]))
        }
        store.settle(patience: .seconds(30))
        #expect(store.census.responses == DiskStore.mostVariants)
        #expect(await load(key(1), store).count == DiskStore.mostVariants)
    }

    @Test func `an update takes the place of a head, once; the content stays`() async throws {
        let store = try await open()
        let content = DiskStoreTests.content(100_000)
        self.store(content, try head(["X-A: 1"]), under: key(1), in: store)
        let old = try #require(await load(key(1), store).first)
        store.replace(old, with: try head(["X-A: 2"]), under: key(1))
        store.settle(patience: .seconds(30))
        let new = try #require(await load(key(1), store).first)
        #expect(new.fields["X-A"] == "2")
        #expect(await self.content(of: new) == content)
        store.remove(old, under: key(1))
        #expect(isKnown(key(1), store))
        store.remove(new, under: key(1))
        #expect(!isKnown(key(1), store))
    }

    @Test func `invalidated or purged responses stay away after a restart, RFC 9111 §4.4`() async throws {
        do {
            let store = try await open()
            try fill(store)
            store.invalidate(key(1))
            let count = await Task(executorPreference: loop) { await store.purge { $1.tags == ["three"] } }.value.count
            #expect(count == 200)
            #expect(store.census.responses == 399)
            store.close()
        }
        let store = try await open()
        #expect(store.census.responses == 399)
        #expect(!isKnown(key(0), store) && !isKnown(key(1), store) && isKnown(key(2), store))
    }

    @Test(arguments: [0, 1, 255, 256, 257, 1000])
    func `a list ends at its limit, and knows sizes`(limit: Int) async throws {
        let store = try await open()
        try fill(store)
        store.invalidate(key(0))
        let items = await Task(executorPreference: loop) { await store.list(limit: limit) { _, _ in true } }.value
        #expect(items.count == min(limit, 599))
        #expect(Set(items.map(\.key)).count == items.count && !items.contains { $0.key == key(0) })
        #expect(items.allSatisfy { $0.size ?? 0 > 0 })
        #expect(items.reduce(0) { $0 + ($1.size ?? 0) } <= store.census.bytes)
        let some = await Task(executorPreference: loop) { await store.list(limit: limit) { $1.tags == ["three"] } }
            .value
        #expect(some.count == min(limit, 199) && some.allSatisfy { $0.head.tags == ["three"] })
    }

    @Test func `content that is being read stays until it was read, whatever becomes of the response`() async throws {
        let store = try await open()
        let content = DiskStoreTests.content(300_000)
        self.store(content, try head(), under: key(1), in: store)
        do {
            let found = try #require(await load(key(1), store).first)
            store.invalidate(key(1))
            store.settle(patience: .seconds(30))
            #expect(!isKnown(key(1), store))
            #expect(await self.content(of: found) == content)
        }
        store.settle(patience: .seconds(30))
        store.close()
        let file = try DiskFile(path: folder.path, bytes: 64 << 20)
        #expect(try file.contents().incomplete.isEmpty)
        #expect(try file.chunk(1, 0) == nil)
    }

    // MARK: Bounded

    @Test func `the file stays within its limit, whatever comes`() async throws {
        let store = try await open(.mebibytes(8))
        for number in 0..<400 {
            let count = number % 10 == 0 ? 500_000 : number * 97 % 9000
            guard let writer = store.write(under: key(number), length: count) else { continue }
            _ = writer.append(DiskStoreTests.content(count, number))
            writer.finish(try head())
            if number % 20 == 0 { store.settle(patience: .seconds(30)) }
            #expect(store.census.bytes <= store.census.limit)
        }
        store.settle(patience: .seconds(30))
        #expect(store.census.evicted > 0)
        var status = stat()
        #expect(stat(folder.data, &status) == 0 && status.st_size <= 8 << 20)
        var whole = 0
        for number in 0..<400 {
            guard let found = await load(key(number), store).first else { continue }
            let count = number % 10 == 0 ? 500_000 : number * 97 % 9000
            #expect(await content(of: found) == DiskStoreTests.content(count, number))
            whole += 1
        }
        #expect(whole > 20)
    }

    @Test func `a response without end is given up, and leaves nothing`() async throws {
        let store = try await open(.mebibytes(4))
        let writer = try #require(store.write(under: key(1), length: nil))
        var taken = 0
        while writer.append(Array(repeating: 1, count: 100_000)) { taken += 100_000 }
        #expect(taken <= store.largest)
        writer.finish(try head())
        store.settle(patience: .seconds(30))
        #expect(store.census.responses == 0)
        #expect(store.write(under: key(1), length: store.largest + 1) == nil)
        store.close()
        let file = try DiskFile(path: folder.path, bytes: 4 << 20)
        #expect(try file.contents().incomplete.isEmpty)
        #expect(try file.chunk(1, 0) == nil)
    }

    @Test func `a full disk stores nothing, and harms nothing`() async throws {
        let store = try await open(.mebibytes(4))
        // More at once than the file holds: what LMDB says then is what a full disk says.
        let writers = try (2..<7).map { try #require(store.write(under: key($0), length: nil)) }
        for _ in 0..<14 {
            for writer in writers { _ = writer.append(Array(repeating: 1, count: 100_000)) }
            store.settle(patience: .seconds(30))
        }
        #expect(store.failures > 0)
        #expect((1...5).contains(store.census.unwritten))
        for writer in writers { writer.finish(try head()) }
        store.settle(patience: .seconds(30))
        #expect(store.census.responses < 5)
        // The one that is left may fill the file to its end: then this fails, too, and makes room for the next.
        for _ in 0..<2 where await content(under: key(8), store) != [8] {
            self.store([8], try head(), under: key(8), in: store)
        }
        #expect(await content(under: key(8), store) == [8])
    }

    // MARK: Damaged

    @Test func `a file that was not closed is verified, and moved aside where that fails`() async throws {
        do {
            let store = try await open()
            self.store([1], try head(), under: key(1), in: store)
            store.close()
        }
        #expect(folder.has("clean"))
        unlink(folder.path + "/clean")
        do {
            let store = try await open(verifier: "/bin/true")
            #expect(isKnown(key(1), store))
            #expect(!folder.has("clean"))
            store.close()
        }
        unlink(folder.path + "/clean")
        let store = try await open(verifier: "/bin/false")
        #expect(!isKnown(key(1), store))
        #expect(folder.has("data.mdb.damaged"))
        self.store([2], try head(), under: key(1), in: store)
        #expect(await load(key(1), store).count == 1)
    }

    @Test func `a file that is not a database is moved aside`() async throws {
        try FileManager.default.createDirectory(atPath: folder.path, withIntermediateDirectories: true)
        try Data(repeating: 0x41, count: 100_000).write(to: URL(filePath: folder.data))
        #expect(!DiskFolder.isIntact(folder.path))
        let store = try await open(verifier: "/bin/true")
        #expect(folder.has("data.mdb.damaged"))
        #expect(self.store([2], try head(), under: key(1), in: store))
    }

    @Test func `a file that is shorter than it says, or changed anywhere that matters, is not intact`() async throws {
        do {
            let store = try await open()
            for number in 0..<50 {
                let text = String(repeating: "content-of-\(number)!", count: number * 100 + 1)
                self.store(Array(text.utf8), try head(["X-Of: field-of-\(number)!"]), under: key(number), in: store)
            }
            store.close()
        }
        #expect(DiskFolder.isIntact(folder.path))
        let whole = try Data(contentsOf: URL(filePath: folder.data))
        for damage in ["content-of-7!", "field-of-9!"] {
            #expect(try folder.damage(damage) > 0)
            #expect(!DiskFolder.isIntact(folder.path), "\(damage)")
            try whole.write(to: URL(filePath: folder.data))
        }
        try whole.prefix(whole.count / 2).write(to: URL(filePath: folder.data))
        #expect(!DiskFolder.isIntact(folder.path))
        // Not closed in this state, so it is verified.
        let store = try await open(verifier: "/bin/false")
        #expect(store.census.responses == 0)
    }

    @Test func `damage that no check looked for is a miss, or cuts the response off`() async throws {
        let long = String(repeating: "long-content!", count: 20_000)
        do {
            let store = try await open()
            self.store(Array("short-content!".utf8), try head(), under: key(1), in: store)
            self.store(Array(long.utf8), try head(), under: key(2), in: store)
            self.store([1], try head(["X-Of: some-field!"]), under: key(3), in: store)
            store.close()
        }
        for text in ["short-content!", "long-content!", "some-field!"] { #expect(try folder.damage(text) > 0) }
        let store = try await open(verifier: "/bin/true")
        #expect(await load(key(1), store).isEmpty)
        #expect(await load(key(3), store).isEmpty)
        let found = try #require(await load(key(2), store).first)
        #expect(await content(of: found) == nil)
        #expect(!isKnown(key(2), store))
    }

    @Test func `a folder belongs to one store at a time`() async throws {
        let first = try await open()
        let second = DiskStore(path: folder.path, limit: .mebibytes(64), verifier: "/bin/false")
        #expect(!second.isReady)
        self.store([1], try head(), under: key(1), in: first)
        #expect(!isKnown(key(1), second))
        first.close()
        try await eventually { second.isReady }
        #expect(isKnown(key(1), second))
    }

    @Test func `a folder that cannot be made is a store that has nothing`() async throws {
        let store = DiskStore(path: "/proc/none/store", limit: .mebibytes(4), verifier: "/bin/false")
        #expect(!store.isReady)
        #expect(store.write(under: key(1), length: 1) == nil)
        #expect(await load(key(1), store).isEmpty)
    }

    // MARK: In an app: without a verifier

    /// A copy of the folder as it is now: what the end of the process would leave.
    private func left(boot: String? = nil) throws -> StoreFolder {
        let copy = StoreFolder()
        try FileManager.default.createDirectory(atPath: copy.path, withIntermediateDirectories: true)
        for name in ["data.mdb", "boot"] where folder.has(name) {
            try FileManager.default.copyItem(atPath: "\(folder.path)/\(name)", toPath: "\(copy.path)/\(name)")
        }
        if let boot { try Data(boot.utf8).write(to: URL(filePath: copy.path + "/boot")) }
        return copy
    }

    private func appStore(_ folder: StoreFolder) -> DiskStore {
        DiskStore(path: folder.path, limit: .mebibytes(64))
    }

    @Test func `an app's store that was not closed is used in the same process, by the first look-up`() async throws {
        let first = appStore(folder)
        #expect(await load(key(1), first).isEmpty)
        // The first response is kept: its look-up waited until the file was open.
        #expect(self.store([1, 2], try head(), under: key(1), in: first))
        let killed = try left()
        let second = appStore(killed)
        #expect(isKnown(key(1), second))
        #expect(await content(under: key(1), second) == [1, 2])
    }

    @Test func `an app's store begins empty if the machine stopped before it was closed`() async throws {
        let first = appStore(folder)
        _ = await load(key(1), first)
        self.store([1, 2], try head(), under: key(1), in: first)
        let killed = try left(boot: "another start of the machine\n")
        let second = appStore(killed)
        #expect(await load(key(1), second).isEmpty)
        #expect(self.store([3], try head(), under: key(1), in: second))
        // Closed, it is used whatever happened to the machine.
        second.close()
        try Data("a third start".utf8).write(to: URL(filePath: killed.path + "/boot"))
        #expect(await content(under: key(1), appStore(killed)) == [3])
    }

    @Test func `an app's store begins empty if the file is shorter than it says`() async throws {
        let first = appStore(folder)
        _ = await load(key(1), first)
        for number in 0..<20 { self.store(DiskStoreTests.content(50_000), try head(), under: key(number), in: first) }
        let killed = try left()
        let whole = try Data(contentsOf: URL(filePath: killed.data))
        try whole.prefix(whole.count / 2).write(to: URL(filePath: killed.data))
        let second = appStore(killed)
        #expect(await load(key(1), second).isEmpty)
        #expect(second.census.responses == 0)
        #expect(self.store([3], try head(), under: key(1), in: second))
    }

    @Test func `a response that is invalidated before the file is open is not found in it, RFC 9111 §4.4`() async throws
    {
        do {
            let first = appStore(folder)
            _ = await load(key(1), first)
            for number in 1...2 { self.store([1], try head(), under: key(number), in: first) }
            first.close()
        }
        let second = appStore(folder)
        second.invalidate(key(1))
        #expect(await load(key(1), second).isEmpty)
        #expect(await load(key(2), second).count == 1)
    }

    @Test func `the end of a program closes its store, though it holds it to the end`() async throws {
        let path = folder.path
        await #expect(processExitsWith: .success) { [path = path as String] in
            let store = try await DiskStoreTests.storeOne(path)
            withExtendedLifetime(store) { exit(0) }
        }
        #expect(folder.has("clean"))
        #expect(await content(under: key(1), appStore(folder)) == [1, 2, 3])
    }

    @Test func `responses that a killed program stored are found by the next one`() async throws {
        let path = folder.path
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let store = try await DiskStoreTests.storeOne(path)
            withExtendedLifetime(store) { _ = raise(SIGKILL) }
        }
        #expect(!folder.has("clean"))
        #expect(await content(under: key(1), appStore(folder)) == [1, 2, 3])
    }

    /// Does as an app does: asks for a response, stores it, and closes nothing.
    private static func storeOne(_ path: String) async throws -> DiskStore {
        let tests = try DiskStoreTests()
        let store = DiskStore(path: path, limit: .mebibytes(64))
        _ = await tests.load(tests.key(1), store)
        #expect(tests.store([1, 2, 3], try tests.head(), under: tests.key(1), in: store))
        return store
    }
}
