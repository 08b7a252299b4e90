import GatewayConfig
import HttpCaching
import HttpWare
import Testing

@testable import HttpGateway

@Suite struct AdminCacheTests {
    private static let mark = "s3cretValue"

    private let stage: AdminStage
    private let store: any CacheStore

    init() throws {
        stage = try AdminStage(
            """
            version: 1
            listeners: { web: { bind: "127.0.0.1:0" } }
            stores: { small: { memory: { maxSize: 1MiB } } }
            services: { a: { baseUrl: "http://127.0.0.1:1" } }
            chains:
              shared: { middlewares: [{ httpCache: { store: small } }] }
              own: { middlewares: [{ httpCache: { mode: private } }] }
              asking: { middlewares: [{ notModified: { maxSize: 2MiB } }, { notModified: { mode: private }, as: small }] }
            routes:
              - { match: { path: /shared }, service: a, chain: shared }
              - { match: { path: /asking }, service: a, chain: asking }
              - { match: { path: /again }, service: a, chain: asking }
              - { service: a, chain: own }
            """)
        store = try #require(stage.configuration.stores.first { $0.name == "small" }).store.store
    }

    private func put(
        _ key: String, _ lines: [String: String] = [:], tags: [String] = [], in store: (any CacheStore)? = nil,
        of identity: String? = nil, share: String? = nil
    ) throws {
        let received = WallTime(seconds: 1_767_225_600) + .seconds(-30)
        var fields = HttpFields()
        for (name, value) in lines { try fields.append(try #require(FieldName(name)), value) }
        let head = StoredHead(
            status: .ok, fields: fields, times: MessageTimes(fields, requested: received, received: received),
            directives: ResponseDirectives(), lifetime: FreshnessLifetime(seconds: 60, source: .maxAge),
            vary: try #require(VaryKey(fields) { _ in ["x"] }), mode: .shared, tags: tags)
        let digest = identity.flatMap { Digest256(hex: Array($0.utf8)) }
        let key = CacheKey(Array(key.utf8), identity: digest, share: share)
        let writer = try #require((store ?? self.store).write(under: key, length: 3))
        #expect(writer.append([1, 2, 3]))
        writer.finish(head)
    }

    private func keys(_ query: String = "", of store: String = "small") async throws -> [String] {
        let answer = try await stage.ask("/v1/cache/\(store)/entries\(query)")
        #expect(answer.status == 200)
        return (answer.json["entries"] as? [[String: Any]] ?? []).map { $0["key"] as? String ?? "?" }
    }

    @Test func `every store is listed, with its content`() async throws {
        try put("http://a.test/1")
        let answer = try await stage.ask("/v1/cache")
        let stores = try #require(answer.json["stores"] as? [[String: Any]])
        #expect(stores.map { $0["name"] as? String } == ["small", "memory", "notModified", "small-2"])
        #expect(stores.map { $0["kind"] as? String } == Array(repeating: "memory", count: 4))
        #expect(stores.map { $0["responses"] as? Int } == [1, 0, 0, 0])
        #expect(stores.map { $0["unwritten"] as? Int } == [0, 0, 0, 0])
        #expect(stores[2]["limit"] as? Int == 2 << 20)
        #expect(stores[0]["limit"] as? Int == 1 << 20)
        #expect(stores[0]["bytes"] as? Int == store.census.bytes)
        #expect((answer.json["routes"] as? [Any])?.isEmpty == true)
    }

    @Test func `responses that notModified keeps are listed, shown and purged like those of a named store`()
        async throws
    {
        let stores = ShownStore.all(stage.configuration)
        let (asking, own) = (stores[2], stores[3])
        try put("http://a.test/1", in: asking.store)
        try put("http://a.test/1", in: own.store, of: String(repeating: "0123456789abcdef", count: 4))
        #expect(try await keys(of: "notModified") == ["http://a.test/1"])
        #expect(!asking.mayKeepApart(stage.configuration) && own.mayKeepApart(stage.configuration))
        #expect(try await stage.ask("/v1/cache/notModified/entry?key=http://a.test/1").status == 200)
        let purged = try await stage.ask("/v1/cache/small-2/purge?key=http://a.test/1", .post)
        #expect(purged.json["purged"] as? Int == 1)
        #expect(own.store.census.responses == 0 && asking.store.census.responses == 1)
    }

    @Test func `entries are listed by prefix and tag, in order, up to a limit that says so`() async throws {
        for number in 1...5 { try put("http://a.test/\(number)", tags: number % 2 == 0 ? ["even"] : []) }
        try put("http://b.test/", tags: ["even"])
        #expect(try await keys().count == 6)
        #expect(try await keys("?prefix=http://a.test/&tag=even") == ["http://a.test/2", "http://a.test/4"])
        #expect(try await keys("?tag=even").count == 3)
        #expect(try await keys("?tag=none").isEmpty)
        let cut = try await stage.ask("/v1/cache/small/entries?limit=5")
        #expect((cut.json["entries"] as? [Any])?.count == 5)
        #expect(cut.json["more"] as? Bool == true)
        #expect(try await stage.ask("/v1/cache/small/entries?limit=6").json["more"] as? Bool == false)
    }

    @Test func `an entry tells its age, its freshness, what it varies by and its tags`() async throws {
        try put("http://a.test/1", ["Vary": "Accept, X-A"], tags: ["t"])
        let answer = try await stage.ask("/v1/cache/small/entries")
        let entry = try #require((answer.json["entries"] as? [[String: Any]])?.first)
        #expect(entry["age"] as? Int == 30)
        #expect(entry["ttl"] as? Int == 30)
        #expect(entry["status"] as? Int == 200)
        #expect(entry["vary"] as? [String] == ["Accept", "X-A"])
        #expect(entry["tags"] as? [String] == ["t"])
        #expect(entry["size"] as? Int == store.census.bytes)
    }

    @Test func `details are found by key, and hold no credential`() async throws {
        let secret = AdminCacheTests.mark
        try put(
            "http://a.test/1?token=\(secret)",
            [
                "Set-Cookie": "sid=\(secret)", "X-Auth-Token": secret, "Location": "/next?token=\(secret)",
                "Content-Type": "text/plain",
            ])
        let listed = try #require(try await keys().first)
        #expect(listed == "http://a.test/1?token=…")
        for key in ["http://a.test/1?token=%E2%80%A6", "http://a.test/1?token=\(secret)"] {
            let escaped = key.replacing("?", with: "%3F").replacing("=", with: "%3D")
            let answer = try await stage.ask("/v1/cache/small/entry?key=\(escaped)")
            #expect(answer.status == 200)
            #expect(!"\(answer.json)".contains(secret))
            let response = try #require((answer.json["responses"] as? [[String: Any]])?.first)
            let fields = try #require(response["fields"] as? [[String: String]])
            #expect(fields.first { $0["name"] == "Content-Type" }?["value"] == "text/plain")
            #expect(fields.first { $0["name"] == "Set-Cookie" }?["value"] == "…")
            #expect(fields.first { $0["name"] == "Location" }?["value"] == "/next?token=…")
        }
        #expect(try await stage.ask("/v1/cache/small/entry?key=http://a.test/2").status == 404)
    }

    @Test func `a purge takes away one key, a prefix, a tag or everything`() async throws {
        for number in 1...6 { try put("http://a.test/\(number)", tags: number > 4 ? ["late"] : []) }
        try put("http://b.test/1")
        func purge(_ query: String) async throws -> Int? {
            try await stage.ask("/v1/cache/small/purge\(query)", .post).json["purged"] as? Int
        }
        #expect(try await purge("?key=http://a.test/1") == 1)
        #expect(try await purge("?key=http://a.test/1") == 0)
        #expect(try await purge("?prefix=http://a.test/2") == 1)
        #expect(try await purge("?tag=late") == 2)
        #expect(try await purge("?tag=late&prefix=http://a.test/") == 0)
        #expect(store.census.responses == 3)
        #expect(try await purge("?prefix=") == 3)
        #expect(store.census.bytes == 0)
    }

    @Test(arguments: ["prefix=", "tag=news"])
    func `a purge that does not reach all of the store is reported as incomplete`(query: String) async throws {
        let stage = try AdminStage(
            """
            version: 1
            listeners: { web: { bind: "127.0.0.1:0" } }
            stores: { shared: { redis: { url: "unix:/nowhere/redis.sock" } } }
            services: { a: { baseUrl: "http://127.0.0.1:1" } }
            chains: { cached: { middlewares: [{ httpCache: { store: shared } }] } }
            routes: [{ service: a, chain: cached }]
            """)
        let answer = try await stage.ask("/v1/cache/shared/purge?\(query)", .post)
        #expect(answer.status == 503)
        let detail = "not all of shared could be searched: 0 purged, others may be left"
        #expect(answer.json["detail"] as? String == detail)
    }

    @Test func `in a private cache a key means the responses of all who asked`() async throws {
        let memory = try #require(stage.configuration.stores.first { $0.name == "memory" }).store.store
        for digit in ["1", "2"] {
            try put("http://a.test/1", in: memory, of: String(repeating: digit, count: 64), share: "canary")
        }
        try put("http://a.test/10", in: memory)
        #expect(try await keys(of: "memory").sorted() == ["http://a.test/1", "http://a.test/1", "http://a.test/10"])
        let shown = try await stage.ask("/v1/cache/memory/entry?key=http://a.test/1")
        let identities = (shown.json["responses"] as? [[String: Any]])?.compactMap { $0["identity"] as? String }
        #expect(identities?.sorted() == ["111111111111", "222222222222"])
        let shares = (shown.json["responses"] as? [[String: Any]])?.compactMap { $0["share"] as? String }
        #expect(shares == ["canary", "canary"])
        let purged = try await stage.ask("/v1/cache/memory/purge?key=http://a.test/1", .post)
        #expect(purged.json["purged"] as? Int == 2)
        #expect(memory.census.responses == 1)
    }

    @Test(arguments: [
        ("/v1/cache/none/entries", 404), ("/v1/cache/small/entries?limit=0", 400),
        ("/v1/cache/small/entries?limit=1001", 400), ("/v1/cache/small/entries?limit=x", 400),
        ("/v1/cache/small/entries?key=x", 400), ("/v1/cache/small/entry", 400), ("/v1/cache/small/entry?key=", 400),
        ("/v1/cache/small/purge?tag=a", 405), ("/v1/cache/small", 404),
    ])
    func `invalid requests about the cache are refused`(path: String, status: Int) async throws {
        #expect(try await stage.ask(path).status == status)
    }

    @Test(arguments: ["", "?all=true", "?prefix=x&limit=1"])
    func `a purge that does not say what goes takes nothing away`(query: String) async throws {
        try put("http://a.test/1")
        #expect(try await stage.ask("/v1/cache/small/purge\(query)", .post).status == 400)
        #expect(store.census.responses == 1)
    }
}
