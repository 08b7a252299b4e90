import Testing

@testable import HttpWare

@Suite struct Http2DownstreamStreamTests {
    private let stage: HandTurnedLoop
    private let source: RecordingSource
    private let connection: Http2DownstreamConnection
    private let far: FarHttp2

    init() throws {
        stage = try HandTurnedLoop()
        source = RecordingSource(stage.loop)
        source.settings.idleTimeout = .seconds(3)
        (connection, far) = try stage.http2Client(of: source)
        far.talk()
    }

    private func ask(_ method: HttpMethod = .get, extent: HttpContent.Extent = .none) throws -> TestStream {
        var options = HeadEncoder.RequestOptions()
        if case .length(let length) = extent { options.framing = .length(length) }
        let stream = far.end.ask(
            try HttpRequest(method, "/x", content: HttpContent(extent: extent)), options, host: "a.test")
        far.talk()
        return stream
    }

    private var request: RecordingRequest { source.requests[0] }

    @Test func `a request with content and trailers is told in order, and its response arrives`() throws {
        let stream = try ask(.post, extent: .length(5))
        #expect(request.starts == 1 && request.exchange.heldRequest.path == "/x" && request.ends == 0)
        stream.write(bytes: "hello")
        var trailers = HttpFields()
        try trailers.set("X-Sum", to: "5")
        stream.end(trailers)
        far.talk()
        #expect(request.text == "hello" && request.ends == 1 && request.trailers?["X-Sum"] == "5")
        request.answer("world")
        far.talk()
        #expect(stream.response?.status == .ok && String(decoding: stream.content, as: UTF8.self) == "world")
        #expect(stream.hasEnded && stream.code == 0)
    }

    @Test func `a response to HEAD states the length, and has no content`() throws {
        let stream = try ask(.head)
        request.begin(extent: .length(1000))
        request.sink.sendEnd(nil)
        far.talk()
        #expect(stream.response?.fields["Content-Length"] == "1000")
        #expect(stream.content.isEmpty && stream.hasEnded)
    }

    @Test func `a paused request waits at the client beyond one window`() throws {
        let stream = try ask(.post, extent: .unknown)
        request.sink.pauseRequest()
        let window = Int(Http2Session.streamWindow)
        stream.write(bytes: String(repeating: "x", count: window * 2))
        stream.end(nil)
        far.talk()
        #expect(stream.outputCount == window)
        request.sink.resumeRequest()
        far.talk()
        #expect(request.content.count == window * 2 && request.ends == 1)
    }

    @Test func `content that makes no progress fails the request, unless the gateway does not take it`() throws {
        let stream = try ask(.post, extent: .unknown)
        stream.write(bytes: "some")
        far.talk()
        request.sink.pauseRequest()
        stage.advance(by: .seconds(3))
        #expect(request.error == nil)
        request.sink.resumeRequest()
        stage.advance(by: .milliseconds(2999))
        #expect(request.error == nil)
        stage.advance(by: .milliseconds(1))
        #expect(request.error?.fault == .requestTimeout)
    }

    @Test func `a client that takes no content of the response is left after idleTimeout, with a reset`() throws {
        let stream = try ask()
        stream.pauseInput()
        let whole = Int(Http2Session.streamWindow) * 2
        request.begin(extent: .length(whole))
        [UInt8](repeating: 0x78, count: whole).withUnsafeBytes { request.sink.sendContent($0) }
        far.talk()
        #expect(stream.content.count == Int(Http2Session.streamWindow))
        stage.advance(by: .milliseconds(2999))
        #expect(request.departures == 0)
        stage.advance(by: .milliseconds(1))
        #expect(request.departures == 1)
        far.talk()
        #expect(stream.code == 8)
    }

    @Test func `the response is held up at 64 KiB of waiting content, and goes on when 16 KiB are left`() throws {
        let stream = try ask()
        stream.pauseInput()
        request.begin(extent: .unknown)
        let piece = [UInt8](repeating: 0x78, count: 4096)
        var sent = 0
        while !request.sink.isBlocked, sent < 1 << 20 {
            piece.withUnsafeBytes { request.sink.sendContent($0) }
            sent += piece.count
            far.talk()
        }
        #expect(sent == Int(Http2Session.streamWindow) + 64 * 1024)
        #expect(request.drains == 0)
        stream.resumeInput()
        far.talk()
        #expect(request.drains == 1 && stream.content.count == sent)
    }

    @Test func `a response that is cut off is reset, and not ended`() throws {
        let stream = try ask()
        request.begin(extent: .unknown)
        Array("half".utf8).withUnsafeBytes { request.sink.sendContent($0) }
        far.talk()
        request.sink.cutOff()
        far.talk()
        #expect(String(decoding: stream.content, as: UTF8.self) == "half")
        #expect(!stream.hasEnded)
        #expect(stream.code != nil && stream.code != 0)
        #expect(!connection.isClosed)
    }

    @Test func `an exchange that ends without a response resets the stream`() throws {
        let stream = try ask()
        request.sink.sendEnd(nil)
        far.talk()
        #expect(stream.response == nil && stream.code != nil && stream.code != 0)
    }

    @Test func `a client that resets its stream has left, and the connection stays`() throws {
        let stream = try ask()
        far.end.session.cancel(stream)
        far.talk()
        #expect(request.departures == 1)
        #expect(!connection.isClosed)
        let next = try ask()
        source.requests[1].answer("next")
        far.talk()
        #expect(String(decoding: next.content, as: UTF8.self) == "next")
    }

    @Test func `interim responses go out before the head, and not behind it`() throws {
        let stream = try ask()
        request.sink.sendInterim(HttpResponse(.earlyHints))
        request.answer("ok")
        request.sink.sendInterim(HttpResponse(.earlyHints))
        far.talk()
        #expect(stream.interim == [.earlyHints] && stream.hasEnded)
    }

    @Test func `an early success with much of the request unread does not announce its length`() throws {
        // After a 2xx curl reads no windows once it has the content that was announced.
        let stream = try ask(.post, extent: .length(1 << 20))
        request.answer("early")
        far.talk()
        #expect(stream.response?.status == .ok && stream.response?.fields["Content-Length"] == nil)
        #expect(String(decoding: stream.content, as: UTF8.self) == "early")
    }
}
