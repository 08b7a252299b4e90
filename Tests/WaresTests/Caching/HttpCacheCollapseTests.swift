import HttpCaching
import HttpWareTesting
import Testing

@testable import HttpWare
@testable import Wares

@Suite struct HttpCacheCollapseTests {
    private let fresh = "Cache-Control: max-age=60"

    /// This number of requests at once, the first of which is upstream.
    private func crowd(_ stage: CacheStage, _ count: Int, _ lines: [String] = []) async throws -> [TestExchange.Pending]
    {
        var pending: [TestExchange.Pending] = []
        for _ in 0..<count { pending.append(try await stage.start("/", lines)) }
        return pending
    }

    private func respond(_ stage: CacheStage, _ status: Int, _ lines: [String])
        throws
    {
        stage.exchange.upstream.respond(
            with: HttpResponse(
                try #require(HttpStatus(status)), fields: try CacheStage.fields(lines), content: .text("one")),
            after: .seconds(1))
    }

    /// Lets those answer that wait for the origin server's clock.
    private func answers(_ pending: [TestExchange.Pending], _ stage: CacheStage, asked: Int = 1) async throws
        -> [HttpResponse]
    {
        while stage.asked < asked { await Task.yield() }
        await stage.advance(1)
        var responses: [HttpResponse] = []
        for one in pending { responses.append(try await one.response()) }
        return responses
    }

    @Test func `a thousand requests at once are one upstream`() async throws {
        let stage = try CacheStage()
        try respond(stage, 200, [fresh])
        let responses = try await answers(try await crowd(stage, 1000), stage)
        #expect(responses.allSatisfy { $0.status == .ok && $0.content.text == "one" })
        #expect(responses[0].fields["Cache-Status"] == "httpware; fwd=uri-miss; stored")
        #expect(
            responses[999].fields["Cache-Status"] == "httpware; fwd=uri-miss; stored, httpware; fwd=uri-miss; collapsed"
                || responses[999].fields["Cache-Status"] == "httpware; fwd=uri-miss; collapsed")
        #expect(stage.asked == 1)
    }

    @Test func `a response that turns out not to be for sharing lets each go its own way, and none waits next time`()
        async throws
    {
        let stage = try CacheStage()
        try respond(stage, 200, ["Cache-Control: no-store"])
        try stage.respond(["Cache-Control: no-store"], "own", always: true)
        let responses = try await answers(try await crowd(stage, 10), stage)
        #expect(responses.map { $0.content.text ?? "" } == ["one"] + Array(repeating: "own", count: 9))
        #expect(stage.asked == 10)
        stage.exchange.upstream.neverRespond()
        let slow = try await stage.start()
        #expect(try await stage.send().text == "own")
        await slow.leave()
    }

    @Test func `a failure is tried once more by one, and a second one is for all`() async throws {
        let stage = try CacheStage()
        try respond(stage, 503, [])
        try stage.respond(503, [], "down", always: true)
        let responses = try await answers(try await crowd(stage, 10), stage)
        #expect(responses.allSatisfy { $0.status == .serviceUnavailable })
        #expect(stage.asked == 2)
    }

    @Test(arguments: ["Cache-Control: private", "Cache-Control: no-store", "Vary: *"])
    func `a failure that is for one client answers no other, RFC 9111 §5.2.2.7`(line: String) async throws {
        let stage = try CacheStage()
        try respond(stage, 503, [line])
        try stage.respond(503, [line], "own", always: true)
        let responses = try await answers(try await crowd(stage, 10), stage)
        #expect(responses.map { $0.content.text ?? "" } == ["one"] + Array(repeating: "own", count: 9))
        #expect(stage.asked == 10)
    }

