import Testing

@testable import HttpWare

/// RFC 9112 §7.1: the chunked transfer coding.
@Suite struct ChunkedDecoderTests {
    @Test(arguments: [
        ("0\r\n\r\n", "", "", 0), ("5\r\nhello\r\n0\r\n\r\n", "hello", "", 0),
        ("1\r\na\r\n2\r\nbc\r\n0\r\n\r\nGET", "abc", "", 3),
        ("A\r\n0123456789\r\n0\r\n\r\n", "0123456789", "", 0), ("a\r\n0123456789\r\n000\r\n\r\n", "0123456789", "", 0),
        ("0000000000000001\r\na\r\n0\r\n\r\n", "a", "", 0), ("1;x\r\na\r\n0;y=z\r\n\r\n", "a", "", 0),
        ("1 ;x\r\na\r\n0\r\n\r\n", "a", "", 0), ("1\t ; x = \"y\"\r\na\r\n0\r\n\r\n", "a", "", 0),
        ("2\r\n\r\n\r\n0\r\n\r\n", "\r\n", "", 0),
        ("0\r\nX: y\r\n\r\nGET", "", "X: y", 3), ("0\r\nX: y\r\nZ:w \r\n\r\n\r\n", "", "X: y\nZ: w", 2),
    ])
    func `content ends where its last chunk says`(text: String, content: String, trailers: String, rest: Int) {
        #expect(Feeding.chunks(Wire(text)) == .end(Array(content.utf8), trailers: trailers, rest: rest))
    }

    @Test(arguments: [
        "+1\r\na\r\n", "-1\r\na\r\n", "0x1\r\na\r\n", "\r\n", "g\r\n", " 1\r\na\r\n", "1 \r\na\r\n", "1\t\r\na\r\n",
        "1,\r\na\r\n",
        "1\n", "1\r1", "1\u{0}\r\n", "1 1\r\n", "1 x\r\n", ";x\r\n", "1=\r\n", "1.0\r\n", "1_0\r\n",
        "00000000000000000000x1\r\n", "00000000000000000000 1\r\n",
    ])
    func `a size that is not a hexadecimal number is refused`(text: String) {
        guard case .refused(let fault) = Feeding.chunks(Wire(text)) else {
            Issue.record("was not refused")
            return
        }
        #expect(fault == .size || fault == .lineEnd)
    }

