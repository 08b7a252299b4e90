import Testing

@testable import HttpWare

/// Guarantees for an exchange, in every version that its stream speaks.
@Suite struct UpstreamStreamTests {
    enum Version: CaseIterable, Sendable { case http1, http2 }

    /// A stream with its origin server.
    private final class Stage {
        let hand: HandTurnedLoop
        let version: Version
        let stream: any UpstreamStream
        let response = RecordingResponse()
        private let origin: UnixOrigin
        private let endpoint: Endpoint
        private let socket: FarEnd
        private let far: FarHttp2?
        private var isChunked = false

        init(_ version: Version) throws {
            self.version = version
            hand = try HandTurnedLoop()
            origin = try UnixOrigin()
            endpoint = Endpoint(host: "a.test", port: 80, speaks: version == .http2 ? .h2 : .h1)
                .fixed(at: [origin.address])
            let waiter = RecordingWaiter()
            _ = hand.transport.connect(to: endpoint, need: .usual, timeout: .seconds(5), waiter: waiter)
            stream = try #require(waiter.stream)
            socket = try #require(origin.accept())
            far = version == .http2 ? FarHttp2(.server, socket, hand) : nil
            settle()
        }

        /// Lets both sides say all that they have to say.
        func settle() { if let far { far.talk() } else { hand.turn() } }

        /// Sends the head of a request. A response may take five seconds, and then pause for two.
        func send(_ method: HttpMethod = .get, extent: HttpContent.Extent = .none) throws {
            let exchange = Exchange(loop: hand.loop)
            exchange.heldRequest = try HttpRequest(method, "http://a.test/x", content: HttpContent(extent: extent))
            var options = HeadEncoder.RequestOptions(host: "a.test")
            if case .length(let length) = extent { options.framing = .length(length) }
            hand.transport.inEvent {
                stream.send(
                    requestOf: exchange, options, receiver: response, responseTimeout: 5_000_000_000,
                    idleTimeout: 2_000_000_000)
            }
            settle()
        }

        func upload(_ text: String, isLast: Bool = false) {
            hand.transport.inEvent {
                if !text.isEmpty { Array(text.utf8).withUnsafeBytes { stream.sendContent($0) } }
                if isLast { stream.sendEnd(nil) }
            }
            settle()
        }

        // The acts of the origin server.

        private var served: TestStream? { far?.end.streams.first }

        func interim() {
            if let far, let served {
                far.end.session.submitInterim(HttpResponse(.earlyHints), on: served)
            } else {
                socket.send("HTTP/1.1 103 Early Hints\r\n\r\n")
            }
            settle()
        }

        /// Sends a head; without a length, content of any length follows.
        func begin(_ status: HttpStatus = .ok, _ length: Int? = nil) {
            isChunked = length == nil
            if let far, let served {
                var response = HttpResponse(status)
                far.end.session.submit(
                    &response, HeadEncoder.ResponseOptions(framing: length.map { .length($0) } ?? .chunked),
                    hasContent: true, isLong: true, on: served)
            } else {
                let framing = length.map { "Content-Length: \($0)" } ?? "Transfer-Encoding: chunked"
                socket.send("HTTP/1.1 \(status.code) X\r\n\(framing)\r\n\r\n")
            }
            settle()
        }

        func send(_ text: String) {
            if let served {
                served.write(bytes: text)
            } else {
                socket.send(isChunked ? "\(String(text.utf8.count, radix: 16))\r\n\(text)\r\n" : text)
            }
            settle()
        }

        /// Ends the content, where its length does not.
        func end(trailer: String? = nil) throws {
            if let served {
                var trailers = HttpFields()
                if let trailer { try trailers.set("X-Sum", to: trailer) }
                served.end(trailer == nil ? nil : trailers)
            } else if isChunked {
                socket.send("0\r\n" + (trailer.map { "X-Sum: \($0)\r\n" } ?? "") + "\r\n")
            }
            settle()
        }

        /// Sends a whole response in one write.
        func respond(_ text: String) {
            if let far, let served {
                var response = HttpResponse(.ok)
                far.end.session.submit(
                    &response, HeadEncoder.ResponseOptions(framing: .length(text.utf8.count)),
                    hasContent: true, isLong: true, on: served)
                served.write(bytes: text)
                served.end(nil)
            } else {
                socket.send("HTTP/1.1 200 X\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)")
            }
            settle()
        }

