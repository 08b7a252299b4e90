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

    /// Asks for a stream of the pool.
    private func want() -> RecordingWaiter {
        let waiter = RecordingWaiter()
        _ = stage.transport.connect(to: endpoint, need: .usual, timeout: .seconds(5), waiter: waiter)
        return waiter
    }

    /// Sends a request on a stream of the pool.
    private func ask(_ path: String = "/") throws -> RecordingResponse { try send(want(), path) }

    private func send(_ waiter: RecordingWaiter, _ path: String = "/") throws -> RecordingResponse {
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
        _ = try ask()
        let far = try accept()
        far.talk()
        for _ in 1..<100 { _ = try ask() }
        #expect(stage.transport.connects == 1)
        far.talk()
        #expect(far.end.streams.count == 100)
        _ = try ask()
        #expect(stage.transport.connects == 2)
        let other = try accept()
        other.talk()
        // A stream that ends makes room.
        far.end.streams[0].answer(HttpResponse(.ok), content: "")
        far.talk()
        _ = try ask()
        _ = try ask()
        #expect(stage.transport.connects == 2)
        other.talk()
        #expect(other.end.streams.count == 2)
    }

    @Test func `requests beyond the first wait for the origin server's settings`() throws {
        _ = try ask()
        let waiters = (0..<3).map { _ in want() }
        #expect(stage.transport.connects == 1 && waiters.allSatisfy { $0.answers == 0 })
        let far = try accept()
        far.talk()
        #expect(stage.transport.connects == 1 && waiters.allSatisfy { $0.stream != nil })
    }

    @Test func `settings that do not come in time fail the requests that wait for them`() throws {
        let first = try ask()
        let second = want()
        stage.advance(by: .milliseconds(4999))
        #expect(second.answers == 0)
        stage.advance(by: .milliseconds(1))
        #expect(second.error?.fault == .connectionTimeout && second.error?.mayRetry == true)
        #expect(first.error == nil)
        #expect(want().stream != nil && stage.transport.connects == 2)
    }

    @Test
    func
        `a connection that closes before its settings fails the requests that wait for it, and they may be tried again`()
        throws
    {
        let first = try ask()
        let second = want()
        let again = RecordingWaiter()
        second.whenFailed = { [stage, endpoint] in
            _ = stage.transport.connect(to: endpoint, need: .usual, timeout: .seconds(5), waiter: again)
        }
        let far = try accept()
        far.socket.close()
        stage.turn()
        #expect(first.error?.mayRetry == true && second.error?.fault == .connectionTerminated)
        #expect(again.stream != nil && stage.transport.connects == 2)
    }

    @Test func `a request above the last stream of a GOAWAY was refused unseen`() throws {
        let first = try ask("/1")
        let far = try accept()
        far.talk()
        let second = try ask("/2")
        far.end.session.endStreams()
        far.talk()
        #expect(first.error == nil)
        #expect(second.error?.isUnprocessed == true)
    }

    @Test(arguments: [UInt32(13), 7])
    func `a reset that requires HTTP/1.1, or refuses the stream, is told apart`(code: UInt32) throws {
        let response = try ask()
        let far = try accept()
        far.talk()
        far.send(frame: 3, stream: 1, [0, 0, 0, UInt8(code)])
        #expect(response.error?.isUnprocessed == true && response.error?.mayRetry == true)
        #expect(response.error?.requiresHttp1 == (code == 13))
    }

    @Test func `a GOAWAY that requires HTTP/1.1 says so of the requests above its last stream`() throws {
        let response = try ask()
        let far = try accept()
        far.talk()
        far.send(frame: 7, stream: 0, [0, 0, 0, 0, 0, 0, 0, 13])
        #expect(response.error?.requiresHttp1 == true)
    }

    @Test func `a request that authenticates its connection shares it with no later one`() throws {
        let exchange = Exchange(loop: stage.loop)
        exchange.heldRequest = try HttpRequest(.get, "http://a.test/")
        try exchange.heldRequest.fields.append("Authorization", "Negotiate YII=")
        try #require(want().stream).send(
            requestOf: exchange, HeadEncoder.RequestOptions(host: "a.test"), receiver: RecordingResponse(),
            responseTimeout: 60_000_000_000, idleTimeout: 60_000_000_000)
        let far = try accept()
        far.talk()
        _ = try ask()
        #expect(stage.transport.connects == 2)
    }

    @Test func `an expectation that the origin server does not answer is granted after a tenth of a second`() throws {
        let waiter = want()
        let exchange = Exchange(loop: stage.loop)
        exchange.heldRequest = try HttpRequest(.put, "http://a.test/", content: HttpContent(extent: .length(5)))
        exchange.heldRequest.expectsContinue = true
        let response = RecordingResponse()
        try #require(waiter.stream).send(
            requestOf: exchange, HeadEncoder.RequestOptions(framing: .length(5), host: "a.test"), receiver: response,
            responseTimeout: 60_000_000_000, idleTimeout: 60_000_000_000)
        let far = try accept()
        far.talk()
        stage.advance(by: .milliseconds(99))
        #expect(response.interim.isEmpty)
        stage.advance(by: .milliseconds(1))
        #expect(response.interim == [100])
        stage.advance(by: .seconds(10))
        #expect(response.interim == [100] && response.error == nil)
    }

    @Test func `an expectation that the origin server refuses is not granted`() throws {
        let waiter = want()
        let exchange = Exchange(loop: stage.loop)
        exchange.heldRequest = try HttpRequest(.put, "http://a.test/", content: HttpContent(extent: .length(5)))
        exchange.heldRequest.expectsContinue = true
        let response = RecordingResponse()
        try #require(waiter.stream).send(
            requestOf: exchange, HeadEncoder.RequestOptions(framing: .length(5), host: "a.test"), receiver: response,
            responseTimeout: 60_000_000_000, idleTimeout: 60_000_000_000)
        let far = try accept()
        far.talk()
        far.end.streams[0].answer(HttpResponse(.contentTooLarge), content: "no")
        far.talk()
        stage.advance(by: .seconds(1))
        #expect(response.interim.isEmpty && response.head?.status == .contentTooLarge)
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

    /// Sends this number of requests at once, and ends their connection: the origin server has seen `served` of them.
    private func learn(_ count: Int, served: UInt8, code: UInt8 = 0) throws -> FarHttp2 {
        _ = try ask()
        let far = try accept()
        far.talk()
        for _ in 1..<count { _ = try ask() }
        far.send(frame: 7, stream: 0, [0, 0, 0, served * 2 - 1, 0, 0, 0, code])
        return far
    }

    @Test func `after a GOAWAY that refused requests, a connection carries no more than the last one did`() throws {
        let former = try learn(8, served: 2)
        defer { withExtendedLifetime(former) {} }
        for connections in 2...4 {
            _ = try ask()
            #expect(stage.transport.connects == connections)
            let far = try accept()
            far.talk()
            _ = try ask()
            #expect(stage.transport.connects == connections)
            withExtendedLifetime(far) {}
        }
    }

    @Test func `requests that wait for a connection are no more than it will carry`() throws {
        let former = try learn(8, served: 2)
        defer { withExtendedLifetime(former) {} }
        _ = try ask()
        #expect(stage.transport.connects == 2)
        // Two may wait for the settings of that connection; the third makes another one.
        let waiters = (0..<3).map { _ in want() }
        #expect(stage.transport.connects == 3)
        let fars = try (0..<2).map { _ in try accept() }
        for far in fars { far.talk() }
        #expect(waiters.allSatisfy { $0.stream != nil })
        withExtendedLifetime(fars) {}
    }

    @Test func `a connection that outlives the number of its requests carries more`() throws {
        let former = try learn(8, served: 1)
        defer { withExtendedLifetime(former) {} }
        _ = try ask()
        let far = try accept()
        far.talk()
        far.end.streams[0].answer(HttpResponse(.ok), content: "")
        far.talk()
        for _ in 0..<1 { _ = try ask() }
        #expect(stage.transport.connects == 2)
        _ = try ask()
        #expect(stage.transport.connects == 3)
    }

    @Test(arguments: [(8, 8, 0), (8, 1, 13)] as [(Int, UInt8, UInt8)])
    func `a GOAWAY that refuses nothing, or requires HTTP/1.1, tells no number`(
        count: Int, served: UInt8, code: UInt8
    ) throws {
        let former = try learn(count, served: served, code: code)
        defer { withExtendedLifetime(former) {} }
        _ = try ask()
        let far = try accept()
        far.talk()
        for _ in 0..<20 { _ = try ask() }
        #expect(stage.transport.connects == 2)
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
        let far = try accept()
        far.talk()
        let waiting = try ask("/2")
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
