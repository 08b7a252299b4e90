import HttpWareTesting
import Testing

@testable import HttpWare

/// Upstream calls through a client that takes and returns whole messages.
@Suite struct ClientConnectorTests {
    /// A client that answers when the test says it, or at once.
    ///
    /// Unchecked: used on the thread of the test only.
    private final class HeldClient: HttpClient, @unchecked Sendable {
        private(set) var requests: [HttpRequest] = []
        private(set) var limits: [CallLimits] = []
        private(set) var cancellations = 0
        var answersAtOnce: HttpResponse?
        private var completion: ((Result<HttpResponse, GatewayError>) -> Void)?

        func start(
            _ request: HttpRequest, limits: CallLimits,
            completion: @escaping (Result<HttpResponse, GatewayError>) -> Void
        ) -> any HttpCall {
            requests.append(request)
            self.limits.append(limits)
            self.completion = completion
            if let answersAtOnce { completion(.success(answersAtOnce)) }
            return Call(self)
        }

        func answer(_ result: Result<HttpResponse, GatewayError>) { completion?(result) }

        private final class Call: HttpCall {
            private let client: HeldClient
            init(_ client: HeldClient) { self.client = client }
            func cancel() { client.cancellations += 1 }
        }
    }

    private let stage: StreamStage
    private let client = HeldClient()

    init() throws { stage = try StreamStage() }

    private var events: [String] { stage.recorder.events }

    private func connect() throws -> any UpstreamStream {
        let connector = ClientConnector(client, transport: stage.transport)
        let endpoint = Endpoint(host: "192.0.2.1", port: 80)
        #expect(connector.connect(to: endpoint, need: .usual, timeout: .seconds(1), waiter: stage.recorder) == nil)
        return try #require(stage.recorder.stream)
    }

    private func answer(_ result: Result<HttpResponse, GatewayError>) {
        client.answer(result)
        stage.hand.turn()
    }

    @Test func `a request without content is given to the client at once, with the time limit of the response`() throws
    {
        let stream = try connect()
        stage.send(.get("http://a.test/x"), over: stream)
        #expect(client.requests.map(\.path) == ["/x"])
        #expect(client.limits == [CallLimits(timeout: .seconds(30), content: .mebibytes(64), redirects: 0)])
        // The end of a request that has gone out is not a second request.
        stream.sendEnd(nil)
        #expect(client.requests.count == 1)
    }

    @Test(arguments: [ContentFraming.length(6), .chunked])
    func `content is collected, and the client gets it whole`(framing: ContentFraming) throws {
        let stream = try connect()
        stage.send(.post("http://a.test/"), over: stream, framing: framing)
        stage.sendContent("abc", over: stream)
        stage.sendContent("def", over: stream)
        #expect(client.requests.isEmpty)
        stream.sendEnd(nil)
        #expect(client.requests.map(\.content.text) == ["abcdef"])
    }

    @Test func `content of more than 64 MiB is refused with 413, and the client gets no request`() throws {
        let stream = try connect()
        stage.send(.post("http://a.test/"), over: stream, framing: .chunked)
        stage.sendContent("a", over: stream)
        #expect(events.isEmpty)
        let piece = [UInt8](repeating: 7, count: 64 << 20)
        piece.withUnsafeBytes { stream.sendContent($0) }
        #expect(stage.recorder.failure?.status == .contentTooLarge && stage.recorder.failure?.side == .gateway)
        #expect(client.requests.isEmpty)
    }

    @Test func `a default field is added only if the request has none of its name`() throws {
        let stream = try connect()
        let defaults = [FieldLine(literal: .userAgent, "gateway"), FieldLine(literal: .accept, "gateway")]
        stage.send(.get("http://a.test/", fields: ["Accept": "client"]), over: stream, defaults: defaults)
        let request = try #require(client.requests.first)
        #expect(request.fields[.userAgent] == "gateway" && request.fields.values(of: .accept) == ["client"])
    }

    @Test(arguments: [false, true])
    func `a response comes back with its content, also if the client answers at once`(isAtOnce: Bool) throws {
        let stream = try connect()
        let response = HttpResponse(.created, content: .text("made"))
        if isAtOnce { client.answersAtOnce = response }
        stage.send(.get("http://a.test/"), over: stream)
        // The driver has not returned from sending the request.
        #expect(events.isEmpty)
        isAtOnce ? stage.hand.turn() : answer(.success(response))
        #expect(events == ["201, length(4)", "made", "end"])
        // The call has ended, and nothing is left to cancel.
        stream.cancel()
        #expect(client.cancellations == 0)
    }

    @Test func `the content of a paused response waits until the response is resumed`() throws {
        let stream = try connect()
        stage.send(.get("http://a.test/"), over: stream)
        stream.pause()
        answer(.success(HttpResponse(.ok, content: .text("abc"))))
        #expect(events == ["200, length(3)"])
        stream.resume()
        #expect(events == ["200, length(3)", "abc", "end"])
        stream.resume()
        #expect(events.count == 3)
    }

    @Test func `a response that is given up while its content comes has no end`() throws {
        let stream = try connect()
        stage.send(.get("http://a.test/"), over: stream)
        stage.recorder.whenContent = { stream.cancel() }
        answer(.success(HttpResponse(.ok, content: .text("abc"))))
        #expect(events == ["200, length(3)", "abc"])
    }

    @Test func `the failure of the client is that of the stream, and is final`() throws {
        let stream = try connect()
        #expect(stream.isFinal && !stream.isReused)
        stage.send(.get("http://a.test/"), over: stream)
        let error = GatewayError(.upstream, .connectionRefused, "refused", mayRetry: true)
        answer(.failure(error))
        #expect(stage.recorder.failure == error && events == ["failed"])
        #expect(client.cancellations == 0)
    }

    @Test(arguments: [false, true])
    func `a stream that is given up cancels its call, and a late answer is dropped`(isDiscarded: Bool) throws {
        let stream = try connect()
        stage.send(.get("http://a.test/"), over: stream)
        isDiscarded ? stream.discard() : stream.cancel()
        #expect(client.cancellations == 1)
        answer(.success(HttpResponse(.ok)))
        #expect(events.isEmpty)
    }

    @Test func `a client opens no tunnel`() throws {
        let stream = try connect()
        stream.startTunnel(receiver: stage.recorder, idleTimeout: 1)
        #expect(stage.recorder.failure?.fault == .upgradeFailed)
    }
}