        /// Ends the stream in the middle.
        func breakOff() {
            if let far {
                far.send(frame: 3, stream: 1, [0, 0, 0, 2])
            } else {
                socket.close()
            }
            hand.turn()
        }

        /// Whether the origin server knows that the response is not wanted any more.
        var isGivenUp: Bool {
            settle()
            if let served { return served.code != nil && served.code != 0 }
            _ = socket.read()
            return socket.isEnded
        }

        /// The request's content, as far as the origin server has it.
        var arrived: String {
            if let served { return String(decoding: served.content, as: UTF8.self) }
            return String(
                socket.readTexts().joined().split(separator: "\r\n\r\n", maxSplits: 1).dropFirst().first ?? "")
        }

        /// Whether a further request goes over the same connection.
        func isConnectionKept() -> Bool {
            let waiter = RecordingWaiter()
            _ = hand.transport.connect(to: endpoint, need: .usual, timeout: .seconds(5), waiter: waiter)
            return waiter.stream != nil && hand.transport.connects == 1
        }
    }

    @Test(arguments: Version.allCases)
    func `surplus interim responses are dropped, and the final one arrives`(version: Version) throws {
        let stage = try Stage(version)
        try stage.send()
        for _ in 0..<(Http1UpstreamConnection.mostInterim + 20) { stage.interim() }
        #expect(stage.response.interim.count == Http1UpstreamConnection.mostInterim)
        stage.respond("whole")
        #expect(stage.response.head?.status == .ok && stage.response.text == "whole" && stage.response.ends == 1)
        #expect(stage.response.error == nil)
    }

    @Test(arguments: Version.allCases)
    func `surplus interim responses do not extend the time until the final one`(version: Version) throws {
        let stage = try Stage(version)
        try stage.send()
        for _ in 0..<Http1UpstreamConnection.mostInterim { stage.interim() }
        for _ in 0..<4 {
            stage.hand.advance(by: .seconds(2))
            stage.interim()
        }
        #expect(stage.response.error?.fault == .responseTimeout)
    }

    @Test(arguments: Version.allCases)
    func `a response is told in order: interim, head, content, trailers, one end`(version: Version) throws {
        let stage = try Stage(version)
        try stage.send(.post, extent: .length(5))
        stage.upload("hello", isLast: true)
        #expect(stage.arrived == "hello")
        stage.interim()
        #expect(stage.response.interim == [103] && stage.response.head == nil)
        stage.begin()
        #expect(stage.response.head?.status == .ok)
        stage.send("wor")
        stage.send("ld")
        #expect(stage.response.text == "world" && stage.response.ends == 0)
        try stage.end(trailer: "5")
        #expect(stage.response.ends == 1 && stage.response.error == nil)
        #expect(stage.response.trailers?["X-Sum"] == "5")
        #expect(stage.isConnectionKept())
    }

    @Test(arguments: Version.allCases)
    func `a response that ends before its request is told whole, and the rest of the request goes nowhere`(
        version: Version
    ) throws {
        let stage = try Stage(version)
        try stage.send(.post, extent: .length(10))
        stage.upload("hello")
        #expect(stage.arrived == "hello")
        stage.begin(.contentTooLarge, 2)
        stage.send("no")
        try stage.end()
        #expect(stage.response.head?.status == .contentTooLarge && stage.response.text == "no")
        #expect(stage.response.ends == 1 && stage.response.error == nil)
        stage.upload("world", isLast: true)
        #expect(!stage.arrived.contains("world"))
        #expect(stage.response.ends == 1 && stage.response.error == nil)
        // Only HTTP/2 can end one request without the connection. RFC 9113 §8.1.
        #expect(stage.isConnectionKept() == (version == .http2))
    }

    @Test(arguments: Version.allCases)
    func `a stream that breaks without a response may be tried again`(version: Version) throws {
        let stage = try Stage(version)
        try stage.send()
        stage.breakOff()
        #expect(stage.response.error?.mayRetry == true && stage.response.error?.side == .upstream)
        #expect(stage.response.ends == 0 && stage.response.head == nil)
    }

