import Testing

@testable import HttpWare

/// RFC 9112 §3–§6: heads as they go out.
@Suite struct HeadEncoderTests {
    private func request(_ lines: String = "", _ start: String = "GET /a?b HTTP/1.1") -> HttpRequest {
        Feeding.request(Wire("\(start)\r\nHost: h\r\n\(lines)\r\n")).request
    }

    private func text(_ request: HttpRequest, _ options: HeadEncoder.RequestOptions = .init()) -> String {
        Feeding.text(Feeding.encode(request, options))
    }

    private func text(_ response: HttpResponse, _ options: HeadEncoder.ResponseOptions = .init()) -> String {
        Feeding.text(Feeding.encode(response, options))
    }

    @Test(arguments: [
        0, 1, 9, 10, 99, 100, 12_345, 999_999_999, 1_000_000_000, 999_999_999_999_999_999, 1_000_000_000_000_000_000,
        .max,
    ])
    func `numbers are written in decimal and hexadecimal digits`(number: Int) {
        #expect(Feeding.text(Feeding.encode { $0.write(number) }) == String(number))
        #expect(Feeding.text(Feeding.encode { $0.write(hex: number) }) == String(number, radix: 16))
    }

    @Test func `a reason phrase goes out with its bytes`() {
        var response = HttpResponse(.ok)
        response.reason = Array("Caf".utf8) + [0xe9]
        #expect(Feeding.encode(response, .init()).starts(with: Array("HTTP/1.1 200 Caf".utf8) + [0xe9, 0x0d, 0x0a]))
        #expect(response.receivedReason == "Caf\u{e9}")
        response.receivedReason = "a\r\nb"
        #expect(Feeding.text(Feeding.encode(response, .init())).hasPrefix("HTTP/1.1 200 ab\r\n"))
    }

    @Test func `a head that does not fit is reported, and nothing is written behind the buffer`() throws {
        var options = HeadEncoder.RequestOptions(framing: .length(.max), closes: true, via: .http11)
        options.defaults = [try FieldLine("X-Default", "d")]
        var request = request("X: y\r\nZ:w\r\n")
        let whole = Feeding.encode(request, options)
        for room in 1...whole.count + 3 {
            let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: room + 8, alignment: 8)
            defer { memory.deallocate() }
            memory.initializeMemory(as: UInt8.self, repeating: 0xaa)
            var encoder = HeadEncoder(UnsafeMutableRawBufferPointer(rebasing: memory[..<room]))
            encoder.write(&request, options)
            #expect(encoder.isOverflown == (room < whole.count))
            #expect(encoder.count <= room)
            #expect(memory[room...].allSatisfy { $0 == 0xaa })
            if !encoder.isOverflown { #expect(Array(memory[..<encoder.count]) == whole) }
        }
    }

    @Test func `neighbours are copied, and what is between them left out`() throws {
        var request = request("A: 1\r\nB: 2\r\nC:3\r\nKeep-Alive: x\r\nD: 4\r\nE: 5 \r\nF: 6\r\n")
        #expect(text(request) == "GET /a?b HTTP/1.1\r\nHost: h\r\nA: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\nE: 5\r\nF: 6\r\n\r\n")
        request.fields.remove("B")
        request.fields.remove("F")
        try request.fields.append("G", "7")
        try request.fields.set("A", to: "8")
        #expect(text(request) == "GET /a?b HTTP/1.1\r\nHost: h\r\nC: 3\r\nD: 4\r\nE: 5\r\nG: 7\r\nA: 8\r\n\r\n")
        for name in ["Host", "C", "D", "E", "G", "A"] as [FieldName] { request.fields.remove(name) }
        #expect(text(request, .init(host: "x")) == "GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n")
    }