    @Test func `a failure answers only requests with the same fields of Vary, RFC 9111 §4.1`() async throws {
        let stage = try CacheStage()
        try respond(stage, 503, ["Vary: X-Tenant"])
        try stage.respond(503, ["Vary: X-Tenant"], "own", always: true)
        let pending = try await crowd(stage, 3, ["X-Tenant: one"]) + crowd(stage, 1, ["X-Tenant: other"])
        let responses = try await answers(pending, stage)
        #expect(responses.allSatisfy { $0.status == .serviceUnavailable })
        #expect(stage.asked == 3)
    }

    @Test func `a response that needs a validation before each use answers only its own request, RFC 9111 §5.2.2.4`()
        async throws
    {
        let stage = try CacheStage()
        try respond(stage, 200, ["Cache-Control: no-cache", "ETag: \"a\""])
        try stage.respond(["Cache-Control: no-cache", "ETag: \"b\""], "own", always: true)
        let responses = try await answers(try await crowd(stage, 10), stage)
        #expect(responses.map { $0.content.text ?? "" } == ["one"] + Array(repeating: "own", count: 9))
    }

    @Test(arguments: ["Cache-Control: private", "Cache-Control: no-store", "Cache-Control: no-cache"])
    func `a validation that makes a response one client's answers no other`(line: String) async throws {
        let stage = try CacheStage()
        try stage.respond([fresh, "ETag: \"a\""], "old")
        _ = try await stage.send()
        await stage.advance(70)
        stage.exchange.upstream.respond(
            with: HttpResponse(.notModified, fields: try CacheStage.fields([line, "ETag: \"a\""])), after: .seconds(1))
        try stage.respond([line], "own", always: true)
        let responses = try await answers(try await crowd(stage, 3), stage, asked: 2)
        #expect(responses.map { $0.content.text ?? "" } == ["old", "own", "own"])
    }

    @Test func `a failure that the second try does not meet is the first one's alone`() async throws {
        let stage = try CacheStage()
        try respond(stage, 503, [])
        try stage.respond([fresh], "up", always: true)
        let responses = try await answers(try await crowd(stage, 10), stage)
        #expect(responses.map(\.status.code) == [503] + Array(repeating: 200, count: 9))
        #expect(stage.asked == 2)
    }

    @Test func `a leader that leaves ends nothing that others wait for`() async throws {
        let stage = try CacheStage()
        try respond(stage, 200, [fresh])
        let pending = try await crowd(stage, 3)
        while stage.asked < 1 { await Task.yield() }
        await pending[0].leave()
        let responses = try await answers(Array(pending.dropFirst()), stage)
        #expect(responses.allSatisfy { $0.content.text == "one" })
        #expect(stage.asked == 1)
        #expect(try await stage.send().isHit)
    }

    @Test func `a leader that leaves alone ends its request`() async throws {
        let stage = try CacheStage()
        stage.exchange.upstream.neverRespond()
        try stage.respond([fresh], "two", always: true)
        let first = try await stage.start()
        while stage.asked < 1 { await Task.yield() }
        await first.leave()
        #expect(try await stage.send().text == "two")
    }

    @Test func `a follower that leaves does not hold up the others`() async throws {
        let stage = try CacheStage()
        try respond(stage, 200, [fresh])
        let pending = try await crowd(stage, 3)
        await pending[1].leave()
        let responses = try await answers([pending[0], pending[2]], stage)
        #expect(responses.allSatisfy { $0.content.text == "one" } && stage.asked == 1)
    }

    @Test func `a follower that waits too long goes alone`() async throws {
        let stage = try CacheStage()
        stage.exchange.upstream.neverRespond()
        try stage.respond([fresh], "two", always: true)
        let pending = try await crowd(stage, 2)
        while stage.asked < 1 { await Task.yield() }
        await stage.advance(5)
        #expect(try await pending[1].response().content.text == "two")
        await pending[0].leave()
    }

