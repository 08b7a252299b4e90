import Testing

@testable import HttpWare

@Suite struct Http2UpstreamStreamTests {
    private let stage: HandTurnedLoop
    private let origin: UnixOrigin
    private let far: FarHttp2
    private let stream: any UpstreamStream
    private let response = RecordingResponse()

    init() throws {
        stage = try HandTurnedLoop()
        origin = try UnixOrigin()
        let endpoint = Endpoint(host: "a.test", port: 80, speaks: .h2).fixed(at: [origin.address])
        let waiter = RecordingWaiter()
        _ = stage.transport.connect(to: endpoint, need: .usual, timeout: .seconds(5), waiter: waiter)
        stream = try #require(waiter.stream)
        far = FarHttp2(.server, try #require(origin.accept()), stage)
        far.talk()
    }

    /// Sends the head of a request. A response may take five seconds, and then pause for two.
    private func send(_ method: HttpMethod = .get, extent: HttpContent.Extent = .none) throws {
        let exchange = Exchange(loop: stage.loop)
        exchange.heldRequest = try HttpRequest(method, "http://a.test/x", content: HttpContent(extent: extent))
        var options = HeadEncoder.RequestOptions(host: "a.test")
        if case .length(let length) = extent { options.framing = .length(length) }
        stream.send(
            requestOf: exchange, options, receiver: response, responseTimeout: 5_000_000_000,
            idleTimeout: 2_000_000_000)
        far.talk()
    }

    private var served: TestStream { far.end.streams[0] }

    private func begin(_ length: Int) {
        var head = HttpResponse(.ok)
        far.end.session.submit(
            &head, HeadEncoder.ResponseOptions(framing: .length(length)), hasContent: true, isLong: true,
            on: served)
    }

    @Test func `a request with content and its response with trailers arrive whole`() throws {
        try send(.post, extent: .length(5))
        Array("hello".utf8).withUnsafeBytes { stream.sendContent($0) }
        stream.sendEnd(nil)
        far.talk()
        #expect(served.request?.path == "/x" && String(decoding: served.content, as: UTF8.self) == "hello")
        #expect(served.hasEnded)
        far.end.session.submitInterim(HttpResponse(.earlyHints), on: served)
        begin(5)
        served.write(bytes: "world")
        var trailers = HttpFields()
        try trailers.set("X-Sum", to: "5")
        served.end(trailers)
        far.talk()
        #expect(response.interim == [103])
        #expect(response.head?.status == .ok && response.text == "world")
        #expect(response.trailers?["X-Sum"] == "5" && response.ends == 1)
    }

    @Test
    func `a paused response stays with the origin server beyond one window, and its end comes when it is resumed`()
        throws
    {
        try send()
        stream.pause()
        let whole = Int(Http2Session.streamWindow) * 2
        begin(whole)
        served.write(bytes: String(repeating: "x", count: whole))
        served.end(nil)
        far.talk()
        #expect(response.content.isEmpty && response.ends == 0)
        #expect(served.outputCount == whole - Int(Http2Session.streamWindow))
        stream.resume()
        far.talk()
        #expect(response.content.count == whole && response.ends == 1)
    }

    @Test func `the end of a paused response waits although the connection has closed`() throws {
        try send()
        stream.pause()
        begin(4)
        served.write(bytes: "held")
        served.end(nil)
        far.talk()
        far.socket.close()
        stage.turn()
        #expect(response.ends == 0 && response.error == nil)
        stream.resume()
        #expect(response.text == "held" && response.ends == 1)
    }

    @Test func `without a response in time the request fails, and its stream is reset`() throws {
        try send()
        stage.advance(by: .milliseconds(4999))
        #expect(response.error == nil)
        stage.advance(by: .milliseconds(1))
        #expect(response.error?.fault == .responseTimeout)
        far.talk()
        #expect(served.code == 8)
    }

    @Test func `a response that pauses for too long is incomplete, unless the client is the reason`() throws {
        try send()
        begin(10)
        served.write(bytes: "some")
        far.talk()
        stream.pause()
        stage.advance(by: .seconds(2))
        stage.advance(by: .seconds(2))
        #expect(response.error == nil)
        stream.resume()
        stage.advance(by: .milliseconds(1999))
        #expect(response.error == nil)
        stage.advance(by: .milliseconds(1))
        #expect(response.error?.fault == .responseIncomplete)
    }

    @Test func `a request whose content the client still sends is not late`() throws {
        try send(.post, extent: .length(5))
        stage.advance(by: .seconds(60))
        #expect(response.error == nil)
        Array("hello".utf8).withUnsafeBytes { stream.sendContent($0) }
        stream.sendEnd(nil)
        far.talk()
        stage.advance(by: .seconds(5))
        #expect(response.error?.fault == .responseTimeout)
    }

    @Test func `a request that the origin server refused unseen may be sent again, whatever its method`() throws {
        // REFUSED_STREAM. RFC 9113 §8.7.
        try send(.post, extent: .length(5))
        far.send(frame: 3, stream: 1, [0, 0, 0, 7])
        let error = try #require(response.error)
        #expect(error.mayRetry && error.isUnprocessed)
    }

    @Test func `a stream that the origin server resets without a response may be tried again, but was perhaps seen`()
        throws
    {
        try send()
        far.send(frame: 3, stream: 1, [0, 0, 0, 8])
        let error = try #require(response.error)
        #expect(error.reason == "the origin server reset the stream without a response")
        #expect(error.mayRetry && !error.isUnprocessed)
    }

    @Test func `a stream that is reset inside the response makes it incomplete`() throws {
        try send()
        begin(10)
        served.write(bytes: "some")
        far.talk()
        far.send(frame: 3, stream: 1, [0, 0, 0, 8])
        #expect(response.error?.fault == .responseIncomplete && response.error?.mayRetry == false)
        #expect(response.ends == 0)
    }

    @Test func `a request that is cancelled resets its stream, and nothing more is told`() throws {
        try send()
        stream.cancel()
        far.talk()
        #expect(served.code == 8)
        stage.advance(by: .seconds(60))
        #expect(response.error == nil && response.ends == 0)
    }

    @Test func `a discarded response is read to its end when little is left of it`() throws {
        try send()
        begin(10)
        served.write(bytes: "some")
        far.talk()
        stream.discard()
        served.write(bytes: "others")
        served.end(nil)
        far.talk()
        #expect(served.code == 0)
        #expect(response.text == "some" && response.ends == 0)
    }

    @Test func `a discarded response of more than 64 KiB resets its stream`() throws {
        try send()
        begin(64 * 1024 + 1)
        far.talk()
        stream.discard()
        far.talk()
        #expect(served.code == 8)
    }

    @Test func `a client is held up at 64 KiB of waiting content, and goes on when 16 KiB are left`() throws {
        try send(.post, extent: .unknown)
        served.pauseInput()
        let window = Int(Http2Session.streamWindow)
        let piece = [UInt8](repeating: 0x78, count: 4096)
        var sent = 0
        while !stream.isBlocked, sent < 1 << 20 {
            piece.withUnsafeBytes { stream.sendContent($0) }
            sent += piece.count
            far.talk()
        }
        #expect(sent == window + 64 * 1024)
        #expect(response.drains == 0)
        served.resumeInput()
        far.talk()
        #expect(response.drains == 1 && !stream.isBlocked)
        #expect(served.content.count == sent)
    }

    @Test func `no tunnel leads through a shared connection`() {
        stream.startTunnel(receiver: response, idleTimeout: 1_000_000_000)
        #expect(response.error == nil)
        stage.turn()
        #expect(response.error?.fault == .upgradeFailed)
    }
}
