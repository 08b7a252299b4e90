import HttpCaching
import HttpWareTesting
import Synchronization
import Testing
import Wares

@testable import HttpWare

/// The result of a cache for each request, as it is counted, and its reason, as the record has it.
@Suite struct CacheResultTests {
    private let ring = RecordRing(mostRecords: 64, mostBytes: .mebibytes(1))

    private func stage() throws -> CacheStage {
        var setting = TestExchange.Setting()
        setting.records = ring
        return try CacheStage(setting: setting)
    }

    private var last: ExchangeReport? { ring.recent(1).first.map { ExchangeReport($0) } }
    private var notes: [String] { last?.wares.map(\.text) ?? [] }

    @Test func `a miss, a hit and a stale hit are told apart`() async throws {
        let stage = try stage()
        try stage.respond(["Cache-Control: max-age=60"])
        _ = try await stage.send()
        #expect(last?.cache == "miss")
        #expect(notes == ["miss: no response is stored", "stored"])
        _ = try await stage.send()
        #expect(last?.cache == "hit")
        #expect(notes == ["hit"])
        #expect(last?.responder == "cache")
        await stage.advance(61)
        _ = try await stage.send(.get, "/", ["Cache-Control: max-stale"])
        #expect(last?.cache == "stale")
        #expect(notes == ["stale"])
    }

    @Test func `a response that still holds is validated, and says why it was asked about`() async throws {
        let stage = try stage()
        try stage.respond(["Cache-Control: max-age=60", "ETag: \"1\""])
        _ = try await stage.send()
        await stage.advance(61)
        try stage.respond(304, ["ETag: \"1\"", "Cache-Control: max-age=60"], "")
        _ = try await stage.send()
        #expect(last?.cache == "validated")
        #expect(notes == ["miss: the stored response is stale and is validated", "validated"])
        try stage.respond(["Cache-Control: max-age=60", "ETag: \"2\""])
        _ = try await stage.send(.get, "/", ["Cache-Control: no-cache"])
        #expect(last?.cache == "miss")
        #expect(notes == ["miss: the request demands validation", "stored"])
    }

    @Test func `a request that no cache answers is passed by, and says why`() async throws {
        let stage = try stage()
        try stage.respond(200, [], always: true)
        _ = try await stage.send(.post)
        #expect(last?.cache == "bypass")
        #expect(notes.first == "passed not for the cache: POST is not answered from stored responses")
        _ = try await stage.send(.get, "/", ["If-Match: \"1\""])
        #expect(last?.cache == "bypass")
        #expect(notes.first == "passed not for the cache: the conditions are for the origin server")
    }

    @Test func `why a response is not stored is told`() async throws {
        let stage = try stage()
        try stage.respond(["Cache-Control: no-store"])
        _ = try await stage.send()
        #expect(notes == ["miss: no response is stored", "passed not stored: the response says no-store"])
        try stage.respond(["Cache-Control: max-age=60", "Vary: *"])
        _ = try await stage.send()
        #expect(notes.last == "passed not stored: Vary: * never matches a request")
    }

    /// A response's status and lines, a request's method and lines, and why nothing is stored.
    private static let reasons: [(Int, [String], HttpMethod, [String], String)] = [
        (200, ["Cache-Control: private"], .get, [], "the response is private, the cache is shared"),
        (200, ["Cache-Control: max-age=9"], .get, ["Cache-Control: no-store"], "the request says no-store"),
        (
            200, ["Cache-Control: max-age=9"], .get, ["Authorization: x"],
            "the request was authorized, and no directive allows a shared cache to store the response"
        ),
        (200, [], .get, [], "it is stale at once and has no validator"),
        (200, ["Cache-Control: max-age=0"], .get, [], "it is stale at once and has no validator"),
        (302, [], .get, [], "neither a directive nor the status allows storing it"),
        (503, [], .get, [], "neither a directive nor the status allows storing it"),
        (
            299, ["Cache-Control: must-understand, max-age=9"], .get, [],
            "must-understand, but the status is not understood"
        ),
        (206, ["Cache-Control: max-age=9"], .get, ["Range: bytes=0-0"], "its Content-Range cannot be read"),
        (200, ["Cache-Control: max-age=9"], .head, [], "a response to HEAD has no content"),
        (200, ["Cache-Control: no-store"], .post, [], "responses to this method are not stored"),
        (200, ["Cache-Control: max-age=9"], .post, [], "it does not say that it answers GET, too"),
        (304, [], .get, ["If-None-Match: \"a\""], "a 304 updates a stored response and is not stored itself"),
        (
            200, ["Cache-Control: max-age=9", "Vary: " + (0..<65).map { "f\($0)" }.joined(separator: ",")], .get, [],
            "it varies by more fields than are compared"
        ),
    ]

    @Test(arguments: reasons)
    func `each reason not to store is told, RFC 9111 §3`(
        status: Int, answer: [String], method: HttpMethod, request: [String], reason: String
    ) async throws {
        let stage = try stage()
        try stage.respond(status, answer, status == 304 ? "" : "x")
        _ = try await stage.send(method, "/", request)
        #expect(notes.last == "passed not stored: \(reason)")
        #expect(stage.store.census.responses == 0)
    }

    @Test func `a request for what is stored only is a miss where nothing is`() async throws {
        let stage = try stage()
        #expect(try await stage.send(.get, "/", ["Cache-Control: only-if-cached"]).status == 504)
        #expect(last?.cache == "miss")
        #expect(notes == ["aborted 504 only-if-cached, and no suitable response is stored"])
    }

    @Test func `another variant is a miss of its own kind`() async throws {
        let stage = try stage()
        try stage.respond(["Cache-Control: max-age=60", "Vary: Accept"], always: true)
        _ = try await stage.send(.get, "/", ["Accept: a/b"])
        _ = try await stage.send(.get, "/", ["Accept: c/d"])
        #expect(last?.cache == "miss")
        #expect(notes.first == "miss: the stored responses are for other request fields")
    }

    @Test func `requests that waited for another one's response are collapsed`() async throws {
        let stage = try stage()
        stage.exchange.upstream.respond(
            with: HttpResponse(.ok, fields: ["Cache-Control": "max-age=60"], content: .text("one")),
            after: .seconds(1))
        let first = try await stage.start()
        let second = try await stage.start()
        while stage.asked < 1 { await Task.yield() }
        await stage.advance(1)
        _ = try await first.response()
        _ = try await second.response()
        #expect(Set(ring.recent(2).map { ExchangeReport($0).cache }) == ["miss", "collapsed"])
    }

    @Test func `an exchange that no cache saw has no result`() async throws {
        var setting = TestExchange.Setting()
        setting.records = ring
        let exchange = try TestExchange([ResultReader()], setting: setting)
        _ = try await exchange.send(.get("/"))
        #expect(last != nil)
        #expect(last?.cache == nil)
        #expect(last?.json.contains("\"cache\"") == false)
    }

    private struct ResultReader: Middleware {
        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }
    }
}
