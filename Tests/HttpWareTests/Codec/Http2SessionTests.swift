import Testing

@testable import HttpWare

/// Two sessions that talk to each other in memory: what one sends is what the other is told, whole or byte by byte.
@Suite struct Http2SessionTests {
    private static let pieces = [Int.max, 1, 7]

    @Test(arguments: pieces)
    func `a request and its response are what they were, with content and trailers`(piece: Int) throws {
        let pair = SessionPair(piece: piece)
        let request = try HttpRequest(
            .post, "http://example.test/a/b?c=d", fields: ["X-Client": "Yes", "Cookie": "a=1"],
            content: HttpContent(extent: .length(7)))
        var options = HeadEncoder.RequestOptions()
        options.framing = .length(7)
        options.host = "example.test"
        let asked = pair.client.ask(request, options)
        asked.write(bytes: "content")
        var trailers = HttpFields()
        try trailers.set("X-Sum", to: "7")
        asked.end(trailers)
        pair.talk()

        let served = try #require(pair.server.streams.first)
        let received = try #require(served.request)
        #expect(received.method == .post)
        #expect(received.path == "/a/b")
        #expect(received.query == "c=d")
        #expect(received.authority == Authority("example.test"))
        #expect(received.version == .http2)
        #expect(received.content.length == 7)
        #expect(
            received.fields.description
                == "host: example.test\nx-client: Yes\ncookie: a=1\ncontent-length: 7")
        #expect(String(decoding: served.content, as: UTF8.self) == "content")
        #expect(served.trailers?["X-Sum"] == "7")

