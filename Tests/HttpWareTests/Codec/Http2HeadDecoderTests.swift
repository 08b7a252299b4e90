import Testing

@testable import HttpWare

/// The rules for fields of HTTP/2, one by one. RFC 9113 §8.
@Suite struct Http2HeadDecoderTests {
    private typealias Fields = [(String, String)]

    private func decode(
        _ fields: [(String, String)], endsStream: Bool = true, isForward: Bool = false
    ) throws(Http2Fault) -> HttpRequest {
        var rules = Http2HeadDecoder.Rules()
        rules.isForward = isForward
        return try decode(fields, endsStream: endsStream, rules)
    }

    private func decode(
        _ fields: [(String, String)], endsStream: Bool = true, _ rules: Http2HeadDecoder.Rules
    ) throws(Http2Fault) -> HttpRequest {
        var decoder = Http2HeadDecoder()
        var request = HttpRequest()
        decoder.beginSection(.request)
        for (name, value) in fields {
            Array(name.utf8).withUnsafeBytes { name in
                Array(value.utf8).withUnsafeBytes { decoder.add(name, $0, to: &request.fields, limits: rules.limits) }
            }
        }
        try decoder.finish(&request, endsStream: endsStream, rules)
        return request
    }

    private static let get: [(String, String)] = [
        (":method", "GET"), (":scheme", "http"), (":authority", "Example.test:8080"), (":path", "/a/./b?c"),
    ]

    @Test func `pseudo-fields make the target, and the authority is the Host`() throws {
        let request = try decode(Self.get + [("accept", "*/*")])
        #expect(request.method == .get)
        #expect(request.host == "example.test")
        #expect(request.port == 8080)
        #expect(request.path == "/a/b")
        #expect(request.query == "c")
        #expect(request.receivedTarget == "/a/./b?c")
        #expect(request.fields.description == "host: Example.test:8080\naccept: */*")
        #expect(request.fields.received.description == request.fields.description)
    }

    @Test func `crumbs of a cookie are one line`() throws {
        let request = try decode(Self.get + [("cookie", "a=1"), ("x-a", "1"), ("cookie", "b=2")])
        #expect(request.fields.values(of: "Cookie") == ["a=1; b=2"])
        #expect(request.fields.received.values(of: "Cookie") == ["a=1; b=2"])
    }

