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

    @Test func `what browsers get wrong is forgiven`() throws {
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
