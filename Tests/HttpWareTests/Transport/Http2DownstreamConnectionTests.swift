import Testing

@testable import HttpWare

/// Makes exchanges that a test answers.
final class RecordingSource: ExchangeSource {
    private let loop: EventLoop
    private(set) var requests: [RecordingRequest] = []
    private(set) var closedCount = 0
    /// The connection that took over from another one.
    private var replacement: (any DownstreamConnection)?
    var settings = ServerSettings()

    init(_ loop: EventLoop) {
        self.loop = loop
        settings.headTimeout = .seconds(10)
        settings.idleTimeout = .seconds(60)
    }

    var limits: HeadLimits { settings.limits }
    var headNanoseconds: Int64 { settings.headTimeout.nanoseconds }
    var idleNanoseconds: Int64 { settings.idleTimeout.nanoseconds }
    var bodyMinRate: Int? { settings.bodyMinRate }
    var isForward: Bool { false }
    var ownsPaths: Bool { true }
    var bindAddress: SocketAddress? { nil }
    var isDraining: Bool { false }

    func makeReceiver(for sink: any ResponseSink, of connection: any DownstreamConnection) -> any RequestReceiver {
        let request = RecordingRequest(sink, loop)
        requests.append(request)
        return request
    }

    /// Lets go of the streams, as exchanges do that have ended.
    func forgetRequests() { requests = [] }

    func closed(_ connection: any DownstreamConnection) { closedCount += 1 }
    func replaced(_ connection: any DownstreamConnection, by other: any DownstreamConnection) { replacement = other }
}

/// Takes a request as an exchange does, and answers it when a test says so.
final class RecordingRequest: RequestReceiver {
    let exchange: Exchange
    let sink: any ResponseSink
    private(set) var starts = 0
    private(set) var content: [UInt8] = []
    private(set) var ends = 0
    private(set) var trailers: HttpFields?
    private(set) var error: GatewayError?
    private(set) var departures = 0
    private(set) var drains = 0

    init(_ sink: any ResponseSink, _ loop: EventLoop) {
        self.sink = sink
        exchange = Exchange(loop: loop)
    }

    var text: String { String(decoding: content, as: UTF8.self) }
    var requestRelay: SocketConnection? { nil }

    func begin(_ status: HttpStatus = .ok, extent: HttpContent.Extent) {
        exchange.response = HttpResponse(status)
        sink.send(responseOf: exchange, extent: extent, via: false)
    }

    func answer(_ text: String) {
        begin(extent: .length(text.utf8.count))
        Array(text.utf8).withUnsafeBytes { sink.sendContent($0) }
        sink.sendEnd(nil)
    }

    func requestStarted() { starts += 1 }
    func requestRelayed(_ count: Int) {}
    func requestContent(_ bytes: UnsafeRawBufferPointer) { content.append(contentsOf: bytes) }
    func requestEnded(_ trailers: HttpFields?) {
        ends += 1
        self.trailers = trailers
    }
    func requestFailed(_ error: GatewayError, isAnswered: Bool) { self.error = error }
    func clientLeft() { departures += 1 }
    func downstreamDrained() { drains += 1 }
    func tunnelReceivedFromClient(_ bytes: UnsafeRawBufferPointer) {}
    func tunnelEndedByClient() {}
}

@Suite struct Http2DownstreamConnectionTests {
    private let stage: HandTurnedLoop
    private let source: RecordingSource
    private let connection: Http2DownstreamConnection
    private let far: FarHttp2

    init() throws {
        stage = try HandTurnedLoop()
        source = RecordingSource(stage.loop)
        (connection, far) = try stage.http2Client(of: source)
    }

    private func ask() throws -> TestStream {
        let stream = far.end.ask(try HttpRequest(.get, "/"), HeadEncoder.RequestOptions(), host: "a.test")
        far.talk()
        return stream
    }

    @Test func `a client that says nothing is closed after headTimeout, with GOAWAY`() {
        #expect(far.readFrames() == [4, 8])  // SETTINGS and the connection's window
        stage.advance(by: .milliseconds(9999))
        #expect(far.readFrames().isEmpty)
        stage.advance(by: .milliseconds(1))
        #expect(far.readFrames() == [7])
        #expect(far.socket.isEnded)
    }

    @Test func `a head that is not whole after headTimeout ends the connection`() throws {
        far.talk()
        // HEADERS without END_HEADERS. RFC 9113 §6.2.
        far.send(frame: 1, stream: 1, [0x82])
        stage.advance(by: .milliseconds(9999))
        #expect(!connection.isIdle && far.readFrames().isEmpty)
        stage.advance(by: .milliseconds(1))
        #expect(far.readFrames() == [7])
        // It is recorded, and nothing of it begins.
        #expect(source.requests.count == 1)
        #expect(source.requests.first?.error?.fault == .requestTimeout && source.requests.first?.starts == 0)
    }

    @Test func `a connection without a request is closed after idleTimeout`() throws {
        let stream = try ask()
        source.requests[0].answer("ok")
        far.talk()
        #expect(stream.hasEnded && connection.isIdle)
        stage.advance(by: .milliseconds(59_999))
        #expect(far.readFrames().isEmpty)
        stage.advance(by: .milliseconds(1))
        #expect(far.readFrames() == [7])
    }

    @Test func `a connection with a request is not idle, however long the response takes`() throws {
        let stream = try ask()
        #expect(!connection.isIdle)
        stage.advance(by: .seconds(600))
        source.requests[0].answer("late")
        far.talk()
        #expect(String(decoding: stream.content, as: UTF8.self) == "late")
        #expect(!connection.isClosed)
    }