    @Test func `a variant for another is not for you, RFC 9111 §4.1`() async throws {
        let stage = try CacheStage()
        try respond(stage, 200, [fresh, "Vary: Accept-Language"])
        try stage.respond([fresh, "Vary: Accept-Language"], "two", always: true)
        let first = try await stage.start("/", ["Accept-Language: de"])
        let second = try await stage.start("/", ["Accept-Language: en"])
        let third = try await stage.start("/", ["Accept-Language: de"])
        let responses = try await answers([first, second, third], stage)
        #expect(responses.map { $0.content.text ?? "" } == ["one", "two", "one"])
        #expect(stage.asked == 2)
    }

    @Test(arguments: ["Authorization", "Cookie"])
    func `people do not share what is on its way, RFC 9111 §3.5`(field: String) async throws {
        let stage = try CacheStage()
        for _ in 0..<2 { try respond(stage, 200, ["Cache-Control: public, max-age=60"]) }
        let first = try await stage.start("/", ["\(field): a"])
        let second = try await stage.start("/", ["\(field): b"])
        _ = try await answers([first, second], stage, asked: 2)
        #expect(stage.asked == 2)
    }

    @Test(arguments: ["Range: bytes=0-1", "If-None-Match: \"a\"", "Cache-Control: no-cache", "Cache-Control: no-store"])
    func `a request of another kind waits for no other`(line: String) async throws {
        let stage = try CacheStage()
        stage.exchange.upstream.neverRespond()
        try stage.respond([fresh], "two", always: true)
        let first = try await stage.start()
        while stage.asked < 1 { await Task.yield() }
        #expect(try await stage.send(.get, "/", [line]).status == 200)
        await first.leave()
    }

    @Test func `requests that wait for a validation have the stored response, RFC 9111 §4.3.3`() async throws {
        let stage = try CacheStage()
        try stage.respond([fresh, "ETag: \"a\""], "old")
        _ = try await stage.send()
        await stage.advance(70)
        stage.exchange.upstream.respond(
            with: HttpResponse(.notModified, fields: try CacheStage.fields([fresh, "ETag: \"a\""])), after: .seconds(1))
        let responses = try await answers(try await crowd(stage, 10), stage, asked: 2)
        #expect(responses.allSatisfy { $0.status == .ok && $0.content.text == "old" })
        #expect(stage.asked == 2)
    }

    @Test(arguments: ["Accept-Language", "X-Tenant"])
    func `requests that wait for a validation get only a response for their own fields, RFC 9111 §4.1`(
        field: String
    ) async throws {
        let stage = try CacheStage()
        try stage.respond([fresh, "ETag: \"a\"", "Vary: \(field)"], "old")
        _ = try await stage.send(.get, "/", ["\(field): de"])
        await stage.advance(70)
        stage.exchange.upstream.respond(
            with: HttpResponse(
                .notModified, fields: try CacheStage.fields([fresh, "ETag: \"a\"", "Vary: \(field)"])),
            after: .seconds(1))
        try stage.respond([fresh, "Vary: \(field)"], "two", always: true)
        let pending = try await crowd(stage, 2, ["\(field): de"]) + crowd(stage, 2, ["\(field): en"])
        let responses = try await answers(pending, stage, asked: 2)
        #expect(responses.map { $0.content.text } == ["old", "old", "two", "two"])
        #expect(responses[2].fields["Cache-Status"]?.contains("collapsed") == false)
    }

    @Test func `after a failure, requests that wait get a stale response only for their own fields`() async throws {
        let stage = try CacheStage()
        try stage.respond(["Cache-Control: max-age=60, stale-if-error=600", "ETag: \"a\"", "Vary: X-Tenant"], "old")
        _ = try await stage.send(.get, "/", ["X-Tenant: one"])
        await stage.advance(70)
        try respond(stage, 503, [])
        try stage.respond([fresh, "Vary: X-Tenant"], "two", always: true)
        let pending = try await crowd(stage, 2, ["X-Tenant: one"]) + crowd(stage, 1, ["X-Tenant: other"])
        let responses = try await answers(pending, stage, asked: 2)
        #expect(responses.map { $0.content.text } == ["old", "old", "two"])
    }

