import HttpWareTesting
import Testing

@testable import HttpWare

/// Refusals for clients of gRPC: `Trailers-Only`. gRPC over HTTP/2, *Responses*.
@Suite struct GrpcRefusalTests {
    private struct Answering: Middleware {
        let response: HttpResponse
        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .abort(with: response) }
    }

    private final class Statuses: Postware, Sendable {
        let seen = ThreadLock<[Int]>([])
        func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
            seen.withLock { $0.append(response.status.code) }
            return .pass
        }
    }

    private func call(_ type: String = "application/grpc", accept: String? = nil) throws -> HttpRequest {
        var fields = HttpFields()
        try fields.append(.contentType, type)
        if let accept { try fields.append(.accept, accept) }
        return try HttpRequest(.post, "/greeter/hello", fields: fields, content: .bytes([0, 0, 0, 0, 0]))
    }

    // MARK: The parts

    @Test(arguments: [
        (400, 13), (401, 16), (403, 7), (404, 12), (429, 14), (431, 13), (502, 14), (503, 14), (504, 14), (302, 2),
        (405, 2),
        (408, 2), (413, 2), (500, 2), (501, 2), (508, 2),
    ])
    func `the status of gRPC is the one that clients make of the status of HTTP`(status: Int, code: Int) throws {
        #expect(GrpcRefusal.code(for: try #require(HttpStatus(status))) == code)
    }

    @Test(arguments: [
        ("the server is down", "the server is down"), ("100%", "100%25"), ("a\tb\r\nc", "a%09b%0D%0Ac"),
        ("Größe", "Gr%C3%B6%C3%9Fe"),
        ("\u{7f}~ !", "%7F~ !"), ("", ""),
    ])
    func `a message is printable ASCII with percent-encoded bytes`(message: String, encoded: String) {
        #expect(GrpcRefusal.encoded(message) == encoded)
    }

    @Test func `a message has a limit`() {
        #expect(GrpcRefusal.encoded(String(repeating: "ö", count: 100_000)).utf8.count == 3 * 1024)
    }

    // MARK: Through the chain

    @Test(arguments: [
        "application/grpc", "application/grpc+proto", "Application/GRPC", "application/grpc;charset=utf-8",
        "application/grpc+json",
    ])
    func `a refusal for a client of gRPC has 200, grpc-status, grpc-message and no content`(type: String) async throws {
        var refusal = HttpResponse.problem(.serviceUnavailable, "100% of the slots are taken")
        refusal.fields.setOwn(.retryAfter, "7")
        let statuses = Statuses()
        let exchange = try TestExchange([Answering(response: refusal), statuses])
        let response = try await exchange.send(try call(type, accept: "text/html"))
        #expect(response.status == .ok && response.fields.values(of: .contentType) == ["application/grpc"])
        #expect(response.fields.values(of: "grpc-status") == ["14"])
        #expect(response.fields["grpc-message"] == "100%25 of the slots are taken")
        #expect(response.content.bytes ?? [] == [] && response.fields[.retryAfter] == "7")
        // Wares, logs and metrics know the true status.
        #expect(statuses.seen.withLock { $0 } == [503] && exchange.outcomes.first?.status == .serviceUnavailable)
    }

    @Test(arguments: [
        "application/grpc-web", "application/grpc-web+proto", "application/grpcx", "application/json", "text/plain",
    ])
    func `other clients get problem details with the status`(type: String) async throws {
        let exchange = try TestExchange([Answering(response: .problem(.forbidden, "no"))])
        let response = try await exchange.send(try call(type))
        #expect(response.status == .forbidden && response.fields["grpc-status"] == nil)
        #expect(response.content.text?.hasPrefix(#"{"type":"about:blank","title":"Forbidden","status":403,"#) == true)
    }

    @Test func `a failure of the origin server has its fault in Proxy-Status and its text in grpc-message`()
        async throws
    {
        let exchange = try TestExchange([])
        exchange.upstream.refuse()
        let response = try await exchange.send(try call())
        #expect(response.status == .ok && response.fields["grpc-status"] == "14")
        #expect(response.fields["grpc-message"] == "the server behind this host cannot be reached")
        #expect(response.fields[.proxyStatus] == "httpware; error=connection_refused")
        #expect(exchange.outcomes.first?.failure?.fault == .connectionRefused)
        #expect(exchange.outcomes.first?.status == .badGateway)
    }

    @Test func `a text that a ware answers with is the message, and without one the status is`() async throws {
        for (fields, content, message) in [
            (["Content-Type": "text/plain; charset=utf-8"], " back at noon\n", "back at noon"),
            (["Content-Type": "text/html"], "<p>no</p>", "HTTP status 404 (Not Found)"),
            (["Content-Type": "text/plain", "Content-Encoding": "gzip"], "xyz", "HTTP status 404 (Not Found)"),
            ([:], "", "HTTP status 404 (Not Found)"),
        ] as [(HttpFields, String, String)] {
            let answer = HttpResponse(.notFound, fields: fields, content: .text(content))
            let response = try await TestExchange([Answering(response: answer)]).send(try call())
            #expect(response.fields["grpc-message"] == message && response.fields["grpc-status"] == "12")
            #expect(response.fields[.contentEncoding] == nil)
        }
    }

    @Test func `a ware that answers in the form of gRPC, or with success, is left alone`() async throws {
        for answer in [
            HttpResponse(.ok, fields: ["Content-Type": "application/json"], content: .text("{}")),
            HttpResponse(.badRequest, fields: ["grpc-status": "3"]),
            HttpResponse(.badGateway, fields: ["Content-Type": "application/grpc+proto"]),
        ] {
            let response = try await TestExchange([Answering(response: answer)]).send(try call())
            #expect(response.status == answer.status && response.fields["grpc-status"] == answer.fields["grpc-status"])
        }
    }

    @Test(arguments: [(Responder.upstream, false), (.cache, false), (.ware("x"), true), (.gateway, true)])
    func `an answer of the origin server is left alone`(responder: Responder, isChanged: Bool) throws {
        var request = try call()
        request.fields.receivedCount = request.fields.lines.count
        #expect(GrpcRefusal.concerns(HttpResponse(.serviceUnavailable), by: responder, to: request) == isChanged)
    }

    @Test func `a ware that removes Content-Type changes nothing, because the type as received counts`() async throws {
        struct Removing: Middleware {
            func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
                request.fields.remove(FieldName.contentType)
                return .abort(with: .problem(.unauthorized, "who are you"))
            }
        }
        let response = try await TestExchange([Removing()]).send(try call())
        #expect(response.fields["grpc-status"] == "16" && response.fields["grpc-message"] == "who are you")
    }

    // MARK: Heads that are refused

    /// The response of a listener over HTTP/2.
    private func answer(_ request: HttpRequest) throws -> HttpResponse {
        let hand = try HandTurnedLoop()
        let service = UpstreamService(name: "passthrough", endpoints: [], isPassthrough: true)
        let router = SinglePlan(listenerPlan: ExchangePlan(chain: .empty, service: service, route: "all"))
        let server = LoopListener(
            name: "web", transport: hand.transport, settings: ServerSettings(), router: router)
        server.connector = ScriptedConnector()
        let (near, far) = try hand.pair()
        server.accept(near.detach(), from: SocketAddress("192.0.2.9:5000"))
        let client = FarHttp2(.client, far, hand)
        let asked = client.end.ask(request, HeadEncoder.RequestOptions(), host: "a.test")
        client.talk()
        defer {
            server.closeAll()
            hand.turn()
        }
        return try #require(asked.response)
    }

    @Test(arguments: [0, 1, 2, 3], [true, false])
    func `a refused head has the form of gRPC if its Content-Type was read`(kind: Int, isGrpc: Bool) throws {
        var request = try HttpRequest(
            .post, received: Array(kind == 2 ? "/a/../%2e%2e/x".utf8 : kind == 3 ? "/%zz".utf8 : "/greeter/hello".utf8),
            fields: HttpFields())
        try request.fields.append(.contentType, isGrpc ? "application/grpc" : "application/json")
        if kind == 0 { for number in 0..<120 { try request.fields.append(#require(FieldName("x-\(number)")), "1") } }
        if kind == 1 { try request.fields.append("x-long", String(repeating: "a", count: 70_000)) }
        let response = try answer(request)
        #expect(response.status.code == (isGrpc ? 200 : kind < 2 ? 431 : 400))
        #expect(response.fields["grpc-status"] == (isGrpc ? "13" : nil))
        #expect((response.fields["grpc-message"] ?? "").isEmpty != isGrpc)
    }
}
