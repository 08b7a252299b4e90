import HttpWareTesting
import Testing

@testable import HttpWare

/// Upstream calls through a client that takes and returns content in pieces.
@Suite struct PiecewiseStreamTests {
    /// A client that records what it is told. The test acts for it through `receiver`.
    ///
    /// Unchecked: used on the thread of the test only.
    private final class PieceClient: PiecewiseClient, PiecewiseCall, @unchecked Sendable {
        private(set) var opened: [HttpRequest] = []
        private(set) var told: [String] = []
        private(set) var receiver: (any PiecewiseReceiver)?
        var isFull = false

        func open(_ request: HttpRequest, receiver: any PiecewiseReceiver) -> any PiecewiseCall {
            opened.append(request)
            self.receiver = receiver
            return self
        }

        func start(
            _ request: HttpRequest, limits: CallLimits,
            completion: @escaping (Result<HttpResponse, GatewayError>) -> Void
        ) -> any HttpCall {
            told.append("a whole call")
            return self
        }

        func supply(_ bytes: UnsafeRawBufferPointer) -> Bool {
            told.append(String(decoding: bytes, as: UTF8.self))
            return !isFull
        }
        func finish() { told.append("finish") }
        func pause() { told.append("pause") }
        func resume() { told.append("resume") }
        func cancel() { told.append("cancel") }
    }

    private let stage: StreamStage
    private let client = PieceClient()
    private let stream: PiecewiseStream

    init() throws {
        stage = try StreamStage()
        stream = PiecewiseStream(client, stage.transport)
    }

    private var events: [String] { stage.recorder.events }
    private var failure: GatewayError? { stage.recorder.failure }

    private func send(_ framing: ContentFraming = .none) {
        stage.send(.post("http://a.test/"), over: stream, framing: framing)
    }

    private func start(_ content: HttpContent = .streamed()) {
        client.receiver?.started(HttpResponse(.ok, content: content))
    }

    // MARK: The request