        served.answer(HttpResponse(.created, fields: ["X-Origin": "yes", "Connection": "close"]), content: "made")
        pair.talk()
        #expect(asked.response?.status == .created)
        #expect(asked.response?.fields.description == "x-origin: yes\ncontent-length: 4")
        #expect(String(decoding: asked.content, as: UTF8.self) == "made")
        #expect(asked.hasEnded && asked.code == 0)
        #expect(served.code == 0)
        #expect(pair.client.session.streams.isEmpty && pair.server.session.streams.isEmpty)
    }

    @Test(arguments: pieces)
    func `content waits for the window, and goes on when what came was taken`(piece: Int) throws {
        let pair = SessionPair(piece: piece)
        let asked = pair.client.ask(try HttpRequest(.get, "/"), HeadEncoder.RequestOptions(), host: "example.test")
        pair.talk()
        let served = try #require(pair.server.streams.first)
        asked.pauseInput()
        let whole = Int(Http2Session.streamWindow) * 3
        served.answer(HttpResponse(.ok), bytes: [UInt8](repeating: 0x61, count: whole))
        pair.talk()
        #expect(asked.content.count == Int(Http2Session.streamWindow))
        #expect(served.outputCount == whole - asked.content.count)
        asked.resumeInput()
        pair.talk()
        #expect(asked.content.count == whole)
        #expect(asked.hasEnded)
    }

    @Test func `interim responses come before the final one`() throws {
        let pair = SessionPair()
        let asked = pair.client.ask(try HttpRequest(.get, "/"), HeadEncoder.RequestOptions(), host: "example.test")
        pair.talk()
        let served = try #require(pair.server.streams.first)
        pair.server.session.submitInterim(HttpResponse(.earlyHints, fields: ["Link": "</a.css>"]), on: served)
        served.answer(HttpResponse(.ok), content: "")
        pair.talk()
        #expect(asked.interim == [.earlyHints])
        #expect(asked.response?.status == .ok)
    }

    @Test func `a stream that one side gives up has ended on both`() throws {
        let pair = SessionPair()
        let asked = pair.client.ask(try HttpRequest(.get, "/"), HeadEncoder.RequestOptions(), host: "example.test")
        pair.talk()
        let served = try #require(pair.server.streams.first)
        pair.client.session.cancel(asked)
        pair.talk()
        #expect(served.code == 8)
        #expect(asked.code == 8)
    }

    /// A request whose content is not whole, at a server; and what the server sends then, frame by frame.
    private func withUpload(
        length: Int?, answer: (TestStream) -> Void,
        _ body: (SessionPair, _ asked: TestStream, _ served: TestStream) throws -> Void
    ) throws {
        let pair = SessionPair()
        let content = HttpContent(extent: length.map { .length($0) } ?? .unknown)
        var options = HeadEncoder.RequestOptions()
        if let length { options.framing = .length(length) }
        let asked = pair.client.ask(try HttpRequest(.post, "/", content: content), options, host: "example.test")
        asked.write(bytes: "begun")
        pair.talk()
        let served = try #require(pair.server.streams.first)
        answer(served)
        try body(pair, asked, served)
    }

    @Test func `an early answer is followed by a PING, and the reset by its acknowledgement`() throws {
        // RFC 9113 §8.1. A client that reads answer and reset at once may discard the answer.
        try withUpload(length: nil, answer: { $0.answer(HttpResponse(.contentTooLarge), content: "no") }) {
            pair, asked, served in
            pair.server.session.send()
            #expect(pair.server.takeFrames() == [.headers, .data, .ping])
            #expect(asked.code == nil && served.isOpen)
            asked.write(bytes: "more")
            pair.client.session.send()
            pair.carryOver()
            #expect(String(decoding: asked.content, as: UTF8.self) == "no" && asked.hasEnded)
            pair.talk()
            #expect(asked.code == 0 && served.code == 0)
        }
    }

    @Test func `an early answer's stream is reset after a second without an acknowledgement`() throws {
        try withUpload(length: nil, answer: { $0.answer(HttpResponse(.contentTooLarge), content: "no") }) {
            pair, _, served in
            pair.server.session.send()
            #expect(pair.server.session.due == 1_000_000_000)
            pair.server.session.timeReached(999_999_999)
            pair.server.session.send()
            #expect(served.isOpen)
            pair.server.session.timeReached(1_000_000_000)
            pair.server.session.send()
            #expect(!served.isOpen && pair.server.takeFrames().last == .reset)
            #expect(pair.server.session.due == .max)
        }
    }

    @Test func `after an early success a short rest of the request is taken, without a reset`() throws {
        try withUpload(length: 300_005, answer: { $0.succeed() }) { pair, asked, served in
            asked.write(bytes: String(repeating: "x", count: 300_000))
            asked.end(nil)
            pair.talk()
            #expect(asked.hasEnded && served.hasEnded && asked.code == 0 && asked.outputCount == 0)
            #expect(!pair.server.seen.contains(.reset))
            // One behind the response, and one that tells the client to look: the stream has ended.
            #expect(pair.server.pings == 2)
        }
    }

    @Test func `after an early success a long rest of the request is not waited for`() throws {
        try withUpload(length: 2_000_000, answer: { $0.succeed() }) { pair, asked, _ in
            pair.talk()
            #expect(asked.hasEnded && asked.code == 0)
            #expect(pair.server.seen.contains(.reset))
        }
    }

    @Test func `after an early success a mebibyte of the request is discarded at most`() throws {
        try withUpload(length: nil, answer: { $0.succeed() }) { pair, asked, served in
            for _ in 0..<40 where served.isOpen {
                asked.write(bytes: String(repeating: "x", count: 50_000))
                pair.talk()
            }
            #expect(!served.isOpen && asked.code == 0)
            #expect((1 << 20 - 50_000)...(1 << 20 + 60_000) ~= served.content.count)
        }
    }

    @Test func `after an early refusal the client's windows stay as they are`() throws {
        try withUpload(length: nil, answer: { $0.answer(HttpResponse(.contentTooLarge), content: "no") }) {
            pair, asked, served in
            pair.server.session.send()
            asked.write(bytes: String(repeating: "x", count: 300_000))
            pair.client.session.send()
            pair.carryToServer()
            #expect(served.content.count == Int(Http2Session.streamWindow))
            pair.talk()
            #expect(asked.code == 0)
        }
    }

    @Test func `acknowledgements that we asked for do not count as a flood`() throws {
        let pair = SessionPair()
        for _ in 0..<300 {
            let asked = pair.client.ask(
                try HttpRequest(.post, "/", content: HttpContent(extent: .unknown)), HeadEncoder.RequestOptions(),
                host: "example.test")
            pair.talk()
            pair.server.streams.last?.answer(HttpResponse(.contentTooLarge), content: "no")
            pair.talk()
            #expect(asked.code == 0)
        }
        #expect(!pair.server.session.isTerminating)
    }

    @Test(arguments: [
        // Unknown; empty DATA of a stream that has ended, with its end and without; RST_STREAM of one.
        (0xfa, 0, 0, 0), (0xfa, 0, 1, 5), (0, 0, 1, 0), (0, 1, 1, 0), (3, 0, 1, 4), (0x10, 0, 0, 8),
    ])
    func `frames that are ignored are counted`(type: Int, flags: Int, stream: Int, length: Int) throws {
        // RFC 9113 §10.5.
        for piece in [1 << 20, 1, 7] {
            let pair = SessionPair()
            // Reset by the server: what the client still sends on it is ignored.
            let asked = pair.client.ask(
                try HttpRequest(.post, "/", content: HttpContent(extent: .unknown)), HeadEncoder.RequestOptions(),
                host: "example.test")
            pair.talk()
            pair.server.streams.first?.answer(HttpResponse(.contentTooLarge), content: "")
            pair.talk()
            #expect(asked.code == 0)
            let frame: [UInt8] =
                [0, 0, UInt8(length), UInt8(type), UInt8(flags), 0, 0, 0, UInt8(stream)]
                + [UInt8](repeating: 0, count: length)
            func feed(_ count: Int) {
                let bytes = Array(repeatElement(frame, count: count).joined())
                for start in stride(from: 0, to: bytes.count, by: piece) {
                    let isTaken = bytes[start..<min(start + piece, bytes.count)].withUnsafeBytes {
                        pair.server.session.receive($0)
                    }
                    if !isTaken { return }
                }
            }
            feed(1_990)
            #expect(!pair.server.session.isTerminating, "a few are no flood")
            feed(20)
            #expect(pair.server.session.isTerminating)
        }
    }

    @Test(arguments: [(0, true), (1, true), (200, true), (0, false), (200, false)])
    func `DATA of padding alone counts as empty, RFC 9113 §10.5`(padding: Int, isOpen: Bool) throws {
        for piece in [1 << 20, 1, 7] {
            let pair = SessionPair()
            _ = pair.client.ask(
                try HttpRequest(.post, "/", content: HttpContent(extent: .unknown)), HeadEncoder.RequestOptions(),
                host: "example.test")
            pair.talk()
            if !isOpen {
                // Reset by the server: what the client still sends on it is ignored.
                pair.server.streams.first?.answer(HttpResponse(.contentTooLarge), content: "")
                pair.talk()
            }
            func feed(_ count: Int, content: [UInt8] = []) {
                let length = 1 + content.count + padding
                let frame: [UInt8] =
                    [0, 0, UInt8(length), 0, 8, 0, 0, 0, 1, UInt8(padding)] + content
                    + [UInt8](repeating: 0, count: padding)
                let bytes = Array(repeatElement(frame, count: count).joined())
                for start in stride(from: 0, to: bytes.count, by: piece) {
                    let isTaken = bytes[start..<min(start + piece, bytes.count)].withUnsafeBytes {
                        pair.server.session.receive($0)
                    }
                    if !isTaken { return }
                }
            }
            // Padded content of an open stream is content.
            if isOpen { feed(300, content: [0x78]) }
            feed(isOpen ? 200 : 1_990)
            #expect(!pair.server.session.isTerminating, "a few are no flood")
            feed(20)
            #expect(pair.server.session.isTerminating)
        }
    }

    @Test func `white space around the values of a response and its trailers is removed, RFC 9113 §8.2.1`() throws {
        let pair = SessionPair()
        let asked = pair.client.ask(try HttpRequest(.get, "/"), HeadEncoder.RequestOptions(), host: "example.test")
        pair.talk()
        func field(_ name: String, _ value: String) -> [UInt8] {
            [0x10, UInt8(name.utf8.count)] + name.utf8 + [UInt8(value.utf8.count)] + value.utf8
        }
        func frame(_ type: UInt8, _ flags: UInt8, _ payload: [UInt8]) -> [UInt8] {
            [0, 0, UInt8(payload.count), type, flags, 0, 0, 0, 1] + payload
        }
        pair.server.output =
            frame(1, 4, field(":status", "200") + field("x-b", " v "))
            + frame(0, 0, Array("content".utf8)) + frame(1, 5, field("grpc-message", "fine "))
        pair.carryToClient()
        #expect(asked.response?.fields["X-B"] == "v" && asked.content == Array("content".utf8))
        #expect(asked.trailers?["Grpc-Message"] == "fine" && asked.code ?? 0 == 0)
    }

    @Test func `a response head over the limit is told as too large, with the limit, its value and its key`() throws {
        var limits = HeadLimits()
        limits.head = 1001
        limits.fieldLines = 10
        let pair = SessionPair(responses: limits)
        for (fields, reason) in [
            (1, "the head is larger than 1001B, the limit in limits.response.head"),
            (11, "the head has more than 10 field lines, the limit in limits.response.fieldLines"),
        ] {
            let asked = pair.client.ask(try HttpRequest(.get, "/"), HeadEncoder.RequestOptions(), host: "example.test")
            pair.talk()
            var response = HttpResponse(.ok)
            for number in 0..<fields {
                try response.fields.append(
                    try #require(FieldName("X-\(number)")), fields == 1 ? String(repeating: "y", count: 1000) : "y")
            }
            pair.server.streams.last?.answer(response, content: "")
            pair.talk()
            #expect(asked.error?.reason == reason && asked.error?.fault == .responseHeadTooLarge)
            #expect(asked.error?.proxyStatusName == "http_response_header_section_size")
        }
        #expect(!pair.client.session.isTerminating)
    }

    @Test func `a response head of 1,000 lines is read`() throws {
        let pair = SessionPair(responses: .response)
        let asked = pair.client.ask(try HttpRequest(.get, "/"), HeadEncoder.RequestOptions(), host: "example.test")
        pair.talk()
        var response = HttpResponse(.ok)
        // 32 bytes are counted for each line. RFC 9113 §6.5.2.
        for number in 0..<998 {
            try response.fields.append("Set-Cookie", "c\(number)=" + String(repeating: "y", count: 20))
        }
        pair.server.streams.last?.answer(response, content: "")
        pair.talk()
        #expect(asked.response?.fields.count == 999 && asked.error == nil)
    }

    @Test(arguments: pieces)
    func `a head in as many CONTINUATIONs as there may be is read, one more is a flood`(piece: Int) throws {
        for (count, isRead) in [
            (Http2FrameBudget.mostContinuations, true), (Http2FrameBudget.mostContinuations + 1, false),
        ] {
            let pair = SessionPair(piece: piece)
            func field(_ name: String, _ value: String) -> [UInt8] {
                [0x10, UInt8(name.utf8.count)] + name.utf8 + [UInt8(value.utf8.count)] + value.utf8
            }
            func frame(_ type: UInt8, _ flags: UInt8, _ payload: [UInt8]) -> [UInt8] {
                [0, 0, UInt8(payload.count), type, flags, 0, 0, 0, 1] + payload
            }
            let head =
                field(":method", "GET") + field(":scheme", "http") + field(":path", "/") + field(":authority", "a")
            var bytes = frame(1, 1, head)
            for index in 1...count { bytes += frame(9, index == count ? 4 : 0, field("x-\(index)", "1")) }
            pair.client.output = bytes
            pair.carryToServer()
            #expect((pair.server.streams.first?.request != nil) == isRead)
            #expect(pair.server.session.isTerminating != isRead)
        }
    }

    @Test func `a head larger than the limit is refused, and the connection goes on`() throws {
        let pair = SessionPair()
        var fields = HttpFields()
        try fields.set("X-Long", to: String(repeating: "x", count: 60_000))
        try fields.set("X-Longer", to: String(repeating: "x", count: 10_000))
        let asked = pair.client.ask(
            try HttpRequest(.get, "/", fields: fields), HeadEncoder.RequestOptions(), host: "example.test")
        pair.talk()
        #expect(pair.server.streams.first?.refusal?.fault == .requestHeadTooLarge)
        #expect(asked.code == nil)
        _ = pair.client.ask(try HttpRequest(.get, "/"), HeadEncoder.RequestOptions(), host: "example.test")
        pair.talk()
        #expect(pair.server.streams.last?.request?.path == "/")
    }

    @Test func `bytes that are not HTTP/2 are not taken`() {
        let server = SessionEnd(.server)
        let bytes = Array("GET / HTTP/1.1\r\nHost: example.test\r\n\r\n".utf8)
        let isTaken = bytes.withUnsafeBytes { server.session.receive($0) }
        #expect(!isTaken)
        #expect(server.session.isTerminating)
    }

    @Test func `a budget of frames is used up, and new after ten seconds`() {
        var budget = Http2FrameBudget()
        let granted = (0..<200).count { _ in budget.takeFrame(.ping, now: 1) }
        #expect(granted == 200)
        let isOverdrawn = !budget.takeFrame(.ping, now: 2)
        #expect(isOverdrawn)
        let isNew = budget.takeFrame(.ping, now: 11_000_000_000)
        #expect(isNew)
        for _ in 0..<10 { budget.earnExchange() }
        let earned = (0..<205).count { _ in budget.takeFrame(.reset, now: 11_000_000_001) }
        #expect(earned == 205)
        let isSpent = !budget.takeFrame(.reset, now: 11_000_000_002)
        #expect(isSpent)
    }
}

