import Capturing
import HttpWare
import Testing

@Suite struct HarReaderTests {
    private func read(_ entry: String, _ head: String = "") throws -> HarReader {
        try HarReader(Array("\(head){\"log\":{\"pages\":[{}],\"entries\":[\(entry)]}}".utf8))
    }

    @Test func `an entry as Chrome writes it is read`() throws {
        let reader = try read(
            """
            {"_initiator":{"type":"other"},"startedDateTime":"2026-11-21T06:20:11.5+01:00","time":12.5,"request":{"method":"GET",
            "url":"https://a.test/","httpVersion":"h2","headers":[{"name":":authority","value":"a.test"},{"name":"accept","value":"*/*"}],
            "queryString":[],"cookies":[],"headersSize":-1,"bodySize":0},"response":{"status":200,"statusText":"","httpVersion":"h2",
            "headers":[{"name":"content-encoding","value":"br"}],"cookies":[],"content":{"size":2,"mimeType":"text/html","text":"hi",
            "compression":-1},"redirectURL":"","headersSize":-1,"bodySize":-1,"_transferSize":120,"_error":null},"cache":{},
            "timings":{"blocked":1,"dns":-1,"ssl":-1,"connect":-1,"send":0.5,"wait":10,"receive":1,"_blocked_queueing":0.4},
            "serverIPAddress":"[2001:db8::1]","connection":"443"}
            """)
        let exchange = try #require(reader.exchanges.first)
        #expect(reader.warnings.isEmpty)
        #expect(exchange.version == "HTTP/2" && exchange.request.fields == [.init("accept", "*/*")])
        #expect(exchange.started.rfc3339 == "2026-11-21T05:20:11.500000Z" && exchange.duration == 12_500_000)
        #expect(exchange.server == "[2001:db8::1]:443" && exchange.fault == nil)
        #expect(DecodedContent(try #require(exchange.response)).bytes == Array("hi".utf8))
    }