    @Test func `a stale response that only the first request accepts is not given to those behind it`() async throws {
        let stage = try CacheStage()
        try stage.respond([fresh, "ETag: \"a\""], "old")
        _ = try await stage.send()
        await stage.advance(70)
        try respond(stage, 503, [])
        try stage.respond([fresh], "two", always: true)
        let pending =
            try await crowd(stage, 1, ["Cache-Control: stale-if-error=600"]) + crowd(stage, 2)
        let responses = try await answers(pending, stage, asked: 2)
        #expect(responses.map { $0.content.text } == ["old", "two", "two"])
        #expect(stage.asked == 3)
    }

    @Test func `a response that another leader stored between the look and the place at the head answers`() async throws
    {
        let overlooks = Flag()
        let stage = try CacheStage { $0.store = OverlookingStore($0.store, $0.collapsed, overlooks) }
        try stage.respond([fresh], "one", always: true)
        #expect(try await stage.send().text == "one")
        overlooks.set()
        #expect(try await stage.send().isHit)
        #expect(!overlooks.isSet && stage.asked == 1)
    }

    @Test func `collapsing can be turned off`() async throws {
        let stage = try CacheStage { $0.collapses = false }
        for _ in 0..<3 { try respond(stage, 200, [fresh]) }
        _ = try await answers(try await crowd(stage, 3), stage, asked: 3)
        #expect(stage.asked == 3)
    }

    @Test func `large content goes to all of them as it comes`() async throws {
        let stage = try CacheStage()
        let text = String(repeating: "0123456789", count: 300_000)
        stage.exchange.upstream.respond(
            with: HttpResponse(.ok, fields: try CacheStage.fields([fresh]), content: .text(text)), after: .seconds(1))
        let responses = try await answers(try await crowd(stage, 20), stage)
        #expect(responses.allSatisfy { $0.content.text == text } && stage.asked == 1)
    }
}

/// Whether something is to happen. From any thread.
private final class Flag: Sendable {
    private let value = ThreadLock(false)

    var isSet: Bool { value.withLock { $0 } }
    func set() { value.withLock { $0 = true } }

    /// Answers whether it was set.
    func reset() -> Bool {
        value.withLock { value in
            defer { value = false }
            return value
        }
    }
}

/// A store that has nothing when it is told to, just before another leader ends who stored it.
private final class OverlookingStore: CacheStore {
    private let store: any CacheStore
    private let requests: CollapsedRequests
    private let overlooks: Flag

    init(_ store: any CacheStore, _ requests: CollapsedRequests, _ overlooks: Flag) {
        self.store = store
        self.requests = requests
        self.overlooks = overlooks
    }

    func find(_ key: CacheKey, where isSelected: (StoredResponse) -> Bool) -> Found {
        guard overlooks.reset() else { return store.find(key, where: isSelected) }
        if case .lead = requests.join(key, at: LoopInstant(nanoseconds: 0)) {
            CollapsedLead(requests, key).finish(isWhole: true)
        }
        return .none(hasOthers: false)
    }

    func load(_ key: CacheKey) async -> [StoredResponse] { await store.load(key) }
    func write(under key: CacheKey, length: Int?) -> (any StoreWriter)? { store.write(under: key, length: length) }
    func replace(_ response: StoredResponse, with update: StoredHead, under key: CacheKey) {
        store.replace(response, with: update, under: key)
    }
    func remove(_ response: StoredResponse, under key: CacheKey) { store.remove(response, under: key) }
    func invalidate(_ key: CacheKey) { store.invalidate(key) }
    func purge(where isSelected: @Sendable (CacheKey, StoredHead) -> Bool) async -> StorePurge {
        await store.purge(where: isSelected)
    }
    var census: StoreCensus { store.census }
}