    @Test func `a connection that drains finishes its requests, and closes behind them`() throws {
        let stream = try ask()
        connection.drain(idleFor: 1_000_000_000)
        far.talk()
        stage.advance(by: .seconds(1))
        far.talk()
        #expect(!far.socket.isEnded)
        source.requests[0].answer("last")
        far.talk()
        #expect(String(decoding: stream.content, as: UTF8.self) == "last")
        #expect(far.socket.isEnded)
    }

    @Test func `a request that crosses the announcement of the end is served`() throws {
        far.talk()
        connection.drain(idleFor: 1_000_000_000)
        let stream = try ask()
        source.requests[0].answer("crossed")
        far.talk()
        #expect(String(decoding: stream.content, as: UTF8.self) == "crossed")
    }

    @Test func `bytes that are not HTTP/2 end the connection, and the bytes behind them are thrown away`() throws {
        far.socket.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        stage.turn()
        #expect(far.readFrames().last == 7 && far.socket.isEnded)
        #expect(!connection.isClosed)
        far.socket.send("more")
        stage.turn()
        #expect(!connection.isClosed && source.requests.isEmpty)
        stage.advance(by: .seconds(2))
        #expect(connection.isClosed && source.closedCount == 1)
    }

    @Test func `a client that goes on sending behind the end is closed after 1 MiB`() throws {
        far.socket.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        stage.turn()
        let piece = [UInt8](repeating: 0, count: 1 << 16)
        for _ in 0..<16 {
            #expect(!connection.isClosed)
            #expect(far.socket.send(piece))
            stage.turn()
        }
        #expect(!connection.isClosed)
        far.socket.send("x")
        stage.turn()
        #expect(connection.isClosed)
    }

    @Test func `when the client closes, each of its requests is told once`() throws {
        _ = try ask()
        _ = try ask()
        far.socket.close()
        stage.turn()
        #expect(source.requests.map(\.departures) == [1, 1])
        #expect(connection.isClosed && source.closedCount == 1)
    }

    @Test func `a client that ends its side without closing is closed too`() throws {
        // RFC 9113 §5.4.1 knows no connection that is half closed.
        _ = try ask()
        far.socket.endSending()
        stage.turn()
        #expect(source.requests.map(\.departures) == [1])
        #expect(connection.isClosed)
    }

    @Test func `streams are used again by later requests`() throws {
        for index in 0..<3 {
            let stream = try ask()
            source.requests[index].answer("\(index)")
            far.talk()
            #expect(String(decoding: stream.content, as: UTF8.self) == "\(index)")
        }
        #expect(Set(source.requests.map { ObjectIdentifier($0.sink) }).count == 1)
    }

    @Test func `streams that are used again bring no client a response meant for another`() throws {
        var number = 0
        for round in 0..<20 {
            let streams = try (0..<30).map { _ in
                number += 1
                let request = try HttpRequest(.post, "/\(number)", content: .streamed())
                let stream = far.end.ask(request, HeadEncoder.RequestOptions(framing: .chunked), host: "a.test")
                stream.write(bytes: "content of \(number)")
                return (path: "/\(number)", stream: stream)
            }
            far.talk()
            let requests = source.requests.suffix(streams.count)
            #expect(requests.map(\.exchange.heldRequest.path) == streams.map(\.path))
            // Some of the clients leave before the response begins, and some in the middle of it.
            for (index, entry) in streams.enumerated() where index % 3 == round % 3 {
                far.end.session.cancel(entry.stream)
            }
            far.talk()
            for request in requests where request.departures == 0 { request.begin(extent: .unknown) }
            far.talk()
            for (index, entry) in streams.enumerated() where index % 5 == round % 5 {
                far.end.session.cancel(entry.stream)
            }
            far.talk()
            for (request, entry) in zip(requests, streams) {
                entry.stream.end(nil)
                guard request.departures == 0 else { continue }
                let answer = "\(request.exchange.heldRequest.path) asked with \(request.text)"
                Array(answer.utf8).withUnsafeBytes { request.sink.sendContent($0) }
                request.sink.sendEnd(nil)
            }
            far.talk()
            for (index, entry) in streams.enumerated() {
                let isWhole = index % 3 != round % 3 && index % 5 != round % 5
                #expect(entry.stream.hasEnded == isWhole)
                let answer = "\(entry.path) asked with content of \(entry.path.dropFirst())"
                #expect(String(decoding: entry.stream.content, as: UTF8.self) == (isWhole ? answer : ""))
            }
        }
        #expect(Set(source.requests.map { ObjectIdentifier($0.sink) }).count < 100)
    }

    @Test func `a connection that closed is freed with its streams and its session`() throws {
        weak var gone: Http2DownstreamConnection?
        weak var session: Http2Session?
        weak var sink: (any ResponseSink)?
        do {
            let source = RecordingSource(stage.loop)
            let (connection, far) = try stage.http2Client(of: source)
            for _ in 0..<3 { _ = far.end.ask(try HttpRequest(.get, "/"), HeadEncoder.RequestOptions(), host: "a.test") }
            far.talk()
            source.requests[0].answer("ok")
            far.talk()
            gone = connection
            session = connection.session
            sink = source.requests[1].sink
            #expect(source.requests.count == 3)
            connection.close()
            stage.turn()
            source.forgetRequests()
        }
        #expect(gone == nil)
        #expect(session == nil)
        #expect(sink == nil)
    }
}
