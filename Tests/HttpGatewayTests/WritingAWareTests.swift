import Foundation
import HttpWare
import HttpWareTesting
import Testing

/// The article WritingAWare.md: its code is that of this target, and does what the article says.
@Suite(.timeLimit(.minutes(10))) struct WritingAWareTests {
    @Test func `the article shows the code that is tested here`() throws {
        let sources = try ["WritingAWare", "MethodRuleTests"].map {
            try Repository.text("Tests/HttpGatewayTests/\($0).swift")
        }
        let blocks = CodeBlock.all("swift", in: try Repository.article("WritingAWare.md"))
        #expect(blocks.count >= 8)
        for block in blocks { #expect(sources.contains { $0.contains(block.text) }, "\(block)") }
    }

    @Test func `a postware sees every response`() async throws {
        let exchange = try TestExchange([MethodRule(allow: [.get]), NoStore()])
        #expect(try await exchange.send(.get("/")).fields[.cacheControl] == "no-store")
        #expect(try await exchange.send(.post("/")).fields[.cacheControl] == "no-store")
    }

    @Test func `a postware that has to do with some statuses sees those`() async throws {
        let exchange = try TestExchange([KeepNoErrors()])
        #expect(try await exchange.send(.get("/")).fields[.cacheControl] == nil)
        exchange.upstream.respond(with: HttpResponse(.badGateway))
        #expect(try await exchange.send(.get("/")).fields[.cacheControl] == "no-store")
    }

    @Test func `values that a two-sided ware remembers are there on the way back`() async throws {
        let exchange = try TestExchange([Elapsed()])
        exchange.upstream.respond(with: HttpResponse(.ok), after: .seconds(2))
        let pending = await exchange.start(.get("/"))
        while exchange.upstream.requests.isEmpty { await Task.yield() }
        await exchange.advance(by: .seconds(2))
        #expect(try await pending.response().fields["X-Elapsed"] == "2000")
    }

    @Test func `content from a source comes over time`() async throws {
        let exchange = try TestExchange([Ticker()])
        let pending = await exchange.start(.get("/"))
        for _ in 0..<3 { await exchange.advance(by: .seconds(1)) }
        #expect(try await pending.response().content.bytes == Array("3\n2\n1\n".utf8))
        #expect(exchange.outcomes.count == 1)
    }

    @Test(arguments: [Patience(), Queue()] as [any Middleware])
    func `a ware that waits holds its place, and the loop goes on`(ware: any Middleware) async throws {
        let exchange = try TestExchange([ware])
        let pending = await exchange.start(.get("/"))
        #expect(exchange.upstream.requests.isEmpty)
        await exchange.advance(by: .seconds(1))
        #expect(try await pending.response().status == .ok)
    }

    @Test func `a ware that knows its answer does not wait`() async throws {
        let exchange = try TestExchange([Patience()])
        #expect(try await exchange.send(.get("/", fields: ["Authorization": "Basic eDp5"])).status == .ok)
    }

    @Test func `a filter changes the content as it passes`() async throws {
        let exchange = try TestExchange([NoDigits()])
        exchange.upstream.respond(with: HttpResponse(.ok, content: .text("room 101")))
        #expect(try await exchange.send(.get("/")).content.text == "room ###")
    }

    @Test func `a ware that needs whole content is asked when it is there`() async throws {
        let exchange = try TestExchange([OnlyObjects()])
        #expect(try await exchange.send(.post("/", content: .text("{}"))).status == .ok)
        #expect(try await exchange.send(.post("/", content: .text("[]"))).status == .unprocessableContent)
        #expect(try await exchange.send(.post("/", content: .bytes(count: 65537))).status == .contentTooLarge)
        #expect(exchange.upstream.requests.count == 1)
    }

    @Test func `a replay sends the request again, content included`() async throws {
        let exchange = try TestExchange([SecondTry()])
        exchange.upstream.respond(with: HttpResponse(.serviceUnavailable))
        let pending = await exchange.start(.make(.put, "/", content: .text("once")))
        while exchange.upstream.requests.isEmpty { await Task.yield() }
        for _ in 0..<100 where exchange.upstream.requests.count < 2 { await exchange.advance(by: .milliseconds(200)) }
        #expect(try await pending.response().status == .ok)
        #expect(exchange.upstream.requests.map(\.content.text) == ["once", "once"])
    }

    @Test func `a ware of another module counts for metrics`() async throws {
        let unnamed = Unnamed()
        let exchange = try TestExchange([unnamed])
        _ = try await exchange.send(.get("/"))
        _ = try await exchange.send(.get("/", fields: ["User-Agent": "app/1"]))
        #expect(unnamed.counter.numbers.map(\.value) == [1])
    }

    @Test func `an observer learns the bytes when the exchange has ended`() async throws {
        let sent = SentBytes()
        let exchange = try TestExchange([sent])
        exchange.upstream.respond(with: HttpResponse(.ok, content: .text("four")))
        _ = try await exchange.send(.get("/"))
        while exchange.outcomes.isEmpty { await Task.yield() }
        #expect(sent.count == 4)
    }
}
