import HttpWare
import HttpWareTesting
import Testing

@Suite struct TestExchangeTests {
    private struct Marks: Middleware, Postware {
        let name: String

        func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
            try request.fields.append("X-In", name)
            return .pass
        }

        func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
            try response.fields.append("X-Out", name)
            return .pass
        }
    }

    @Test func `wares run in order, their response halves in reverse, and the upstream answers as it was told`()
        async throws
    {
        let exchange = try TestExchange([Marks(name: "a"), Marks(name: "b")])
        exchange.upstream.respond(with: HttpResponse(.created, content: .text("made")))
        let response = try await exchange.send(.post("/x?y", content: .text("content")))
        #expect(response.status == .created)
        #expect(response.content.text == "made")
        #expect(response.fields.values(of: "X-Out") == ["b", "a"])
        let request = try #require(exchange.upstream.requests.first)
        #expect(request.method == .post)
        #expect(request.receivedTarget == "/x?y")
        #expect(request.content.text == "content")
        #expect(request.fields.values(of: "X-In") == ["a", "b"])
        #expect(exchange.outcomes.map(\.end) == [.completed])
    }

    @Test func `an upstream that refuses is a 502, one that never answers a 504 when its time ends`() async throws {
        let exchange = try TestExchange([])
        exchange.upstream.neverRespond()
        let pending = await exchange.start(.get("/"))
        while exchange.upstream.requests.isEmpty { await Task.yield() }
        await exchange.advance(by: .seconds(31))
        #expect(try await pending.response().status == .gatewayTimeout)
        exchange.upstream.refuse()
        #expect(try await exchange.send(.get("/")).status == .badGateway)
        #expect(exchange.outcomes.map(\.failure?.fault) == [.responseTimeout, .connectionRefused])
    }

    @Test func `several requests may be under way at once`() async throws {
        let exchange = try TestExchange([])
        exchange.upstream.always(respondWith: HttpResponse(.ok, content: .text("same")))
        try await withThrowingTaskGroup { group in
            for number in 0..<20 {
                group.addTask { try await exchange.send(.get("/\(number)")).content.text }
            }
            for try await text in group { #expect(text == "same") }
        }
        #expect(exchange.upstream.requests.count == 20)
    }
}