/// A client and a server, and the bytes between them.
final class SessionPair {
    let client: SessionEnd
    let server: SessionEnd
    private let piece: Int

    init(piece: Int = .max, responses limits: HeadLimits = HeadLimits()) {
        self.piece = piece
        client = SessionEnd(.client)
        client.limits = limits
        server = SessionEnd(.server)
        talk()
    }

    /// Until neither side has anything left to say.
    func talk() {
        repeat {
            client.session.send()
            carry(client, to: server)
            server.session.send()
            carry(server, to: client)
            client.session.send()
        } while !client.output.isEmpty || !server.output.isEmpty
    }

    /// The client is told what the server has sent, and the server what the client has sent.
    func carryOver() {
        carry(server, to: client)
        carry(client, to: server)
    }

    func carryToServer() { carry(client, to: server) }

    func carryToClient() { carry(server, to: client) }

    private func carry(_ one: SessionEnd, to other: SessionEnd) {
        let bytes = one.output
        _ = one.takeFrames()
        one.output = []
        var start = 0
        while start < bytes.count {
            let end = piece < bytes.count - start ? start + piece : bytes.count
            let isTaken = bytes[start..<end].withUnsafeBytes { other.session.receive($0) }
            guard isTaken else { return }
            start = end
        }
    }
}