    @Test func `mistakes that browsers make are accepted`() throws {
        // No timings, no method, joined fields, a wrong encoding, no content, a status of -1.
        let reader = try read(
            """
            {"request":{"url":"http://a.test/1","headers":[{"name":"Set-Cookie","value":"a\\nb"}]},"response":{"status":-1}},
            {"startedDateTime":"2026-11-21T06:20:11Z","timings":{"send":null,"wait":"7","receive":-1},"request":{"method":"POST",
            "url":"http://a.test/2","headers":{"X-A":1},"postData":{"params":[{"name":"a b","value":"c&d"},{"name":"e"}]}},
            "response":{"status":200,"headers":[["X-B","2"],{"value":"nameless"}],"content":{"text":"*no*","encoding":"base64"}}},
            {"request":null},{"request":{"url":""}},7,
            {"request":{"method":"GET","url":"http://a.test/3"},"response":{"status":"204","content":{"size":10,"text":"aGk\\n","encoding":"base64"}}},
            """, "\u{feff}")
        #expect(reader.exchanges.map(\.url) == ["http://a.test/1", "http://a.test/2", "http://a.test/3"])
        #expect(reader.exchanges.map(\.id) == [1, 2, 3])
        let (first, second, third) = (reader.exchanges[0], reader.exchanges[1], reader.exchanges[2])
        #expect(first.method == "GET" && first.status == nil && first.response == nil && first.fault == "no response")
        #expect(first.request.values(of: "set-cookie") == ["a", "b"])
        #expect(
            second.request.content.kept == Array("a+b=c%26d&e=".utf8) && second.request.fields == [.init("X-A", "1")])
        #expect(second.response?.content.kept == Array("*no*".utf8) && second.response?.fields == [.init("X-B", "2")])
        #expect(second.duration == 7_000_000)
        #expect(third.status == 204 && third.response?.content.kept == Array("hi".utf8))
        #expect(reader.warnings.contains { $0.hasPrefix("entry 1: the method is missing") })
        #expect(reader.warnings.contains { $0.hasPrefix("entry 2: content is not base64") })
        #expect(reader.warnings.contains { $0.hasPrefix("entry 3: it has no request") })
    }

    @Test func `text of another charset becomes its bytes`() throws {
        let reader = try read(
            """
            {"request":{"method":"GET","url":"http://a.test/"},"response":{"status":200,"content":{"text":"\\u00e9","mimeType":
            "text/plain; charset=ISO-8859-1"}}}
            """)
        #expect(reader.exchanges.first?.response?.content.kept == [0xe9])
    }

    @Test(arguments: [
        "", "[]", "{}", "{\"log\":{}}", "{\"log\":{\"entries\":{}}}", "{\"log\":{\"entries\":[",
        "{\"log\":{\"entries\":[]}} x",
        "{\"log\":{\"entries\":[{\"request\":}]}}", "{\"log\":{\"entries\":[]", "\u{0}", "{\"log",
    ])
    func `a file that is not an archive is refused`(text: String) {
        #expect(throws: HarReader.Refusal.self) { try HarReader(Array(text.utf8)) }
    }

    @Test func `size, entries, depth and members are bounded`() throws {
        let entry = "{\"request\":{\"method\":\"GET\",\"url\":\"http://a.test/\"},\"response\":{\"status\":200}}"
        let three = Array("{\"log\":{\"entries\":[\(entry),\(entry),\(entry)]}}".utf8)
        var limits = HarReader.Limits()
        limits.entries = 2
        #expect(throws: HarReader.Refusal.self) { try HarReader(three, limits: limits) }
        limits.entries = 3
        #expect(try HarReader(three, limits: limits).exchanges.count == 3)
        limits.size = 10
        #expect(throws: HarReader.Refusal.self) { try HarReader(three, limits: limits) }
        let deep = String(repeating: "[", count: 100_000)
        #expect(throws: HarReader.Refusal.self) { try read(deep) }
        // Passed over without being kept, however deep.
        let closed = deep + String(repeating: "]", count: 100_000)
        #expect(try HarReader(Array("{\"x\":\(closed),\"log\":{\"entries\":[]}}".utf8)).exchanges.isEmpty)
        var few = HarReader.Limits()
        few.json.values = 100
        let many = "{\"x\":[" + String(repeating: "1,", count: 200) + "]}"
        #expect(throws: HarReader.Refusal.self) {
            try HarReader(Array("{\"log\":{\"entries\":[\(many)]}}".utf8), limits: few)
        }
    }

    @Test func `warnings are bounded`() throws {
        let entries = String(repeating: "{\"request\":{}},", count: 500)
        let reader = try read(entries)
        #expect(reader.warnings.count == HarReader.mostWarnings + 1 && reader.warnings.last == "400 more")
    }
}

extension HarReaderTests {
    private func one(_ entry: String) throws -> CapturedExchange {
        try #require(try read(entry).exchanges.first)
    }

    private func entry(
        _ response: String, request: String = "\"method\":\"GET\",\"url\":\"http://a.test/\"", more: String = ""
    ) -> String { "{\"request\":{\(request)},\"response\":{\(response)}\(more)}" }

