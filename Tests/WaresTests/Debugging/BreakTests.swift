import Capturing
import HttpWareTesting
import Testing

@testable import HttpWare
@testable import GatewayWares
@testable import Wares

@Suite(.serialized, .timeLimit(.minutes(10))) struct BreakTests {
    private func held(_ path: String) async -> HeldMessage {
        while true {
            if let held = HeldMessages.shared.all.first(where: { $0.url.hasSuffix(path) }) { return held }
            await Task.yield()
        }
    }

    private func chain(_ ware: Break = Break(), onResponse: Bool = false, before: [any Ware] = []) throws -> WareChain {
        try WareChain(
            middlewares: before.map { ChainEntry($0) } + (onResponse ? [] : [ChainEntry(ware, label: "break")]),
            postwares: onResponse ? [ChainEntry(ware, label: "break")] : [])
    }

    @Test func `a request is held, and goes on as it was`() async throws {
        let exchange = try TestExchange(chain: chain())
        let pending = await exchange.start(.post("/resumed", content: .text("abc")))
        let message = await held("/resumed")
        #expect((message.side, message.method) == (.request, "POST"))
        #expect(message.isContentEditable)
        #expect(exchange.upstream.requests.isEmpty)
        #expect(try message.resume())
        #expect(try await pending.response().status == .ok)
        #expect(exchange.upstream.requests.first?.content.text == "abc")
        #expect(HeldMessages.shared.find(message.id) == nil)
        #expect(try !message.resume(), "it is resumed once")
    }

    @Test func `method, URL, fields and content of a request can be edited`() async throws {
        let exchange = try TestExchange(chain: chain())
        var request = HttpRequest.post("/edited", content: .text("abc"))
        try request.fields.set("X-Old", to: "1")
        try request.fields.set("Authorization", to: "Bearer abc")
        let pending = await exchange.start(request)
        let message = await held("/edited")
        var edit = MessageEdit()
        edit.method = "PUT"
        edit.url = "/other?a=1"
        edit.body = Array("changed".utf8)
        // Masked fields come back as they were shown.
        edit.fields = message.fields.filter { $0.name != "X-Old" } + [CapturedMessage.Field("X-New", "2")]
        #expect(message.fields.first { $0.name == "Authorization" }?.value == "Bearer …")
        #expect(try message.resume(edit))
        _ = try await pending.response()
        let sent = try #require(exchange.upstream.requests.first)
        #expect((sent.method, sent.path, sent.query, sent.content.text) == (.put, "/other", "a=1", "changed"))
        #expect((sent.fields["X-Old"], sent.fields["X-New"]) == (nil, "2"))
        #expect(sent.fields[.authorization] == "Bearer abc")
    }

    @Test(arguments: [true, false])
    func `status, fields and content of a response can be edited`(isMade: Bool) async throws {
        let exchange = try TestExchange(
            chain: chain(onResponse: true, before: isMade ? [Mock(text: "made")] : []))
        if !isMade { exchange.upstream.respond(with: HttpResponse(.ok, content: .text("sent"))) }
        let pending = await exchange.start(.get("/response"))
        let message = await held("/response")
        #expect((message.side, message.status) == (.response, 200))
        #expect(message.isContentEditable)
        var edit = MessageEdit()
        edit.status = 418
        edit.fields = [CapturedMessage.Field("X-New", "2")]
        edit.body = Array("changed".utf8)
        #expect(try message.resume(edit))
        let response = try await pending.response()
        #expect((response.status.code, response.fields["X-New"], response.content.text) == (418, "2", "changed"))
    }

    @Test func `content over the limit waits where it comes from, and passes whole`() async throws {
        let exchange = try TestExchange(chain: chain(Break(maxBytes: .kibibytes(1)), onResponse: true))
        exchange.upstream.respond(with: HttpResponse(.ok, content: .bytes(count: 300_000)))
        let pending = await exchange.start(.get("/large"))
        let message = await held("/large")
        #expect(!message.isContentEditable)
        var edit = MessageEdit()
        edit.body = [1]
        #expect(throws: MessageEdit.Mistake.self) { try message.resume(edit) }
        #expect(try message.resume())
        #expect(try await pending.response().content.bytes?.count == 300_000)
    }

    @Test(arguments: [1000, 1025, 70_000])
    func `content of unknown length is collected up to the limit, and nothing of it is lost`(count: Int) async throws {
        let exchange = try TestExchange(chain: chain(Break(maxBytes: .kibibytes(1)), onResponse: true))
        var content = HttpContent.bytes(count: count)
        content.extent = .unknown
        exchange.upstream.respond(with: HttpResponse(.ok, content: content))
        let pending = await exchange.start(.get("/unknown\(count)"))
        let message = await held("/unknown\(count)")
        #expect(message.isContentEditable == (count <= 1024))
        #expect(try message.resume())
        #expect(try await pending.response().content.bytes?.count == count)
    }

    @Test(arguments: [true, false])
    func `an abort ends the exchange without a response`(onResponse: Bool) async throws {
        let exchange = try TestExchange(chain: chain(onResponse: onResponse))
        let pending = await exchange.start(.get("/aborted\(onResponse)"))
        #expect(await held("/aborted\(onResponse)").abort())
        await #expect(throws: GatewayError.self) { try await pending.response() }
        #expect(exchange.upstream.requests.count == (onResponse ? 1 : 0))
    }

    @Test func `an aborted request is not held again on its way back`() async throws {
        let chain = try WareChain(
            middlewares: [ChainEntry(Break(), label: "break")], postwares: [ChainEntry(Break(), label: "break")])
        let exchange = try TestExchange(chain: chain)
        let pending = await exchange.start(.get("/twice"))
        #expect(await held("/twice").abort())
        await #expect(throws: GatewayError.self) { try await pending.response() }
    }

    @Test func `it goes on unchanged when its time ends`() async throws {
        let exchange = try TestExchange(chain: chain(Break(timeout: .seconds(30))))
        let pending = await exchange.start(.get("/late"))
        _ = await held("/late")
        await exchange.advance(by: .seconds(30))
        #expect(try await pending.response().status == .ok)
    }

    @Test func `the limit of the whole exchange goes on while it is held`() async throws {
        let exchange = try TestExchange(chain: chain(before: [Timeout(total: .seconds(3))]))
        let pending = await exchange.start(.get("/total"))
        _ = await held("/total")
        await exchange.advance(by: .seconds(3))
        #expect(try await pending.response().status == .gatewayTimeout)
        while HeldMessages.shared.all.contains(where: { $0.url.hasSuffix("/total") }) { await Task.yield() }
    }

    @Test func `a client that leaves ends the hold, and its place is free`() async throws {
        let exchange = try TestExchange(chain: chain(Break(max: 1)))
        let pending = await exchange.start(.get("/left"))
        _ = await held("/left")
        await pending.leave()
        while HeldMessages.shared.all.contains(where: { $0.url.hasSuffix("/left") }) { await Task.yield() }
        let other = await exchange.start(.get("/next"))
        #expect(try await held("/next").resume())
        #expect(try await other.response().status == .ok)
    }

    @Test func `more than the limit are not held`() async throws {
        let exchange = try TestExchange(chain: chain(Break(max: 1)))
        let first = await exchange.start(.get("/first"))
        let message = await held("/first")
        #expect(try await exchange.send(.get("/second")).status == .ok)
        #expect(try message.resume())
        #expect(try await first.response().status == .ok)
    }

    @Test func `an edit does not touch a token, or lead it elsewhere`() async throws {
        let chain = try WareChain(
            middlewares: [
                ChainEntry(try TestExchange.make(TokenInject.self, ["value": "s3cret-token"])),
                ChainEntry(Break(), label: "break"),
            ], postwares: [])
        let exchange = try TestExchange(chain: chain)
        let pending = await exchange.start(.get("/token"))
        let message = await held("/token")
        #expect(!message.fields.contains { $0.value.contains("s3cret") })
        var edit = MessageEdit()
        edit.url = "http://evil.test/"
        #expect { try message.resume(edit) } throws: { ($0 as? MessageEdit.Mistake)?.isForbidden == true }
        for method in ["TRACE", "trace", "TRACK"] {
            edit = MessageEdit()
            edit.method = method
            #expect { try message.resume(edit) } throws: { ($0 as? MessageEdit.Mistake)?.isForbidden == true }
        }
        edit = MessageEdit()
        edit.fields = []
        #expect { try message.resume(edit) } throws: { ($0 as? MessageEdit.Mistake)?.isForbidden == true }
        edit.fields = message.fields
        #expect(try message.resume(edit))
        _ = try await pending.response()
        #expect(exchange.upstream.requests.first?.fields[.authorization] == "Bearer s3cret-token")
    }

    @Test func `edits that no message can have are refused, and it stays held`() async throws {
        let exchange = try TestExchange(chain: chain())
        let pending = await exchange.start(.get("/refused"))
        let message = await held("/refused")
        var edits = [MessageEdit](repeating: MessageEdit(), count: 5)
        edits[0].method = "NOT A METHOD"
        edits[1].url = "ftp://example.com/"
        edits[2].fields = [CapturedMessage.Field("X", "a\r\nY: b")]
        edits[3].fields = [CapturedMessage.Field("no name", "a")]
        edits[4].status = 200
        for edit in edits { #expect(throws: MessageEdit.Mistake.self) { try message.resume(edit) } }
        #expect(try message.resume())
        #expect(try await pending.response().status == .ok)
    }
}
