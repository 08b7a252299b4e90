import HttpCaching
import HttpWareTesting
import Testing
import Wares

@testable import HttpWare

@Suite struct NotModifiedTests {
    private func response(_ status: Int, _ lines: [String], _ text: String = "x") throws -> HttpResponse {
        HttpResponse(try #require(HttpStatus(status)), fields: try CacheStage.fields(lines), content: .text(text))
    }

    private func get(_ exchange: TestExchange, _ lines: [String] = []) async throws -> HttpResponse {
        try await exchange.send(.get("/", fields: try CacheStage.fields(lines)))
    }

    @Test func `it always asks, however fresh a response is, and answers with what is kept, RFC 9110 §13.1.2`()
        async throws
    {
        let exchange = try TestExchange(NotModified.self)
        exchange.upstream.respond(with: try response(200, ["Cache-Control: max-age=60", "ETag: \"a\""], "one"))
        _ = try await get(exchange)
        for _ in 0..<2 {
            exchange.upstream.respond(with: try response(304, ["ETag: \"a\""], ""))
            let second = try await get(exchange)
            #expect(second.status == .ok && second.content.text == "one")
            #expect(exchange.upstream.requests.last?.fields[.ifNoneMatch] == "\"a\"")
        }
        #expect(exchange.upstream.requests.count == 3)
    }

    @Test func `a client that has it already is told so, RFC 9110 §15.4.5`() async throws {
        let exchange = try TestExchange(NotModified.self)
        exchange.upstream.respond(with: try response(200, ["ETag: \"a\""], "one"))
        _ = try await get(exchange)
        exchange.upstream.respond(with: try response(304, ["ETag: \"a\""], ""))
        #expect(try await get(exchange, ["If-None-Match: \"a\""]).status == .notModified)
    }

    /// The client's conditions, the origin server's lines with its 200, and the status that the client gets.
    @Test(arguments: [
        (["If-None-Match: \"a\""], ["ETag: \"a\""], 304), (["If-None-Match: W/\"a\""], ["ETag: \"a\""], 304),
        (["If-None-Match: \"b\", \"a\""], ["ETag: W/\"a\""], 304), (["If-None-Match: \"b\""], ["ETag: \"a\""], 200),
        (["If-None-Match: \"a\""], [], 200),
        (["If-None-Match: \"a\""], ["ETag: \"a\"", "Cache-Control: no-store"], 304),
        (
            ["If-Modified-Since: Wed, 31 Dec 2025 00:00:00 GMT"],
            ["Last-Modified: Wed, 31 Dec 2025 00:00:00 GMT"], 304
        ),
        (
            ["If-Modified-Since: Tue, 30 Dec 2025 00:00:00 GMT"],
            ["Last-Modified: Wed, 31 Dec 2025 00:00:00 GMT"], 200
        ),
        (["If-Modified-Since: Wed, 31 Dec 2025 00:00:00 GMT"], ["Date: Wed, 31 Dec 2025 00:00:00 GMT"], 200),
        (
            ["If-None-Match: \"b\"", "If-Modified-Since: Wed, 31 Dec 2025 00:00:00 GMT"],
            ["ETag: \"a\"", "Last-Modified: Wed, 31 Dec 2025 00:00:00 GMT"], 200
        ),
    ])
    func `an origin server's 200 is 304 for a client that has it, RFC 9110 §13.2.2`(
        conditions: [String], lines: [String], status: Int
    ) async throws {
        for isKept in [false, true] {
            for method in [HttpMethod.get, .head] {
                let exchange = try TestExchange(NotModified.self)
                if isKept {
                    exchange.upstream.respond(with: try response(200, ["ETag: \"old\""], "old"))
                    _ = try await get(exchange)
                }
                exchange.upstream.respond(with: try response(200, lines + ["Content-Type: a/b", "X-A: 1"], "one"))
                let answer = try await exchange.send(
                    .make(method, "/", fields: try CacheStage.fields(conditions)))
                #expect(answer.status.code == status && answer.fields["X-A"] == "1")
                #expect(answer.fields[.contentType] == (status == 304 ? nil : "a/b"))
                #expect((answer.content.text ?? "") == (status == 304 || method == .head ? "" : "one"))
            }
        }
    }

    @Test func `a kept response is removed when a 200 shows that the client has a newer one`() async throws {
        let exchange = try TestExchange(NotModified.self)
        exchange.upstream.respond(with: try response(200, ["ETag: \"a\""], "one"))
        _ = try await get(exchange)
        exchange.upstream.respond(with: try response(200, ["ETag: \"b\""], "two"))
        #expect(try await get(exchange, ["If-None-Match: \"b\""]).status == .notModified)
        _ = try await get(exchange)
        #expect(exchange.upstream.requests.last?.fields.contains(.ifNoneMatch) == false)
    }

    @Test(arguments: [
        (["\"a\""], "\"a\""), (["W/\"a\""], "W/\"a\""), (["\"b\", \"a\""], "\"b\", \"a\""),
        (["\"b\"", "\"a\""], "\"b\", \"a\""), (["\"b\""], "\"a\", \"b\""), (["*"], "\"a\""), ([], "\"a\""),
    ])
    func `a tag is asked about once, RFC 9110 §13.1.2`(own: [String], asked: String) async throws {
        let exchange = try TestExchange(NotModified.self)
        exchange.upstream.respond(with: try response(200, ["ETag: \"a\""], "one"))
        _ = try await get(exchange)
        exchange.upstream.respond(with: try response(304, ["ETag: \"a\""], ""))
        let answer = try await get(exchange, own.map { "If-None-Match: \($0)" })
        #expect(exchange.upstream.requests.last?.fields.values(of: .ifNoneMatch) == [asked])
        let has = own.contains { $0 == "*" || $0.contains("\"a\"") }
        #expect(answer.status == (has ? .notModified : .ok))
    }

    @Test func `a 304 that names no representation is not taken for the kept one, RFC 9111 §4.3.4`() async throws {
        let exchange = try TestExchange(NotModified.self)
        exchange.upstream.respond(with: try response(200, ["ETag: \"a\""], "one"))
        _ = try await get(exchange)
        exchange.upstream.respond(with: try response(304, [], ""))
        #expect(try await get(exchange, ["If-None-Match: \"b\""]).status == .notModified)
        exchange.upstream.respond(with: try response(304, [], ""))
        #expect(try await get(exchange).content.text == "one")
    }

    @Test func `it asks with the target in its normal form, RFC 3986 §6.2.2`() async throws {
        let exchange = try TestExchange(NotModified.self)
        _ = try await exchange.send(.get("/p%61ge"))
        #expect(exchange.upstream.requests.last?.receivedTarget == "/page")
    }

    @Test func `a changed response takes its place`() async throws {
        let exchange = try TestExchange(NotModified.self)
        for (tag, text) in [("a", "one"), ("b", "two")] {
            exchange.upstream.respond(with: try response(200, ["ETag: \"\(tag)\""], text))
            #expect(try await get(exchange).content.text == text)
        }
        exchange.upstream.respond(with: try response(304, ["ETag: \"b\""], ""))
        #expect(try await get(exchange).content.text == "two")
        #expect(exchange.upstream.requests.last?.fields[.ifNoneMatch] == "\"b\"")
    }

    @Test(arguments: [
        ["ETag: \"a\"", "Cache-Control: no-store"], ["ETag: \"a\"", "Cache-Control: private"],
        ["Cache-Control: max-age=60"], ["ETag: \"a\"", "Vary: *"],
    ])
    func `responses that must not be kept, or cannot be validated, are not kept, RFC 9111 §3`(lines: [String])
        async throws
    {
        let exchange = try TestExchange(NotModified.self)
        for _ in 0..<2 {
            exchange.upstream.respond(with: try response(200, lines))
            _ = try await get(exchange)
        }
        #expect(exchange.upstream.requests.last?.fields.contains(.ifNoneMatch) == false)
    }

    @Test func `a response kept for one person is never used to ask for another, RFC 9111 §3.5`() async throws {
        let exchange = try TestExchange(NotModified.self)
        for user in ["a", "b"] {
            exchange.upstream.respond(with: try response(200, ["ETag: \"\(user)\""]))
            _ = try await get(exchange, ["Authorization: \(user)"])
            #expect(exchange.upstream.requests.last?.fields.contains(.ifNoneMatch) == false)
        }
    }

    @Test func `when the origin server fails nothing is made up`() async throws {
        let exchange = try TestExchange(NotModified.self)
        exchange.upstream.respond(
            with: try response(200, ["ETag: \"a\"", "Cache-Control: max-age=60, stale-if-error=60"]))
        _ = try await get(exchange)
        exchange.upstream.respond(with: try response(503, []))
        #expect(try await get(exchange).status == .serviceUnavailable)
    }

    @Test(arguments: [["maxSize": "1B"], ["maxObject": "0B"], ["mode": "x"], ["store": "memory"]] as [ConfigNode])
    func `a wrong option is refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(NotModified.self, options) }
    }
}