    @Test func `the media type is kept if no field states it`() throws {
        let form =
            "\"method\":\"POST\",\"url\":\"http://a.test/\",\"postData\":{\"mimeType\":\"application/x-www-form-urlencoded\",\"text\":\"a=b\"}"
        let read = try one(
            entry(
                "\"status\":200,\"content\":{\"mimeType\":\"text/html; charset=utf-8\",\"text\":\"hi\"}", request: form)
        )
        #expect(read.request.fields == [.init("Content-Type", "application/x-www-form-urlencoded")])
        #expect(read.response?.fields == [.init("Content-Type", "text/html; charset=utf-8")])
        #expect(try RequestRepetition(read).fields == [.init("Content-Type", "application/x-www-form-urlencoded")])
        let stated = try one(
            entry(
                "\"status\":200,\"headers\":[{\"name\":\"content-type\",\"value\":\"a/b\"}],\"content\":{\"mimeType\":\"text/html\",\"text\":\"hi\"}"
            ))
        #expect(stated.response?.fields == [.init("content-type", "a/b")])
        for type in ["x-unknown", "", "a\\nb"] {
            #expect(
                try one(entry("\"status\":200,\"content\":{\"mimeType\":\"\(type)\",\"text\":\"hi\"}")).response?.fields
                    == [])
        }
    }

    @Test(arguments: [
        ("h3", "HTTP/3"), ("HTTP/3.0", "HTTP/3"), ("h3-29", "HTTP/3"), ("http/2+quic/46", "HTTP/3"), ("h2", "HTTP/2"),
        ("http/1.0", "HTTP/1.0"),
        ("", "HTTP/1.1"), ("unknown", "HTTP/1.1"),
    ])
    func `versions are read as browsers write them`(text: String, version: String) throws {
        let request = "\"method\":\"GET\",\"url\":\"http://a.test/\",\"httpVersion\":\"\(text)\""
        #expect(try one(entry("\"status\":200", request: request)).version == version)
    }

    @Test(arguments: [("get", "GET"), ("Post", "POST"), ("GET", "GET"), ("propfind", "propfind"), ("x", "x")])
    func `methods of the standard are read in any case`(text: String, method: String) throws {
        #expect(
            try one(entry("\"status\":200", request: "\"method\":\"\(text)\",\"url\":\"http://a.test/\"")).method
                == method)
    }

    @Test(arguments: [
        "\"status\":200,\"content\":{\"size\":0},\"_failureText\":\"net::ERR_ABORTED\"",
        "\"status\":200,\"_error\":\"net::ERR_FAILED\"",
        "\"status\":204,\"content\":{},\"_errorMessage\":\"aborted\"",
    ])
    func `an attempt that failed is not a response`(response: String) throws {
        let read = try one(entry(response))
        #expect(read.isCutOff && read.fault != nil)
        let whole = try one(entry("\"status\":200,\"content\":{\"text\":\"hi\"},\"_error\":null"))
        #expect(!whole.isCutOff && whole.fault == nil)
    }

    @Test func `content that is still coded is decoded if its bytes fit the coding`() throws {
        let zipped = Base64.encode(CaptureFilterTests.zipped)
        func read(_ coding: String, _ text: String, encoding: String = ",\"encoding\":\"base64\"") throws
            -> CapturedMessage
        {
            try #require(
                try one(
                    entry(
                        "\"status\":200,\"headers\":[{\"name\":\"Content-Encoding\",\"value\":\"\(coding)\"}],\"content\":{\"text\":\"\(text)\"\(encoding)}"
                    )
                ).response)
        }
        let coded = try read("gzip", zipped)
        #expect(!coded.content.isDecoded && coded.content.kept == CaptureFilterTests.zipped)
        #expect(DecodedContent(coded).bytes == Array("hello hello hello hello".utf8))
        #expect(try read("gzip", Base64.encode([1, 2, 3])).content.isDecoded)
        #expect(try read("br", "hi", encoding: "").content.isDecoded)
        #expect(try !read("x-custom", "AAEC").content.isDecoded && !read("snappy", "AAEC").content.isDecoded)
        #expect(try read("dcb", Base64.encode([0x89, 0x50])).content.isDecoded)
        #expect(try !read("dcb", Base64.encode([0xff, 0x44, 0x43, 0x42, 1])).content.isDecoded)
        #expect(try read("identity", "AAEC").content.kept == [0, 1, 2])
    }

    @Test func `one value does not become more lines than a head may have`() throws {
        let lines = String(repeating: "\\n", count: 3_000_000)
        let start = ContinuousClock.now
        let reader = try read(
            entry(
                "\"status\":200,\"headers\":[{\"name\":\"a\",\"value\":\"\(lines)\"},{\"name\":\"b\",\"value\":\"c\"}]")
        )
        #expect(ContinuousClock.now - start < .seconds(20))
        #expect(reader.exchanges.first?.response?.fields.count == 1000)
        #expect(reader.warnings.contains { $0.contains("more than 1000 lines") })
        let pairs = String(repeating: "{\"name\":\"a\",\"value\":\"b\"},", count: 5000)
        for headers in [
            "[\(pairs)]", "[\(String(repeating: "[\"a\",\"b\"],", count: 5000))]",
            "{\(String(repeating: "\"a\":\"b\",", count: 5000))}",
        ] {
            #expect(try one(entry("\"status\":200,\"headers\":\(headers)")).response?.fields.count == 1000)
        }
        let long = String(repeating: "x", count: 600_000)
        let wide = try one(entry("\"status\":200,\"headers\":[\(String(repeating: "[\"a\",\"\(long)\"],", count: 4))]"))
        #expect(wide.response?.fields.count == 1)
    }

    @Test func `messages, events, pieces, methods and URLs are bounded`() throws {
        let many = String(repeating: "{\"data\":\"\"},", count: 30_000)
        let socket = try read(entry("\"status\":101", more: ",\"_webSocketMessages\":[\(many)]"))
        #expect(
            socket.exchanges.first?.messages.count == 10_000
                && socket.warnings.contains { $0.contains("more than 10000 messages") })
        let events = "\"status\":200,\"headers\":[[\"Content-Type\",\"text/event-stream\"]]"
        #expect(try one(entry(events, more: ",\"_eventSourceMessages\":[\(many)]")).messages.count == 10_000)
        let pieces = String(repeating: "[1,1],", count: 30_000)
        #expect(
            try one(entry("\"status\":200", more: ",\"_httpware\":{\"progress\":[\(pieces)]}")).progress.count == 10_000
        )
        let long = String(repeating: "x", count: 2 << 20)
        #expect(
            try read(entry("\"status\":200", request: "\"method\":\"GET\",\"url\":\"http://a.test/\(long)\"")).exchanges
                .isEmpty)
        #expect(
            try one(entry("\"status\":200", request: "\"method\":\"\(long)\",\"url\":\"http://a.test/\"")).method
                == "GET")
        var limits = HarReader.Limits()
        limits.elements = 25
        let entries = String(
            repeating: entry("\"status\":200,\"headers\":[\(String(repeating: "[\"a\",\"b\"],", count: 10))]") + ",",
            count: 3)
        #expect(throws: HarReader.Refusal.self) {
            try HarReader(Array("{\"log\":{\"entries\":[\(entries)]}}".utf8), limits: limits)
        }
    }

    @Test func `the size of one value in an archive is bounded`() throws {
        let cookies = String(repeating: "a=b;", count: 50_000)
        let query = String(repeating: "a=b&", count: 50_000)
        let read = try one(
            entry(
                "\"status\":200,\"headers\":[[\"Set-Cookie\",\"\(cookies)\"]]",
                request:
                    "\"method\":\"GET\",\"url\":\"http://a.test/?\(query)\",\"headers\":[[\"Cookie\",\"\(cookies)\"]]"))
        let har = try JsonValue(HarTests.archive([read]))
        let request = try #require(har["log"]?["entries"]?.elements?.first?["request"])
        #expect(
            request["cookies"]?.elements?.count ?? 0 <= 1000 && request["queryString"]?.elements?.count ?? 0 <= 1000)
    }

    @Test func `numbers keep their digits`() throws {
        #expect(
            try JsonValue(Array("[9007199254740993,1.0,-0,1e2]".utf8))
                == .array(["9007199254740993", "1.0", "-0", "1e2"].map { .number($0) }))
        #expect(try JsonValue(Array("9007199254740993".utf8)).whole == 9_007_199_254_740_993)
        #expect(
            try JsonValue(Array("1e2".utf8)).whole == 100 && JsonValue(Array("1e400".utf8)).whole == nil)
    }
}