    @Test func `crumbs of a cookie count as one line, up to the size of the head, RFC 9113 §8.2.3`() throws {
        // With the Host, 100 lines.
        let lines = (0..<98).map { ("x-\($0)", "1") }
        let crumbs = (0..<300).map { ("cookie", "c\($0)=1") }
        let request = try decode(Self.get + lines + crumbs)
        #expect(request.fields.count == 100)
        #expect(request.fields["Cookie"]?.split(separator: ";").count == 300)
        #expect(try decode(Self.get + crumbs + lines).fields.count == 100)
        for fields in [Self.get + lines + crumbs + [("x-a", "1")], Self.get + crumbs + lines + [("x-a", "1")]] {
            do {
                _ = try decode(fields)
                Issue.record("was read")
            } catch {
                let refusal = error.inRequest(HeadLimits())
                #expect(refusal.fault == .requestHeadTooLarge)
                #expect(refusal.reason == "the head has more than 100 field lines, the limit in limits.fieldLines")
            }
        }
        do {
            _ = try decode(Self.get + (0..<2000).map { ("cookie", "c\($0)=1") })
            Issue.record("was read")
        } catch {
            #expect(
                error.inRequest(HeadLimits()).reason == "the head is larger than 64KiB, the limit in limits.head")
        }
    }

    @Test(arguments: [" v", "v ", "\tv", " \t v \t ", "  "])
    func `white space around a response's value is removed, and refused in a request, RFC 9113 §8.2.1`(value: String)
        throws
    {
        for section in [Http2HeadDecoder.Section.response, .trailers] {
            for trims in [true, false] {
                var decoder = Http2HeadDecoder(trimsValues: trims)
                var fields = HttpFields()
                decoder.beginSection(section)
                Array("x-a".utf8).withUnsafeBytes { name in
                    Array(value.utf8).withUnsafeBytes {
                        decoder.add(name, $0, to: &fields, limits: HeadLimits())
                    }
                }
                #expect((decoder.fault == nil) == trims)
                if trims { #expect(fields["X-A"] == String(value.filter { $0 == "v" })) }
            }
        }
        #expect(throws: Http2Fault.self) { try decode(Self.get + [("x-a", value)]) }
    }

    @Test(arguments: [("content-length", "5"), ("content-length", "x"), ("content-length", "5, 6")])
    func `an interim response that states a length is one, without it, RFC 9110 §8.6`(name: String, value: String)
        throws
    {
        var decoder = Http2HeadDecoder(trimsValues: true)
        var response = HttpResponse(.ok)
        decoder.beginSection(.response)
        for (name, value) in [(":status", "103"), (name, value), ("link", "</a>")] {
            Array(name.utf8).withUnsafeBytes { name in
                Array(value.utf8).withUnsafeBytes {
                    decoder.add(name, $0, to: &response.fields, limits: .response)
                }
            }
        }
        try decoder.finish(&response, to: .get, endsStream: false)
        #expect(response.status == .earlyHints && response.fields.description == "link: </a>")
    }

    @Test func `fields that concern the hop become properties, and are left out`() throws {
        let request = try decode(Self.get + [("te", "trailers"), ("proxy-authorization", "Basic eDp5")])
        #expect(request.acceptsTrailers)
        #expect(request.proxyAuthorization == "Basic eDp5")
        #expect(!request.fields.contains("TE") && !request.fields.contains("Proxy-Authorization"))
    }

    @Test func `credentials for the proxy that are given twice are told`() throws {
        let lines = [("proxy-authorization", "Basic eDp5"), ("proxy-authorization", "Basic eDp5")]
        #expect(try decode(Self.get + lines).hasSeveralProxyAuthorizations)
        #expect(try !decode(Self.get + lines.prefix(1)).hasSeveralProxyAuthorizations)
    }

    @Test func `a WebSocket is an upgrade with a key`() throws {
        let request = try decode(
            [(":method", "CONNECT"), (":protocol", "websocket")] + Self.get.dropFirst(), endsStream: false)
        #expect(request.method == .get)
        #expect(request.upgrade == "websocket")
        #expect(request.content.isEmpty)
        let key = try #require(request.fields["Sec-WebSocket-Key"])
        #expect(key.utf8.count == 24 && key.hasSuffix("=="))
    }

    @Test(arguments: ["/a/../b", "/a/%2e%2e/b", "/../x", "/100%", "/a%zz", "/a%00b", "/%7Ec"])
    func `RFC 9110 §7.7, in a tunnel the path goes upstream as received`(path: String) throws {
        var rules = Http2HeadDecoder.Rules()
        let fields = [(":method", "GET"), (":scheme", "http"), (":authority", "a.test"), (":path", path)]
        rules.ownsPaths = false
        let request = try decode(fields, rules)
        #expect(request.upstreamTarget == path)
        #expect(!request.path.contains("/..") && !request.path.contains("%z"))
    }

    @Test func `a proxy takes the scheme from the request`() throws {
        let request = try decode(
            [(":method", "GET"), (":scheme", "https"), (":authority", "example.test"), (":path", "/")], isForward: true)
        #expect(request.scheme == "https")
        #expect(try decode(Self.get, isForward: true).scheme == "http")
    }

    @Test(arguments: [
        ("X-A", "1"), ("x a", "1"), ("", "1"), ("x:a", "1"), ("x-a", "1\r\nb: 2"), ("x-a", "\0"), ("x-a", " 1"),
        ("x-a", "1 "), ("connection", "close"), ("keep-alive", "1"), ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"), ("proxy-connection", "close"), ("te", "gzip"), ("host", "other.test"), (":path", "/"),
        (":unknown", "1"), (":status", "200"), ("content-length", "1"), ("content-length", "+0"), ("x-\u{e4}", "1"),
    ])
    func `one bad field makes the whole request malformed`(name: String, value: String) {
        #expect(throws: Http2Fault.self) { try decode(Self.get + [(name, value)]) }
    }

    @Test func `a method longer than 32 bytes is answered with 501 and that number`() throws {
        func fields(_ method: String) -> Fields { [(":method", method)] + Self.get.dropFirst() }
        let long = String(repeating: "M", count: 32)
        #expect(try decode(fields(long)).method.name == long)
        for method in [long + "M", String(repeating: "M", count: 5000)] {
            do {
                _ = try decode(fields(method))
                Issue.record("was read")
            } catch .refused(let error) {
                #expect(error.status == .notImplemented)
                #expect(error.reason == "the method is longer than 32 bytes, a limit that is fixed")
            } catch { Issue.record("was reset") }
        }
        // A method that is not a token is malformed, however long.
        for method in ["", "G T", long + "é", long + "M(", long + " M"] {
            do {
                _ = try decode(fields(method))
                Issue.record("was read")
            } catch .malformed {} catch { Issue.record("was answered") }
        }
    }

    @Test func `a field name over 1,024 bytes is refused with 431 and that number`() throws {
        let name = String(repeating: "x", count: 1024)
        #expect(try decode(Self.get + [(name, "1")]).fields[FieldName(name) ?? "x"] == "1")
        do {
            _ = try decode(Self.get + [(name + "x", "1")])
            Issue.record("was read")
        } catch {
            let refusal = error.inRequest(HeadLimits())
            #expect(refusal.status == .requestHeaderFieldsTooLarge)
            #expect(refusal.reason == "a field name is longer than 1KiB, a limit that is fixed")
        }
        for bad in [name + "X", name + " x", name + "é"] {
            do {
                _ = try decode(Self.get + [(bad, "1")])
                Issue.record("was read")
            } catch .malformed {} catch { Issue.record("was answered") }
        }
    }

    @Test func `an expectation without content is not forwarded`() throws {
        let fields = Self.get + [("expect", "100-continue")]
        let waiting = try decode(fields, endsStream: false)
        #expect(waiting.expectsContinue && waiting.fields[.expect] == "100-continue")
        for request in [
            try decode(fields), try decode(fields + [("content-length", "0")]),
            try decode(
                [(":method", "CONNECT"), (":protocol", "websocket")] + fields.dropFirst(), endsStream: false),
        ] {
            #expect(!request.expectsContinue && request.fields[.expect] == nil)
        }
        #expect(try decode(Self.get + [("expect", "x")]).fields[.expect] == "x")
    }

    @Test(arguments: 0..<4)
    func `no pseudo-field may be missing`(place: Int) {
        var fields = Self.get
        fields.remove(at: place)
        #expect(throws: Http2Fault.self) { try decode(fields) }
    }

    @Test func `each byte of a name and of a value is looked at, however long they are`() {
        func isTaken(_ name: [UInt8], _ value: [UInt8]) -> Bool {
            var decoder = Http2HeadDecoder()
            var fields = HttpFields()
            decoder.beginSection(.trailers)
            name.withUnsafeBytes { name in
                value.withUnsafeBytes { decoder.add(name, $0, to: &fields, limits: HeadLimits()) }
            }
            return decoder.fault == nil
        }
        for count in 1...40 {
            let good = [UInt8](repeating: 0x61, count: count)
            for place in 0..<count {
                for byte: UInt8 in [0x00, 0x09, 0x20, 0x28, 0x3a, 0x41, 0x5a, 0x5f, 0x7a, 0x7f, 0x80, 0xff] {
                    var bytes = good
                    bytes[place] = byte
                    let isName = [0x5f, 0x7a].contains(byte)
                    #expect(isTaken(bytes, [0x61]) == isName, "\(byte) at \(place) of a name of \(count)")
                    let isSpace = byte == 0x20 || byte == 0x09
                    let isValue = isSpace ? place > 0 && place < count - 1 : byte >= 0x20 && byte != 0x7f
                    #expect(isTaken(good, bytes) == isValue, "\(byte) at \(place) of a value of \(count)")
                }
            }
        }
    }

    @Test(arguments: [0, 1, 3, 4, 7, 8, 100, 240, 250, 251, 252, 253, 300, 5000])
    func `a field of any length stands in the message as it came`(count: Int) throws {
        let value = String((0..<count).map { Character(UnicodeScalar(0x61 + UInt8($0 % 26))) })
        let request = try decode(Self.get + [("a", value), ("date", value), ("x-other-name", value), ("z", "end")])
        #expect(request.fields["a"] == value && request.fields["date"] == value)
        #expect(request.fields["x-other-name"] == value && request.fields["z"] == "end")
    }

    @Test func `a long field value is looked at to its end`() {
        for place in [0, 7, 8, 9, 62, 63] {
            var value = [UInt8](repeating: 0x61, count: 64)
            value[place] = 0x0a
            let text = String(decoding: value, as: UTF8.self)
            #expect(throws: Http2Fault.self) { try decode(Self.get + [("x-a", text)]) }
        }
    }
}