    @Test(arguments: Version.allCases)
    func `a stream that breaks inside the response is incomplete, and is not tried again`(version: Version) throws {
        let stage = try Stage(version)
        try stage.send()
        stage.begin(.ok, 10)
        stage.send("some")
        stage.breakOff()
        #expect(stage.response.text == "some" && stage.response.ends == 0)
        #expect(stage.response.error?.fault == .responseIncomplete && stage.response.error?.mayRetry == false)
    }

    @Test(arguments: Version.allCases)
    func `a request that is cancelled hears nothing more, and the origin server is told`(version: Version) throws {
        let stage = try Stage(version)
        try stage.send(.post, extent: .length(10))
        stage.upload("hello")
        stage.stream.cancel()
        #expect(stage.isGivenUp)
        stage.begin(.ok, 2)
        stage.send("ok")
        stage.upload("world", isLast: true)
        stage.hand.advance(by: .seconds(60))
        #expect(stage.response.head == nil && stage.response.ends == 0 && stage.response.error == nil)
        #expect(stage.response.drains == 0)
    }

    @Test(arguments: Version.allCases)
    func `a paused stream tells no content and no end until it is resumed`(version: Version) throws {
        let stage = try Stage(version)
        try stage.send()
        stage.begin()
        stage.stream.pause()
        stage.send("wor")
        stage.send("ld")
        try stage.end()
        #expect(stage.response.content.isEmpty && stage.response.ends == 0)
        // As long as the client is the reason, no time counts.
        for _ in 0..<3 { stage.hand.advance(by: .seconds(2)) }
        #expect(stage.response.error == nil)
        stage.stream.resume()
        stage.settle()
        #expect(stage.response.text == "world" && stage.response.ends == 1)
    }

    @Test(arguments: Version.allCases)
    func `a stream that is paused at the head keeps the content that came with it`(version: Version) throws {
        let stage = try Stage(version)
        try stage.send()
        stage.response.whenStarted = { [unowned stage] in stage.stream.pause() }
        stage.respond("held")
        #expect(stage.response.head?.status == .ok)
        #expect(stage.response.content.isEmpty && stage.response.ends == 0)
        stage.stream.resume()
        stage.settle()
        #expect(stage.response.text == "held" && stage.response.ends == 1)
    }

    @Test(arguments: Version.allCases)
    func `a request without a response in time fails, and the origin server is told`(version: Version) throws {
        let stage = try Stage(version)
        try stage.send()
        stage.hand.advance(by: .milliseconds(4999))
        #expect(stage.response.error == nil)
        stage.hand.advance(by: .milliseconds(1))
        #expect(stage.response.error?.fault == .responseTimeout)
        #expect(stage.isGivenUp)
    }

    @Test(arguments: Version.allCases)
    func `a discarded response is read to its end without being told, and its connection is used again`(
        version: Version
    ) throws {
        let stage = try Stage(version)
        try stage.send()
        stage.begin(.ok, 10)
        stage.send("some")
        stage.stream.discard()
        stage.send("others")
        try stage.end()
        #expect(stage.response.text == "some" && stage.response.ends == 0 && stage.response.error == nil)
        #expect(!stage.isGivenUp)
        #expect(stage.isConnectionKept())
    }

    @Test func `a stream that only receives takes what it is sent without a word`() throws {
        final class Answer: ReceivingStream {
            let isReused = false
            let isBlocked = false
            func send(
                requestOf exchange: Exchange, _ options: HeadEncoder.RequestOptions, receiver: any ResponseReceiver,
                responseTimeout: Int64, idleTimeout: Int64
            ) {}
        }
        let (stream, response) = (Answer(), RecordingResponse())
        stream.startTunnel(receiver: response, idleTimeout: 1)
        Array("x".utf8).withUnsafeBytes { stream.sendTunnel($0) }
        stream.sendEnd(nil)
        stream.endTunnel()
        stream.cancel()
        #expect(!stream.isFinal && stream.relayTarget == nil)
        #expect(response.error == nil && response.ends == 0)
    }
}
