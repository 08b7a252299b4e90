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
    func `what may not be kept, or cannot be validated, is not, RFC 9111 §3`(lines: [String]) async throws {
        let exchange = try TestExchange(NotModified.self)
        for _ in 0..<2 {
            exchange.upstream.respond(with: try response(200, lines))
            _ = try await get(exchange)
        }
        #expect(exchange.upstream.requests.last?.fields.contains(.ifNoneMatch) == false)
    }

    @Test func `what one person is kept for no other is asked about with, RFC 9111 §3.5`() async throws {
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