    @Test(arguments: [1, 15, 16, 17, 20, 64, 255, 256])
    func `a size may begin with zeros, up to 256 digits, RFC 9112 §7.1`(count: Int) {
        let (zeros, more) = (String(repeating: "0", count: count), String(repeating: "0", count: count - 1))
        #expect(Feeding.chunks(Wire("\(more)1\r\na\r\n\(zeros)\r\n\r\nGET")) == .end([0x61], trailers: "", rest: 3))
        #expect(
            Feeding.chunks(Wire("\(more)1;x\r\na\r\n\(zeros);y\r\nX: y\r\n\r\n"))
                == .end([0x61], trailers: "X: y", rest: 0))
    }

    @Test(arguments: [257, 1000, 100_000])
    func `a size of more than 256 digits is refused with that number`(count: Int) {
        let zeros = String(repeating: "0", count: count)
        #expect(Feeding.chunks(Wire(zeros + "\r\n\r\n")) == .refused(.sizeDigits))
        let refusal = ChunkedFault.sizeDigits.inRequest(HeadLimits())
        #expect(refusal == .malformed("a chunk size has more than 256 digits"))
    }

    @Test(arguments: [
        "10000000000000000", "8000000000000000", "FFFFFFFFFFFFFFFF", "FFFFFFFFFFFFFFFFF", "123456789ABCDEF01",
    ])
    func `a size over 63 bits is refused, with zeros before it or without`(digits: String) {
        for zeros in [0, 1, 16, 200] {
            let size = String(repeating: "0", count: zeros) + digits
            #expect(Feeding.chunks(Wire(size + "\r\n")) == .refused(.sizeOverflow))
        }
    }

    @Test(arguments: ["1\r\nab\r\n", "1\r\na\n", "1\r\na\r0", "1\r\na0\r\n\r\n", "2\r\na\r\n0\r\n\r\n"])
    func `a chunk that does not end where its size says is refused`(text: String) {
        #expect(Feeding.chunks(Wire(text)) == .refused(.lineEnd))
    }

    @Test(arguments: ["1;a\nb\r\n", "1;\u{0}\r\n", "1;a\u{7f}\r\n", "1;\u{1b}\r\n"])
    func `an extension with a line feed or control character is refused`(text: String) {
        // RFC 9112 §7.1.1: a line that ends twice is how requests are smuggled.
        #expect(Feeding.chunks(Wire(text)) == .refused(.extension))
    }

    @Test func `extensions are limited over the whole content`() {
        let chunk = "1;\(String(repeating: "x", count: 1000))\r\na\r\n"
        #expect(Feeding.chunks(Wire(String(repeating: chunk, count: 20))) == .refused(.extensionBytes))
        #expect(Feeding.chunks(Wire("1" + String(repeating: " ", count: 20_000))) == .refused(.extensionBytes))
        #expect(
            ChunkedFault.extensionBytes.inResponse(HeadLimits())
                == .badResponse("the chunk extensions are larger than 16KiB together"))
    }

    @Test func `the largest size is read without a trap`() {
        #expect(Feeding.chunks("7FFFFFFFFFFFFFFF\r\nabc") == .needsMore(Array("abc".utf8)))
        let zeros = String(repeating: "0", count: 240)
        #expect(Feeding.chunks(Wire(zeros + "7FFFFFFFFFFFFFFF\r\nabc")) == .needsMore(Array("abc".utf8)))
    }

    @Test(arguments: [
        "0\r\nX : y\r\n\r\n", "0\r\n X: y\r\n\r\n", "0\r\nX: y\r\n z\r\n\r\n", "0\r\nX: y\n", "0\r\nX: y\n\r\n",
        "0\r\n\n", "0\r\n\rX",
        "0\r\n: y\r\n\r\n", "0\r\nnothing\r\n\r\n", "0\r\nX: \u{0}\r\n\r\n", "0\r\nX: y\r\n\rZ", "0\r\nX: a\rb\r\n\r\n",
        "0\r\n\(String(repeating: "X: y\r\n", count: 101))\r\n", "0\r\nX: \(String(repeating: "y", count: 70_000))",
    ])
    func `a malformed trailer section is refused as soon as that shows`(text: String) {
        // RFC 9112 §7.1.2.
        guard case .refused(.trailers) = Feeding.chunks(Wire(text)) else {
            Issue.record("it is not refused")
            return
        }
    }

    @Test(arguments: [
        "Content-Length", "Transfer-Encoding", "Host", "Trailer", "TE", "Connection", "Keep-Alive", "Proxy-Connection",
        "Upgrade",
        "Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", "WWW-Authenticate", "Proxy-Authenticate",
        "HTTP2-Settings",
        "Content-Type", "Content-Encoding", "Content-Range", "Cache-Control", "Expect", "Max-Forwards", "Range",
        "If-Match", "Age", "Date",
        "Expires", "Location", "Retry-After", "Vary", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host",
        "X-Forwarded-Proto", "Via",
        "X-Forwarded-Port", "X-Real-IP",
    ])
    func `trailers that name framing, routing or credentials are dropped`(name: String) {
        // RFC 9110 §6.5.1.
        for spelling in [name, name.lowercased(), name.uppercased()] {
            #expect(
                Feeding.chunks(Wire("0\r\nX-Sum: 1\r\n\(spelling): 2\r\n\r\n"))
                    == .end([], trailers: "X-Sum: 1", rest: 0))
        }
    }

    @Test(arguments: [
        ("X-Hop", "X-Sum: 1"), ("x-hOP", "X-Sum: 1"), ("X-Sum", "X-Hop: 2"), ("close, X-Hop, keep-alive", "X-Sum: 1"),
        ("X-Hop, X-Sum", ""), ("ETag", "X-Sum: 1\nX-Hop: 2"), ("close", "X-Sum: 1\nX-Hop: 2\nETag: 3"),
        ("X-Ho, X-Hops", "X-Sum: 1\nX-Hop: 2\nETag: 3"),
    ])
    func `trailers that Connection names are dropped`(connection: String, left: String) throws {
        // RFC 9110 §7.6.1: "remove any header or trailer field(s) from the message with the same name".
        var head = Array(
            "POST / HTTP/1.1\r\nHost: a\r\nConnection: \(connection)\r\nTransfer-Encoding: chunked\r\n\r\n".utf8)
        var request = HttpRequest()
        var decoder = RequestHeadDecoder()
        let length = try decoder.decode(head.span.bytes, into: &request, limits: HeadLimits(), isReverse: true)
        #expect(length == head.count)
        var chunks = ChunkedDecoder(limits: HeadLimits(), nominated: request.fields.nominated)
        head = Array(
            "0\r\nX-Sum: 1\r\nX-Hop: 2\r\n\(connection.contains("ETag") || left.contains("ETag") ? "ETag: 3\r\n" : "")\r\n"
                .utf8)
        var position = 0
        #expect(try chunks.next(head.span.bytes, from: &position) == .end(head.count))
        #expect(chunks.trailers.description == left)
        #expect(chunks.trailers.received.count == left.split(separator: "\n").count)
    }

    @Test func `a dropped trailer does not come back as received`() throws {
        var decoder = ChunkedDecoder(limits: HeadLimits())
        let bytes = Array("0\r\nHost: a\r\nX: y\r\n\r\n".utf8)
        var position = 0
        #expect(try decoder.next(bytes.span.bytes, from: &position) == .end(bytes.count))
        #expect(decoder.trailers.received.map(\.name) == ["X"])
        #expect(
            Feeding.text(Feeding.encode { ChunkWriter.writeLast(decoder.trailers, to: &$0) }) == "0\r\nX: y\r\n\r\n")
    }

    @Test func `a trailer section is bounded as a head is`() {
        let section = "X: yyyy\r\n\r\n"
        for (head, isRead) in [(0, false), (1, false), (10, false), (11, true), (12, true), (Int.max, true)] {
            var limits = HeadLimits()
            limits.head = head
            let outcome = Feeding.chunks(Wire("0\r\n" + section + "GET"), limits: limits)
            #expect(
                outcome == (isRead ? .end([], trailers: "X: yyyy", rest: 3) : .refused(.trailers(.tooLarge))), "\(head)"
            )
        }
    }

    @Test func `trailers over a limit are refused with the limit, its value and its key`() {
        var limits = HeadLimits()
        limits.head = 1024
        limits.fieldLines = 5
        for (section, size) in [
            ("X: \(String(repeating: "y", count: 2000))\r\n\r\n", "is larger than 1KiB, the limit in KEY.head"),
            (
                String(repeating: "X: y\r\n", count: 6) + "\r\n",
                "has more than 5 field lines, the limit in KEY.fieldLines"
            ),
        ] {
            guard case .refused(let fault) = Feeding.chunks(Wire("0\r\n" + section), limits: limits) else {
                Issue.record("it is not refused")
                continue
            }
            for (error, kind, key) in [
                (fault.inRequest(limits), GatewayError.Fault.requestHeadTooLarge, "limits"),
                (fault.inResponse(limits), .responseHeadTooLarge, "limits.response"),
            ] {
                #expect(error.fault == kind)
                #expect(error.reason == "the trailer section " + size.replacing("KEY", with: key))
            }
        }
    }

    @Test func `a malformed line of trailers is named`() {
        #expect(ChunkedFault.trailers(.noColon).inRequest(HeadLimits()) == .malformed("a field line has no colon"))
    }

    @Test func `the end is said again when asked again`() throws {
        var decoder = ChunkedDecoder(limits: HeadLimits())
        let bytes = Array("0\r\n\r\nGET".utf8)
        var position = 0
        #expect(try decoder.next(bytes.span.bytes, from: &position) == .end(5))
        #expect(try decoder.next(bytes.span.bytes, from: &position) == .end(5))
    }

    @Test func `a hundred thousand one-byte chunks cost linear time`() {
        let bytes = Array((String(repeating: "1\r\na\r\n", count: 100_000) + "0\r\n\r\n").utf8)
        let time = processorTime {
            #expect(
                Feeding.chunks(bytes, endingAt: [bytes.count])
                    == .end(Array(repeating: 0x61, count: 100_000), trailers: "", rest: 0))
        }
        #expect(time < .seconds(3))
    }

    @Test(arguments: 1...60)
    func `content that was chunked at random is the same again, however it is cut`(seed: UInt64) {
        var random = Seeded(seed)
        var content: [UInt8] = []
        var wire: [UInt8] = []
        for _ in 0..<Int.random(in: 0...8, using: &random) {
            let chunk = (0..<Int.random(in: 1...40, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            content += chunk
            wire += Feeding.encode { ChunkWriter.writeHead(of: chunk.count, to: &$0) } + chunk + ChunkWriter.end
        }
        let hasTrailer = Bool.random(using: &random)
        let trailers: HttpFields = hasTrailer ? ["X-Sum": "abc"] : [:]
        wire += Feeding.encode { ChunkWriter.writeLast(trailers, to: &$0) }
        let rest = Int.random(in: 0...5, using: &random)
        wire += Array(repeating: 0x47, count: rest)
        let expected = Feeding.Chunks.end(content, trailers: hasTrailer ? "X-Sum: abc" : "", rest: rest)
        #expect(Feeding.chunks(Wire(wire)) == expected)
        for _ in 0..<20 {
            var ends = (0..<6).map { _ in Int.random(in: 0...wire.count, using: &random) }.sorted()
            ends.append(wire.count)
            #expect(Feeding.chunks(wire, endingAt: ends) == expected)
        }
    }
}