    @Test func `whatever wares write about framing and connection, one framing goes out`() throws {
        // RFC 9112 §6.1: "MUST NOT send a Content-Length header field in any message that contains a Transfer-Encoding".
        var request = request()
        var response = HttpResponse(.ok)
        for name in [
            "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "TE", "Keep-Alive", "Proxy-Connection",
        ] as [FieldName] {
            try request.fields.append(name, "chunked")
            try response.fields.append(name, "99")
        }
        #expect(
            text(request, .init(framing: .chunked))
                == "GET /a?b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
        #expect(
            text(request, .init(framing: .length(7))) == "GET /a?b HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\n\r\n")
        #expect(text(response, .init(framing: .length(7))) == "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n")
        #expect(
            text(response, .init(framing: .untilClose, closes: true)) == "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
    }

    @Test(arguments: [
        ("", ""), ("5", "Content-Length: 5\r\n"), ("5, 5", "Content-Length: 5\r\n"), ("x", ""), ("5\u{e9}", ""),
        ("-1", ""),
    ])
    func `a length as given is a length or not there`(value: String, line: String) throws {
        var response = HttpResponse(.notModified)
        try response.fields.append(.contentLength, value)
        #expect(text(response, .init(framing: .asGiven)) == "HTTP/1.1 304 Not Modified\r\n\(line)\r\n")
    }

    @Test func `the framing alone says where the content ends, whatever the fields say`() {
        let response = HttpResponse(.ok, fields: ["Content-Length": "5", "Transfer-Encoding": "chunked"])
        for (framing, line) in [
            (ContentFraming.none, ""), (.length(7), "Content-Length: 7\r\n"), (.untilClose, ""),
            (.chunked, "Transfer-Encoding: chunked\r\n"), (.announced(7), "Content-Length: 7\r\n"),
            (.asGiven, "Content-Length: 5\r\n"),
        ] {
            #expect(text(response, .init(framing: framing)) == "HTTP/1.1 200 OK\r\n\(line)\r\n")
            let request = request("Content-Length: 5\r\n", "POST / HTTP/1.1")
            #expect(text(request, .init(framing: framing)) == "POST / HTTP/1.1\r\nHost: h\r\n\(line)\r\n")
        }
    }

    @Test func `every request has one Host`() throws {
        // RFC 9112 §3.2.
        #expect(text(request(), .init(host: "other:8")) == "GET /a?b HTTP/1.1\r\nHost: other:8\r\n\r\n")
        #expect(text(try HttpRequest(.get, "http://a:1/")) == "GET / HTTP/1.1\r\nHost: a:1\r\n\r\n")
        #expect(text(try HttpRequest(.get, "/")) == "GET / HTTP/1.1\r\nHost: \r\n\r\n")
    }

    @Test(arguments: ["*", "http://a"])
    func `OPTIONS for a whole server has no path, whatever the service's base path is`(target: String) throws {
        // RFC 9112 §3.2.4.
        let request = try HttpRequest(.options, target)
        #expect(!request.hasPath)
        #expect(text(request, .init(host: "h", basePath: "/base")) == "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n")
    }

    @Test func `the service's base path stands before the path`() throws {
        let request = try HttpRequest(.get, "/a?b")
        #expect(request.hasPath)
        #expect(text(request, .init(host: "h", basePath: "/base")) == "GET /base/a?b HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(try !HttpRequest(.connect, "a:1").hasPath)
    }

    @Test func `defaults are added where they are absent, and never for framing`() throws {
        let defaults = [
            try FieldLine("x-a", "default"), try FieldLine("X-B", "default"), try FieldLine("Content-Length", "9"),
            try FieldLine("Connection", "close"), try FieldLine("Host", "evil"),
        ]
        let options = HeadEncoder.RequestOptions(host: "h", defaults: defaults)
        #expect(
            text(request("X-A: own\r\n"), options) == "GET /a?b HTTP/1.1\r\nHost: h\r\nX-A: own\r\nX-B: default\r\n\r\n"
        )
    }

    @Test func `Connection says what the connection needs`() {
        // RFC 9110 §7.6.1.
        let plain = request()
        let trailers = request("TE: trailers\r\n")
        let start = "GET /a?b HTTP/1.1\r\nHost: h\r\n"
        #expect(text(plain, .init(closes: true)) == start + "Connection: close\r\n\r\n")
        #expect(text(trailers) == start + "TE: trailers\r\nConnection: TE\r\n\r\n")
        #expect(text(trailers, .init(closes: true)) == start + "TE: trailers\r\nConnection: close, TE\r\n\r\n")
        #expect(text(plain, .init(upgrade: "websocket")) == start + "Connection: upgrade\r\nUpgrade: websocket\r\n\r\n")
        #expect(
            text(plain, .init(closes: true, upgrade: "x")) == start + "Connection: upgrade, close\r\nUpgrade: x\r\n\r\n"
        )
        #expect(text(plain, .init(via: .http10)) == start + "Via: 1.0 httpware\r\n\r\n")
        #expect(
            text(HttpResponse(.ok), .init(keepsAlive10: true)) == "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n")
        #expect(text(HttpResponse(.ok), .init(via: .http2)) == "HTTP/1.1 200 OK\r\nVia: 2 httpware\r\n\r\n")
    }

    @Test func `Date is added where it is absent`() {
        // RFC 9110 §6.6.1.
        Array("now".utf8).withUnsafeBytes { now in
            #expect(text(HttpResponse(.ok), .init(date: now)) == "HTTP/1.1 200 OK\r\nDate: now\r\n\r\n")
            #expect(
                text(HttpResponse(.ok, fields: ["date": "then"]), .init(date: now))
                    == "HTTP/1.1 200 OK\r\ndate: then\r\n\r\n")
        }
    }

}
