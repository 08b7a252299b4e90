import CNghttp2
import Testing

@testable import HttpWare

/// RFC 9113 §8: the lines of heads that are sent.
@Suite struct Http2LinesTests {
    /// The lines as text; `!` marks a line that must not enter the compression's table.
    private static func texts(_ lines: borrowing Http2Lines) -> [String] {
        var texts: [String] = []
        for place in 0..<lines.count {
            let line = lines.first[place]
            func text(_ start: UnsafeMutablePointer<UInt8>?, _ count: Int) -> String {
                String(decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
            }
            texts.append(
                "\(text(line.name, line.namelen)): \(text(line.value, line.valuelen))\(line.flags == 0 ? "" : " !")")
        }
        return texts
    }

    private func request(
        _ request: HttpRequest, isSecure: Bool = false, _ change: (inout HeadEncoder.RequestOptions) -> Void = { _ in }
    ) -> [String] {
        var lines = Http2Lines()
        var (request, options) = (request, HeadEncoder.RequestOptions())
        change(&options)
        var texts: [String] = []
        let result = lines.withRequest(&request, options, isSecure: isSecure) { lines in
            texts = Self.texts(lines)
            return 7
        }
        #expect(result == 7)
        return texts
    }

    private func response(
        _ response: HttpResponse, _ change: (inout HeadEncoder.ResponseOptions) -> Void = { _ in }
    ) -> [String] {
        var lines = Http2Lines()
        var (response, options) = (response, HeadEncoder.ResponseOptions())
        change(&options)
        var texts: [String] = []
        _ = lines.withResponse(&response, options) { lines in
            texts = Self.texts(lines)
            return 0
        }
        return texts
    }

    @Test func `a request begins with its pseudo-fields, and Host is the authority, §8_3_1`() throws {
        let asked = try HttpRequest(.get, "/a?b=c", fields: ["Host": "a.test:81", "X-Y": "z"])
        #expect(
            request(asked) == [":method: GET", ":scheme: http", ":authority: a.test:81", ":path: /a?b=c", "X-Y: z"])
        #expect(
            request(asked, isSecure: true) { $0.host = "b.test" }
                == [":method: GET", ":scheme: https", ":authority: b.test", ":path: /a?b=c", "X-Y: z"])
        #expect(request(try HttpRequest(.get, "/")) == [":method: GET", ":scheme: http", ":path: /"])
    }

    @Test(arguments: [
        ("/", "", "/"), ("/a", "", "/a"), ("/a?", "", "/a?"), ("/a?b", "", "/a?b"), ("/", "/base", "/base/"),
        ("/a", "/base", "/base/a"), ("/a?b", "/base", "/base/a?b"), ("/?b", "/base", "/base/?b"),
    ])
    func `the path follows the base path, with its query`(target: String, base: String, path: String) throws {
        let lines = request(try HttpRequest(.get, target)) { $0.basePath = base }
        #expect(lines.last == ":path: \(path)")
    }

    @Test func `an asterisk has no base path`() throws {
        #expect(request(try HttpRequest(.options, "*")) { $0.basePath = "/base" }.last == ":path: *")
    }

    @Test func `fields of a connection are not sent, §8_2_2`() throws {
        let fields: HttpFields = [
            "Connection": "x", "Keep-Alive": "1", "Proxy-Connection": "close", "Transfer-Encoding": "chunked",
            "Upgrade": "h2c", "TE": "gzip", "Content-Length": "9", "X-Y": "z",
        ]
        #expect(
            request(try HttpRequest(.get, "/", fields: fields)) == [
                ":method: GET", ":scheme: http", ":path: /", "X-Y: z",
            ])
        #expect(response(HttpResponse(.ok, fields: fields)) == [":status: 200", "X-Y: z"])
    }

    @Test func `credentials do not enter the table of the compression, RFC 7541 §7_1_3`() throws {
        let fields: HttpFields = ["Authorization": "Bearer a", "X-Y": "z", "Cookie": "a=b"]
        #expect(
            request(try HttpRequest(.get, "/", fields: fields)).suffix(3)
                == ["Authorization: Bearer a !", "X-Y: z", "Cookie: a=b"])
    }

    @Test func `default fields are added if they are missing`() throws {
        let defaults = try [FieldLine("X-A", "1"), FieldLine("X-B", ""), FieldLine("Connection", "close")]
        let lines = request(try HttpRequest(.get, "/", fields: ["x-a": "own"])) { $0.defaults = defaults }
        #expect(lines.dropFirst(3) == ["x-a: own", "X-B: "])
    }

    @Test(arguments: [
        (ContentFraming.none, nil as String?), (.chunked, nil), (.untilClose, nil), (.length(0), "0"),
        (.length(9), "9"),
        (.length(10), "10"), (.length(1234567), "1234567"), (.length(.max), "9223372036854775807"),
        (.announced(100), "100"), (.asGiven, "5"),
    ])
    func `the length is that of the framing`(framing: ContentFraming, length: String?) throws {
        let expected = length.map { ["content-length: \($0)"] } ?? []
        let given = HttpResponse(.ok, fields: ["Content-Length": "5"])
        #expect(response(given) { $0.framing = framing } == [":status: 200"] + expected)
        let asked = try HttpRequest(.post, "/", fields: ["Content-Length": "5"])
        #expect(request(asked) { $0.framing = framing }.dropFirst(3) == ArraySlice(expected))
    }

    @Test(arguments: [(HttpVersion.http10, "1.0"), (.http11, "1.1"), (.http2, "2")])
    func `Via names the version of the other side, and TE tells that trailers are accepted`(
        version: HttpVersion, number: String
    ) throws {
        var asked = try HttpRequest(.get, "/")
        asked.acceptsTrailers = true
        #expect(request(asked) { $0.via = version }.suffix(2) == ["via: \(number) httpware", "te: trailers"])
        #expect(response(HttpResponse(.ok)) { $0.via = version }.last == "via: \(number) httpware")
    }

    @Test func `an upgrade is a protocol of CONNECT, RFC 8441 §4`() throws {
        var asked = try HttpRequest(.get, "/chat", fields: ["Host": "a.test"])
        asked.method = .connect
        #expect(
            request(asked) { $0.upgrade = "websocket" } == [
                ":method: CONNECT", ":protocol: websocket", ":scheme: http", ":authority: a.test", ":path: /chat",
            ])
        asked.method = .get
        #expect(!request(asked) { $0.upgrade = "websocket" }.contains { $0.hasPrefix(":protocol") })
    }

    @Test func `a response gets a Date unless it has one`() throws {
        let date = Array("Thu, 01 Jan 2026 00:00:00 GMT".utf8)
        date.withUnsafeBytes { bytes in
            #expect(
                response(HttpResponse(.notFound)) { $0.date = bytes } == [
                    ":status: 404", "date: Thu, 01 Jan 2026 00:00:00 GMT",
                ])
            #expect(
                response(HttpResponse(.ok, fields: ["Date": "x"])) { $0.date = bytes } == [":status: 200", "Date: x"])
        }
    }

    @Test func `a head of any size has room, after a small one and before it`() throws {
        var lines = Http2Lines()
        for count in [1, 500, 3, 2000] {
            var response = HttpResponse(.ok)
            for place in 0..<count { try response.fields.append(#require(FieldName("x-\(place)")), "\(place)") }
            _ = lines.withResponse(&response, HeadEncoder.ResponseOptions()) { lines in
                #expect(Self.texts(lines) == [":status: 200"] + (0..<count).map { "x-\($0): \($0)" })
                return 0
            }
            var request = try HttpRequest(.get, "/" + String(repeating: "p", count: count * 10) + "?q")
            _ = lines.withRequest(&request, HeadEncoder.RequestOptions(), isSecure: false) { lines in
                #expect(Self.texts(lines).last == ":path: /" + String(repeating: "p", count: count * 10) + "?q")
                return 0
            }
        }
    }

    @Test func `a trailer section has its fields only`() {
        var lines = Http2Lines()
        let trailers: HttpFields = ["X-Sum": "1", "Content-Length": "5", "X-B": ""]
        let result = lines.withTrailers(trailers) { lines in
            #expect(Self.texts(lines) == ["X-Sum: 1", "X-B: "])
            return 3
        }
        #expect(result == 3)
        let none = lines.withTrailers(HttpFields()) { Int32($0.count) }
        #expect(none == 0)
    }
}
