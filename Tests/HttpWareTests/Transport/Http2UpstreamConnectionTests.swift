import Testing

@testable import HttpWare

@Suite struct Http2UpstreamConnectionTests {
    private let stage: HandTurnedLoop
    private let origin: UnixOrigin
    private let endpoint: Endpoint

    init() throws {
        stage = try HandTurnedLoop()
        origin = try UnixOrigin()
        var limits = Endpoint.PoolLimits()
        limits.idleTimeout = .seconds(30)
        endpoint = Endpoint(host: "a.test", port: 80, limits: limits, speaks: .h2).fixed(at: [origin.address])
    }

    /// Sends a request on a stream of the pool.
    private func ask(_ path: String = "/") throws -> RecordingResponse {
        let waiter = RecordingWaiter()
        _ = stage.transport.connect(to: endpoint, need: .usual, timeout: .seconds(5), waiter: waiter)
        let exchange = Exchange(loop: stage.loop)
        exchange.heldRequest = try HttpRequest(.get, "http://a.test\(path)")
        let response = RecordingResponse()
        try #require(waiter.stream).send(
            requestOf: exchange, HeadEncoder.RequestOptions(host: "a.test"), receiver: response,
            responseTimeout: 60_000_000_000, idleTimeout: 60_000_000_000)
        stage.turn()
        return response
    }

    private func accept() throws -> FarHttp2 { FarHttp2(.server, try #require(origin.accept()), stage) }

    @Test func `requests share one connection, up to the hundred that the origin server takes`() throws {
        for _ in 0..<100 { _ = try ask() }
        #expect(stage.transport.connects == 1)
        let far = try accept()
        far.talk()
        #expect(far.end.streams.count == 100)
        _ = try ask()
        #expect(stage.transport.connects == 2)
        // A stream that ends makes room.
        far.end.streams[0].answer(HttpResponse(.ok), content: "")
        far.talk()
        _ = try ask()
        _ = try ask()
        #expect(stage.transport.connects == 2)
    }

    @Test func `after GOAWAY new requests take another connection, and the old one closes behind its last response`()
        throws
    {
        let response = try ask("/1")
        let far = try accept()
        far.talk()
        far.end.session.endStreams()
        far.talk()
        let next = try ask("/2")
        #expect(stage.transport.connects == 2)
        #expect(!far.socket.isEnded && response.head == nil)
        far.end.streams[0].answer(HttpResponse(.ok), content: "late")
        far.talk()
        #expect(response.text == "late" && response.ends == 1)
        #expect(far.socket.isEnded)
        #expect(next.error == nil)
        #expect(stage.transport.poolNumbers.first?.open == 1)
    }

    @Test func `a connection without a request is closed after idleTimeout, with GOAWAY`() throws {
        _ = try ask()
        let far = try accept()
        far.talk()
        far.end.streams[0].answer(HttpResponse(.ok), content: "ok")
        far.talk()
        #expect(stage.transport.poolNumbers.first?.idle == 1)
        stage.advance(by: .milliseconds(29_999))
        #expect(far.readFrames().isEmpty && !far.socket.isEnded)
        stage.advance(by: .milliseconds(1))
        #expect(far.readFrames() == [7] && far.socket.isEnded)
        #expect(stage.transport.pools.isEmpty)
    }

    @Test func `a request on an idle connection keeps it open`() throws {
        _ = try ask()
        let far = try accept()
        far.talk()
        far.end.streams[0].answer(HttpResponse(.ok), content: "ok")
        far.talk()
        stage.advance(by: .seconds(29))
        let second = try ask()
        stage.advance(by: .seconds(29))
        far.talk()
        far.end.streams[1].answer(HttpResponse(.ok), content: "ok")
        far.talk()
        #expect(second.ends == 1 && stage.transport.connects == 1)
    }

    @Test func `when the connection closes, only requests without a response may be tried again`() throws {
        let begun = try ask("/1")
        let waiting = try ask("/2")
        let far = try accept()
        far.talk()
        var head = HttpResponse(.ok)
        far.end.session.submit(
            &head, HeadEncoder.ResponseOptions(framing: .length(10)), hasContent: true, isLong: false,
            on: far.end.streams[0])
        far.talk()
        #expect(begun.head?.status == .ok)
        far.socket.close()
        stage.turn()
        #expect(begun.error?.fault == .responseIncomplete && begun.error?.mayRetry == false)
        #expect(waiting.error?.fault == .connectionTerminated && waiting.error?.mayRetry == true)
        #expect(stage.transport.pools.isEmpty)
    }

    @Test func `a connection to an origin server that does not speak HTTP/2 fails its requests, and is closed`() throws
    {
        let response = try ask()
        let far = try accept()
        far.socket.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        stage.turn()
        #expect(response.error?.fault == .connectionTerminated)
        _ = far.socket.read()
        #expect(far.socket.isEnded)
    }

    @Test func `a retired connection closes behind its last response`() throws {
        let response = try ask()
        let far = try accept()
        far.talk()
        stage.transport.retirePool(of: endpoint)
        far.talk()
        #expect(!far.socket.isEnded)
        far.end.streams[0].answer(HttpResponse(.ok), content: "ok")
        far.talk()
        #expect(response.text == "ok" && far.socket.isEnded)
        #expect(stage.transport.pools.isEmpty)
    }

    @Test func `a connection that was never used closes when the pool does`() throws {
        _ = try ask()
        let far = try accept()
        far.talk()
        far.end.streams[0].answer(HttpResponse(.ok), content: "ok")
        far.talk()
        stage.transport.closeIdle()
        _ = far.socket.read()
        #expect(far.socket.isEnded)
        #expect(stage.transport.pools.isEmpty)
    }
}
