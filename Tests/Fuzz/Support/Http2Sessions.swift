@testable import HttpWare

extension Fuzzing {
    /// Bytes that a client sends behind its preface are understood the same however they come; a request goes upstream
    /// unambiguous.
    public static func http2Server(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, wire) = input(start, count) else { return }
        let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
        http2(choice, preface + (choice & 4 != 0 ? framed(wire) : wire), .server) { _ in }
    }

    /// Bytes of an origin server are understood the same however they come.
    public static func http2Client(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, wire) = input(start, count) else { return }
        http2(choice, choice & 4 != 0 ? framed(wire) : wire, .client) { end in
            for method in [HttpMethod.get, .head, .post] { end.ask(method) }
        }
    }

    private static func http2(
        _ choice: Int, _ wire: [UInt8], _ role: Http2Session.Role, _ prepare: (Http2End) -> Void
    ) {
        func run(_ ends: [Int], answers: Bool) -> Http2End {
            let end = Http2End(role, limits(choice), answers: answers)
            prepare(end)
            end.session.send()
            var start = 0
            for next in ends where next > start {
                guard wire[start..<next].withUnsafeBytes({ end.session.receive($0) }) else { break }
                // Sent later: what was sent changes what is taken.
                if answers { end.session.send() }
                require(end.session.streams.count <= Int(Http2Session.mostStreams), "too many streams")
                start = next
            }
            end.session.send()
            require(end.outputCount <= 65_536 + 64 * wire.count, "\(end.outputCount) bytes for \(wire.count)")
            end.session.closeStreams()
            return end
        }
        let whole = run([wire.count], answers: false)
        let byByte = run(Array(0...wire.count), answers: false)
        // Behind a GOAWAY, without streams, libnghttp2 takes no more than what came in one piece with it.
        require(
            whole.transcript == byByte.transcript || whole.isGoingAway,
            "whole: \(whole.transcript)\nbyte by byte: \(byByte.transcript)")
        _ = run(Array(stride(from: 0, to: wire.count, by: choice / 8 + 1)) + [wire.count], answers: true)
    }

    /// Frames whose lengths are right: each from four bytes, which say length, type, flags and stream, and its payload.
    private static func framed(_ bytes: [UInt8]) -> [UInt8] {
        var frames: [UInt8] = []
        var rest = bytes[...]
        while rest.count >= 4 {
            let head = Array(rest.prefix(4))
            rest = rest.dropFirst(4)
            let payload = rest.prefix(Int(head[0]))
            rest = rest.dropFirst(payload.count)
            frames += [0, 0, UInt8(payload.count), head[1], head[2], 0, 0, 0, head[3]] + payload
        }
        return frames + rest
    }
}

/// One end of a connection that the input is the other end of.
private final class Http2End: Http2SessionHandler {
    private(set) lazy var session = Http2Session(role, handler: self)
    private let role: Http2Session.Role
    private let limits: HeadLimits
    /// Requests are answered, and every other stream is paused for a while.
    let answers: Bool
    private var all: [Http2Told] = []
    private(set) var outputCount = 0
    private(set) var isGoingAway = false

    init(_ role: Http2Session.Role, _ limits: HeadLimits, answers: Bool) {
        self.role = role
        self.limits = limits
        self.answers = answers
    }

    var transcript: String {
        all.map(\.transcript).joined(separator: "\n") + "\n\(session.isTerminating) \(session.isOver)"
    }

    func ask(_ method: HttpMethod) {
        guard var request = try? HttpRequest(method, "/") else { return }
        if method == .post { request.content = HttpContent(extent: .length(4)) }
        var options = HeadEncoder.RequestOptions()
        options.host = "x"
        let stream = told(method)
        guard session.submit(&request, options, hasContent: method == .post, on: stream, isSecure: false) else {
            return
        }
        if method == .post { ([1, 2, 3, 4] as [UInt8]).withUnsafeBytes { stream.write($0) } }
    }

    private func told(_ method: HttpMethod) -> Http2Told {
        let stream = Http2Told(session: session, method, answers: answers)
        all.append(stream)
        return stream
    }

    func makeStream() -> Http2Stream { told(.get) }
    func streamClosed(_ stream: Http2Stream) {}
    func wantsToSend() {}
    func write(_ bytes: UnsafeRawBufferPointer) { outputCount += bytes.count }
    var isOutputFull: Bool { false }
    var rules: Http2HeadDecoder.Rules { Http2HeadDecoder.Rules(limits: limits) }
    var now: Int64 { 0 }
    func settingsReceived() {}
    func goAwayReceived() { isGoingAway = true }
}

/// A stream that keeps what it is told.
private final class Http2Told: Http2Stream {
    private let method: HttpMethod
    private let answers: Bool
    private var heads: [String] = []
    private var content: [UInt8] = []
    private var hasFinal = false
    private var isBroken = false

    init(session: Http2Session, _ method: HttpMethod, answers: Bool) {
        self.method = method
        self.answers = answers
        super.init(session: session)
    }

    /// Content in front of a fault comes or does not, as the pieces fell.
    var transcript: String { "\(heads) \(isBroken ? [] : content)" }

    private func note(_ text: String) { if !isBroken { heads.append(text) } }

    override func requestReceived(_ request: inout HttpRequest, endsStream: Bool) {
        if request.upgrade != nil {
            Fuzzing.require(request.fields["Sec-WebSocket-Key"]?.utf8.count == 24, "no key")
            request.fields.remove("Sec-WebSocket-Key" as FieldName)
        }
        note("\(request.method) \(request.receivedTarget) \(request.content.extent) \(request.fields) \(endsStream)")
        if request.target.form != .authority {
            let (framings, hosts) = Fuzzing.checkHead(Fuzzing.encode(request))
            Fuzzing.require(hosts == 1, "not one Host in \(request.fields)")
            Fuzzing.require(framings == 1 || request.content.isEmpty, "no framing in \(request.fields)")
        }
        if answers { answer() }
    }

    override func requestRefused(_ error: GatewayError, _ request: inout HttpRequest, isAnswered: Bool) {
        note("\(error)")
        if answers { answer() }
    }

    private func answer() {
        if id % 4 == 1 { pauseInput() }
        var options = HeadEncoder.ResponseOptions()
        options.framing = .length(3)
        var response = HttpResponse(.ok)
        session.submit(&response, options, hasContent: true, isLong: false, on: self)
        ([1, 2, 3] as [UInt8]).withUnsafeBytes { write($0) }
        if id % 8 != 3 { end(nil) }
    }

    override var awaitedMethod: HttpMethod? { hasFinal ? nil : method }

    override func responseReceived(_ response: inout HttpResponse, endsStream: Bool) {
        note("\(response.status) \(response.content.extent) \(response.fields) \(endsStream)")
        hasFinal = !response.status.isInterim
        var options = HeadEncoder.ResponseOptions()
        options.framing = .asGiven
        _ = Fuzzing.checkHead(Fuzzing.encode { $0.write(&response, options) })
    }

    override func contentReceived(_ bytes: UnsafeRawBufferPointer) {
        content += bytes
        if answers, content.count > 64 { isInputPaused ? resumeInput() : session.cancel(self) }
    }

    override func endReceived(_ trailers: HttpFields?) { note("end \(trailers.map { "\($0)" } ?? "-")") }

    override func broke(_ error: GatewayError) {
        note("broke")
        isBroken = true
    }

    override func closed(_ code: UInt32) { note("closed \(code)") }
}
