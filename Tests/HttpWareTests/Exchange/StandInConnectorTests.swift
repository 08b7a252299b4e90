import HttpWareTesting
import Testing

@testable import HttpWare

/// Requests that a stand-in answers in place of an origin server.
@Suite struct StandInConnectorTests {
    private final class Origin: StandInOrigin {
        var sent: [SentRequest] = []
        var answers: [StandInAnswer] = []
        var refusal: GatewayError?

        func refuses(_ endpoint: Endpoint) -> Bool { refusal != nil }

        func open(_ endpoint: Endpoint) throws(GatewayError) -> (SentRequest) -> StandInAnswer {
            if let refusal { throw refusal }
            return { [self] request in
                sent.append(request)
                return answers.isEmpty ? .never : answers.removeFirst()
            }
        }
    }

    /// The response to a request.
    private struct Outcome {
        var response: Result<HttpResponse, GatewayError>?
        var status: Int? { (try? response?.get())?.status.code }
        var text: String? { (try? response?.get())?.content.text }
    }

    private let clock = ManualClock()
    private let origin = Origin()

    private func run(_ written: WrittenRequest, advancing duration: Duration? = nil) throws -> Outcome {
        let loop = try EventLoop(name: "stand-in", clock: clock)
        let transport = LoopTransport(loop: loop, resolver: nil)
        let endpoint = Endpoint(host: "192.0.2.1", port: 81, basePath: "/base")
        let service = UpstreamService(name: "origin", endpoints: [endpoint])
        let server = LoopListener(
            name: "test", transport: transport,
            router: OnePlan(ExchangePlan(chain: .empty, service: service, route: "one")))
        server.call(origin)
        var outcome = Outcome()
        LocalCaller(server, peer: nil).send(written) { outcome.response = $0 }
        #expect(loop.runUntilIdle())
        if let duration {
            #expect(outcome.response == nil)
            clock.advance(by: duration)
            #expect(loop.runUntilIdle())
        }
        server.closeAll()
        loop.endTurns()
        return outcome
    }

    private func post(_ content: String) -> WrittenRequest {
        var written = WrittenRequest(lines: [
            "POST /a?b HTTP/1.1", "Host: a.example", "Content-Length: \(content.utf8.count)",
        ])
        written.content = Array(content.utf8)
        return written
    }

    @Test func `it gets the request as an origin server would, and its response goes to the client`() throws {
        origin.answers = [.response(HttpResponse(.created, content: .text("there")), after: .zero)]
        let outcome = try run(post("here"))
        #expect(outcome.status == 201 && outcome.text == "there")
        let sent = try #require(origin.sent.first)
        #expect(sent.service == "origin" && sent.endpoint == "192.0.2.1:81")
        #expect(
            sent.lines == [
                "POST /base/a?b HTTP/1.1", "Host: 192.0.2.1:81", "Content-Length: 4", "Via: 1.1 httpware",
            ])
        #expect(sent.content == Array("here".utf8))
    }

    @Test func `content that is not sent in a response is left out`() throws {
        origin.answers = [.response(HttpResponse(.ok, content: .text("there")), after: .zero)]
        let outcome = try run(WrittenRequest(lines: ["HEAD / HTTP/1.1", "Host: a"]))
        #expect(outcome.status == 200 && outcome.text == "")
    }

    @Test func `a response that is late comes when the clock is there`() throws {
        origin.answers = [.response(HttpResponse(.ok, content: .text("late")), after: .seconds(5))]
        #expect(try run(post("a"), advancing: .seconds(5)).text == "late")
    }

    @Test func `without an answer the time limit for responses decides`() throws {
        #expect(try run(post("a"), advancing: .seconds(61)).status == 504)
    }

    @Test func `failures are those of the gateway`() throws {
        origin.answers = [.failure(GatewayError(.upstream, .connectionTerminated, "it ended"))]
        #expect(try run(post("a")).status == 502)
        origin.refusal = GatewayError(.upstream, .connectionRefused, "refused", mayRetry: true)
        #expect(try run(post("a")).status == 502)
        #expect(origin.sent.count == 1)
    }

    @Test func `a head that cannot be read is refused`() throws {
        #expect(try run(WrittenRequest(lines: ["GET / HTTP/1.1", "Host: a", "Host: b"])).status == 400)
        #expect(try run(WrittenRequest(lines: ["GET  / HTTP/1.1"])).status == 400)
        #expect(origin.sent.isEmpty)
    }

    @Test func `a loop with a client for side calls connects to nothing`() throws {
        let client = HttpWareTesting.ScriptedClient()
        client.answerCall(.success(HttpResponse(.accepted)))
        let loop = try EventLoop(name: "stand-in", clock: clock)
        let transport = LoopTransport(loop: loop, resolver: nil)
        transport.standInClient = client
        var status: Int?
        var fault: GatewayError.Fault?
        loop.later {
            SideCaller().start(HttpRequest.get("http://127.0.0.1:1/x")) { status = (try? $0.get())?.status.code }
            Connector.connect(
                to: Endpoint(host: "127.0.0.1", port: 1), speaking: .h1, loop: loop, resolver: nil, timeout: .seconds(1)
            ) { result, _ in
                if case .failure(let error) = result { fault = error.fault }
            }
        }
        #expect(loop.runUntilIdle())
        #expect(status == 202 && fault == .destinationUnavailable)
        loop.endTurns()
    }
}