/// One end of a connection of HTTP/2, with what it was told and what it wants to send.
final class SessionEnd: Http2SessionHandler {
    private(set) lazy var session = Http2Session(role, handler: self)
    private let role: Http2Session.Role
    var output: [UInt8] = []
    var streams: [TestStream] = []
    /// The frames that have left.
    var seen: Set<Frame> = []
    var pings = 0

    enum Frame: Int { case data, headers, priority, reset, settings, push, ping, goAway, window, continuation }

    /// The frames that wait to be carried, without those about windows and settings.
    func takeFrames() -> [Frame] {
        var frames: [Frame] = []
        var rest = output[...]
        if role == .client, rest.starts(with: "PRI".utf8) { rest = rest.dropFirst(Http2Preface.count) }
        while rest.count >= 9 {
            let head = Array(rest.prefix(9))
            rest = rest.dropFirst(9 + Int(head[0]) << 16 + Int(head[1]) << 8 + Int(head[2]))
            if let frame = Frame(rawValue: Int(head[3])) { frames.append(frame) }
        }
        seen.formUnion(frames)
        pings += frames.count { $0 == .ping }
        return frames.filter { $0 != .window && $0 != .settings }
    }

    init(_ role: Http2Session.Role) { self.role = role }

    func ask(_ request: HttpRequest, _ options: HeadEncoder.RequestOptions, host: String? = nil) -> TestStream {
        var options = options
        if let host { options.host = host }
        let stream = TestStream(session: session)
        stream.method = request.method
        streams.append(stream)
        var request = request
        let isSent = session.submit(
            &request, options, hasContent: !request.content.isEmpty, on: stream, isSecure: false)
        #expect(isSent)
        return stream
    }

