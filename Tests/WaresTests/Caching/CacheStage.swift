import Foundation
import HttpWareRedis
import HttpWareTesting
import Testing
import Wares

@testable import DiskCaching
@testable import HttpCaching
@testable import HttpWare

/// A cache between a client and an origin server, with a clock that stands still.
struct CacheStage {
    /// Where it keeps responses.
    enum Kind: CaseIterable, Sendable {
        case memory, disk, redis

        /// The stores that need no server.
        static let ownOnes: [Kind] = [.memory, .disk]
    }

    let exchange: TestExchange
    let store: any CacheStore
    /// The companions of the test: a folder, a server.
    private let belongings: (any Sendable)?

    /// The response to a client.
    struct Seen {
        let response: HttpResponse
        var status: Int { response.status.code }
        var text: String { response.content.text ?? "" }
        var cacheStatus: String { response.fields["Cache-Status"] ?? "" }
        var isHit: Bool { cacheStatus.hasPrefix("httpware; hit") }
        subscript(name: FieldName) -> String? { response.fields[name] }
    }

    init(
        setting: TestExchange.Setting = TestExchange.Setting(), before: [any Ware] = [], behind: [any Ware] = [],
        _ change: (inout HttpCache) -> Void = { _ in }
    ) throws {
        try self.init(
            store: MemoryStore(limit: .mebibytes(64)), with: nil, setting: setting, before: before, behind: behind,
            change)
    }

    /// A cache whose responses are kept there; one on disk is open.
    init(kind: Kind, _ change: (inout HttpCache) -> Void = { _ in }) async throws {
        let store: any CacheStore
        let belongings: (any Sendable)?
        switch kind {
        case .memory: (store, belongings) = (MemoryStore(limit: .mebibytes(64)), nil)
        case .disk:
            let folder = StoreFolder()
            (store, belongings) = (folder.store, folder)
        case .redis:
            let redis = try TestRedis()
            store = RedisStore(RedisClient(RedisDefinition(url: try RedisUrl(optionText: redis.url))))
            belongings = redis
        }
        try self.init(
            store: store, with: belongings, setting: TestExchange.Setting(), before: [], behind: [], change)
        guard let disk = store as? DiskStore else { return }
        try await eventually { disk.isReady }
    }

    private init(
        store: any CacheStore, with belongings: (any Sendable)?, setting: TestExchange.Setting, before: [any Ware],
        behind: [any Ware], _ change: (inout HttpCache) -> Void
    ) throws {
        var cache = HttpCache(store: store)
        change(&cache)
        self.store = store
        self.belongings = belongings
        exchange = try TestExchange(before + [cache] + behind, setting: setting)
    }

    /// Waits until what is to be stored is found.
    func settle() { (store as? DiskStore)?.settle(patience: .seconds(30)) }

    /// Waits until one response is stored, and it is that part; `nil` is the whole.
    func holds(_ part: Range<Int>?) async throws {
        try await eventually(every: .milliseconds(1)) {
            settle()
            let stored = await store.list(limit: 2) { _, _ in true }
            return stored.count == 1 && stored[0].head.part?.range == part
        }
    }

    /// A store on disk in a folder of its own, which goes with it.
    private final class StoreFolder: Sendable {
        let store: DiskStore
        private let path: String

        init() {
            path = FileManager.default.temporaryDirectory.appending(path: "httpware-stage-\(UUID().uuidString)").path
            store = DiskStore(path: path, limit: .mebibytes(16), verifier: "/bin/false")
        }

        deinit {
            // Else it would leave its mark there afterwards.
            store.close()
            try? FileManager.default.removeItem(atPath: path)
        }
    }

    /// How many requests the origin server was asked.
    var asked: Int { exchange.upstream.requests.count }
    /// The request that it was asked last.
    var last: HttpFields { exchange.upstream.requests.last?.fields ?? HttpFields() }

    /// The origin server's next response, or the one to all requests that nothing else was said for.
    func respond(_ status: Int, _ lines: [String], _ text: String = "x", always: Bool = false) throws {
        let response = HttpResponse(
            try #require(HttpStatus(status)), fields: try CacheStage.fields(lines), content: .text(text))
        if always {
            exchange.upstream.always(respondWith: response)
        } else {
            exchange.upstream.respond(with: response)
        }
    }

    /// The same with 200.
    func respond(_ lines: [String], _ text: String = "x", always: Bool = false) throws {
        try respond(200, lines, text, always: always)
    }

    func send(_ method: HttpMethod = .get, _ path: String = "/", _ lines: [String] = []) async throws -> Seen {
        Seen(response: try await exchange.send(.make(method, path, fields: try CacheStage.fields(lines))))
    }

    /// Sends a request, and goes on once what it does without waiting is done.
    func start(_ path: String = "/", _ lines: [String] = []) async throws -> TestExchange.Pending {
        await exchange.start(.get(path, fields: try CacheStage.fields(lines)))
    }

    func advance(_ seconds: Int) async { await exchange.advance(by: .seconds(seconds)) }

    static func fields(_ lines: [String]) throws -> HttpFields {
        var fields = HttpFields()
        for line in lines {
            let parts = line.split(separator: ":", maxSplits: 1)
            let name = try #require(FieldName(String(parts[0])))
            try fields.append(name, String(try #require(parts.last).drop { $0 == " " }))
        }
        return fields
    }
}