    @Test func `the connector of such a client opens a call of pieces`() throws {
        let connector = ClientConnector(client, transport: stage.transport)
        let endpoint = Endpoint(host: "192.0.2.1", port: 80)
        _ = connector.connect(to: endpoint, need: .usual, timeout: .seconds(1), waiter: stage.recorder)
        stage.send(.get("http://a.test/"), over: try #require(stage.recorder.stream))
        #expect(client.opened.count == 1 && client.told == ["finish"])
    }

    @Test(arguments: [
        (ContentFraming.none, HttpContent.Extent.none), (.length(0), .none), (.length(6), .length(6)),
        (.chunked, .unknown),
    ])
    func `the request has the extent of its content`(framing: ContentFraming, extent: HttpContent.Extent) {
        send(framing)
        #expect(client.opened.map(\.content.extent) == [extent])
        #expect(client.told == (extent == .none ? ["finish"] : []))
    }

    @Test func `content goes to the client piece by piece, and its end once`() {
        send(.length(6))
        stage.sendContent("abc", over: stream)
        stage.sendContent("def", over: stream)
        stream.sendEnd(nil)
        stream.sendEnd(nil)
        #expect(client.told == ["abc", "def", "finish"])
    }

    @Test func `a client that wants no more blocks the stream until it wants content`() {
        send(.chunked)
        client.receiver?.contentWanted()
        #expect(events.isEmpty)
        client.isFull = true
        stage.sendContent("abc", over: stream)
        #expect(stream.isBlocked)
        client.receiver?.contentWanted()
        #expect(!stream.isBlocked && events == ["drained"])
    }

    @Test func `a default field is added only if the request has none of its name`() throws {
        let defaults = [FieldLine(literal: .userAgent, "gateway"), FieldLine(literal: .accept, "gateway")]
        stage.send(.get("http://a.test/", fields: ["Accept": "client"]), over: stream, defaults: defaults)
        let request = try #require(client.opened.first)
        #expect(request.fields[.userAgent] == "gateway" && request.fields.values(of: .accept) == ["client"])
    }

    // MARK: The response

    @Test func `a response comes back piece by piece`() {
        send()
        start(.streamed(length: 6))
        client.receiver?.received(Array("abc".utf8))
        client.receiver?.received([])
        client.receiver?.received(Array("def".utf8))
        client.receiver?.ended()
        #expect(events == ["200, length(6)", "abc", "def", "end"])
        // The call has ended: nothing is cancelled, and no event counts any more.
        stream.cancel()
        client.receiver?.received([1])
        client.receiver?.ended()
        #expect(client.told == ["finish"] && events.count == 4)
    }

    @Test func `events out of order are ignored`() {
        send()
        client.receiver?.received([1])
        client.receiver?.ended()
        #expect(events.isEmpty)
        start()
        start()
        #expect(events == ["200, unknown"])
    }

    @Test func `more content than the response states fails it as malformed`() {
        send()
        start(.streamed(length: 3))
        client.receiver?.received(Array("abc".utf8))
        client.receiver?.received(Array("d".utf8))
        #expect(failure?.fault == .responseMalformed && failure?.side == .upstream)
        #expect(events == ["200, length(3)", "abc", "failed"])
        #expect(client.told == ["finish", "cancel"])
    }

    @Test func `less content than the response states fails it as cut off`() {
        send()
        start(.streamed(length: 3))
        client.receiver?.received(Array("ab".utf8))
        client.receiver?.ended()
        #expect(failure?.fault == .connectionTerminated)
        #expect(failure?.reason == "the client brought 2 of 3 bytes")
    }

    @Test func `the failure of the client is that of the stream, once`() {
        send()
        client.receiver?.failed(GatewayError(.upstream, .connectionRefused, "refused"))
        client.receiver?.failed(GatewayError(.upstream, .responseTimeout, "late"))
        #expect(events == ["failed"] && failure?.reason == "refused" && stream.isFinal)
    }

    // MARK: Time

    @Test func `a client that takes no more of the content is too late after the idle time`() {
        send(.chunked)
        stage.hand.advance(by: .seconds(9))
        stage.sendContent("abc", over: stream)
        stage.hand.advance(by: .seconds(9))
        #expect(failure == nil)
        stage.hand.advance(by: .seconds(1))
        #expect(failure?.reason == "the client takes no more of the content" && failure?.status == .gatewayTimeout)
        #expect(client.told.last == "cancel")
    }

    @Test func `a client has the response time from the end of the request to the head`() {
        send()
        stage.hand.advance(by: .seconds(29))
        #expect(failure == nil)
        stage.hand.advance(by: .seconds(1))
        #expect(failure?.reason == "the client did not answer in time")
    }

    @Test func `the idle time counts from each piece of the response, and not while the response is paused`() {
        send()
        start()
        stage.hand.advance(by: .seconds(9))
        client.receiver?.received([1])
        stage.hand.advance(by: .seconds(9))
        stream.pause()
        stage.hand.advance(by: .seconds(600))
        #expect(failure == nil)
        stream.resume()
        stream.resume()
        #expect(client.told == ["finish", "pause", "resume"])
        stage.hand.advance(by: .seconds(9))
        #expect(failure == nil)
        stage.hand.advance(by: .seconds(1))
        #expect(failure?.reason == "the client brings no more of the response")
    }

    @Test func `content that a paused stream gets starts no time limit`() {
        send()
        start()
        stream.pause()
        client.receiver?.received(Array("late".utf8))
        stage.hand.advance(by: .seconds(600))
        #expect(events == ["200, unknown", "late"])
    }

    // MARK: Ending

    @Test(arguments: [false, true])
    func `a stream that is given up cancels its call, and no event or time limit follows`(isDiscarded: Bool) {
        send(.chunked)
        isDiscarded ? stream.discard() : stream.cancel()
        #expect(client.told == ["cancel"])
        start()
        client.receiver?.failed(GatewayError(.upstream, .responseTimeout, "late"))
        stage.sendContent("abc", over: stream)
        stage.hand.advance(by: .seconds(600))
        #expect(events.isEmpty && client.told == ["cancel"])
    }

    @Test func `a client opens no tunnel`() {
        stream.startTunnel(receiver: stage.recorder, idleTimeout: 1)
        #expect(failure?.fault == .upgradeFailed)
    }
}