    func makeStream() -> Http2Stream {
        let stream = TestStream(session: session)
        streams.append(stream)
        return stream
    }

    func streamClosed(_ stream: Http2Stream) {}
    func wantsToSend() {}
    func write(_ bytes: UnsafeRawBufferPointer) { output.append(contentsOf: bytes) }
    var isOutputFull: Bool { false }
    var limits = HeadLimits()
    var rules: Http2HeadDecoder.Rules { Http2HeadDecoder.Rules(limits: limits) }
    var now: Int64 { 0 }
    func settingsReceived() {}
    func goAwayReceived() {}
}

/// A stream of either side that keeps what it is told.
final class TestStream: Http2Stream {
    var method = HttpMethod.get
    var request: HttpRequest?
    var response: HttpResponse?
    var interim: [HttpStatus] = []
    var content: [UInt8] = []
    var trailers: HttpFields?
    var refusal: GatewayError?
    var error: GatewayError?
    var hasEnded = false
    var code: UInt32?

    func write(bytes text: String) { Array(text.utf8).withUnsafeBytes { write($0) } }

    func answer(_ response: HttpResponse, content: String) { answer(response, bytes: Array(content.utf8)) }

    /// A short answer 200 whose request may be taken to its end.
    func succeed() {
        takesRest = true
        answer(HttpResponse(.ok), content: "yes")
    }

    func answer(_ response: HttpResponse, bytes: [UInt8]) {
        var options = HeadEncoder.ResponseOptions()
        options.framing = .length(bytes.count)
        var response = response
        session.submit(&response, options, hasContent: !bytes.isEmpty, isLong: bytes.count > 1000, on: self)
        bytes.withUnsafeBytes { write($0) }
        end(nil)
    }

    override func requestReceived(_ request: inout HttpRequest, endsStream: Bool) { self.request = request }
    override func requestRefused(_ error: GatewayError, _ request: inout HttpRequest, isAnswered: Bool) {
        refusal = error
    }
    override var awaitedMethod: HttpMethod? { response == nil ? method : nil }
    override func responseReceived(_ response: inout HttpResponse, endsStream: Bool) {
        if response.status.isInterim { return interim.append(response.status) }
        self.response = response
        hasEnded = endsStream
    }
    override func contentReceived(_ bytes: UnsafeRawBufferPointer) { content.append(contentsOf: bytes) }
    override func endReceived(_ trailers: HttpFields?) {
        hasEnded = true
        self.trailers = trailers
    }
    override func broke(_ error: GatewayError) { self.error = error }
    override func closed(_ code: UInt32) { self.code = code }
}
