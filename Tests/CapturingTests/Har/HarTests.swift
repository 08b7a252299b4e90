import Capturing
import FoundationEssentials
import HttpWare
import Testing

@Suite struct HarTests {
    static func archive(_ exchanges: [CapturedExchange], missingSecrets: Int? = nil) -> [UInt8] {
        var writer = HarWriter(version: "1.2.3")
        var bytes = writer.begin()
        for exchange in exchanges { bytes += writer.entry(exchange) }
        return bytes + writer.end(missingSecrets: missingSecrets)
    }

    private func firstEntry(_ exchange: CapturedExchange) throws -> JsonValue {
        let har = try JsonValue(HarTests.archive([exchange]))
        return try #require(har["log"]?["entries"]?.elements?.first)
    }

    // MARK: Out

    @Test func `masked content is whole in an archive, even if the mask is longer than the value`() throws {
        var exchange = CaptureFilterTests.sample()
        exchange.response?.fields = [.init("Content-Type", "application/json")]
        exchange.response?.content.kept = Array("{\"token\":\"…\"}".utf8)  // {"token":null} before
        exchange.response?.content.maskedFrom = 14
        exchange.response?.content.size = 14
        let content = try #require(try HarReader(HarTests.archive([exchange])).exchanges.first?.response?.content)
        #expect(content.isWhole && content.size == 14)
        exchange.response?.content.size = 100
        let cut = try #require(try HarReader(HarTests.archive([exchange])).exchanges.first?.response?.content)
        #expect(!cut.isWhole)
    }

    @Test func `the log has all required members and says how many secrets are missing`() throws {
        let har = try JsonValue(
            HarTests.archive([CaptureFilterTests.sample(), CaptureFilterTests.sample()], missingSecrets: 2))
        let log = try #require(har["log"])
        #expect(log["version"] == .string("1.2"))
        #expect(log["creator"]?["name"] == .string("httpware") && log["creator"]?["version"] == .string("1.2.3"))
        #expect(log["entries"]?.elements?.count == 2)
        #expect(log["_httpware"]?["missingSecrets"]?.whole == 2)
        #expect(try JsonValue(HarTests.archive([]))["log"]?["entries"] == .array([]))
    }

    @Test func `an entry has all required members`() throws {
        var exchange = CaptureFilterTests.sample()
        exchange.request.fields.append(.init("Cookie", "a=1; b = two"))
        exchange.response?.fields.append(
            .init("Set-Cookie", "id=x; Path=/; Expires=Wed, 21 Oct 2026 07:28:00 GMT; HttpOnly; Secure; SameSite=Lax"))
        exchange.report = try CaptureFilterTests.report([("mock", "aborted")])
        let entry = try firstEntry(exchange)
        for name in ["startedDateTime", "time", "request", "response", "cache", "timings"] {
            #expect(entry[name] != nil)
        }
        let request = try #require(entry["request"])
        for name in [
            "method", "url", "httpVersion", "cookies", "headers", "queryString", "headersSize", "bodySize", "postData",
        ] {
            #expect(request[name] != nil, "\(name)")
        }
        let response = try #require(entry["response"])
        let names = [
            "status", "statusText", "httpVersion", "cookies", "headers", "content", "redirectURL", "headersSize",
            "bodySize",
        ]
        for name in names { #expect(response[name] != nil, "\(name)") }
        #expect(entry["startedDateTime"]?.string?.hasSuffix("Z") == true)
        #expect(request["queryString"]?.elements?.first?["name"] == .string("page"))
        #expect(request["cookies"]?.elements?.last?["value"] == .string("two"))
        #expect(request["bodySize"]?.whole == exchange.request.content.size)
        #expect(request["postData"]?["params"] == nil && request["postData"]?["text"] != nil)
        let cookie = try #require(response["cookies"]?.elements?.last)
        #expect(cookie["expires"] == .string("2026-10-21T07:28:00.000000Z") && cookie["httpOnly"] == .boolean(true))
        let lines = response["headers"]?.elements?.filter { $0["name"]?.string?.lowercased() == "set-cookie" }
        #expect(lines?.count == 3, "repeated fields stay apart")
        #expect(entry["_httpware"]?["id"]?.whole == 17 && entry["_httpware"]?["route"] == .string("orders"))
        #expect(entry["_httpware"]?["decisions"]?.elements?.first?["decision"] == .string("aborted"))
        #expect(entry["serverIPAddress"] == .string("10.0.0.9") && entry["connection"] == .string("443"))
    }

    @Test func `timings add up to the time, and TLS is a part of the connection`() throws {
        var exchange = CaptureFilterTests.sample()
        exchange.report = try CaptureFilterTests.report([])
        let entry = try firstEntry(exchange)
        let timings = try #require(entry["timings"])
        func time(_ name: String) -> Double { timings[name]?.looseDouble ?? .nan }
        #expect(time("dns") == 2 && time("connect") == 10 && time("ssl") == 7)
        #expect(time("send") == 1.5 && time("wait") == 600 && time("receive") == 100)
        let sum = ["blocked", "dns", "connect", "send", "wait", "receive"].reduce(0) { $0 + max(0, time($1)) }
        #expect(sum == 750 && entry["time"]?.looseDouble == 750)
    }

    @Test func `a phase that did not happen is minus one`() throws {
        let timings = try #require(try firstEntry(CaptureFilterTests.sample())["timings"])
        for name in ["blocked", "dns", "connect", "ssl"] { #expect(timings[name]?.looseDouble == -1) }
        #expect(
            timings["wait"]?.looseDouble == 750 && timings["send"]?.looseDouble == 0
                && timings["receive"]?.looseDouble == 0)
    }

    @Test func `content is decoded, and binary content is base64`() throws {
        var exchange = CaptureFilterTests.sample()
        let zipped = CaptureFilterTests.zipped
        exchange.response?.fields.append(.init("Content-Encoding", "gzip"))
        exchange.response?.content.kept = zipped
        exchange.response?.content.size = zipped.count
        var content = try #require(try firstEntry(exchange)["response"]?["content"])
        #expect(content["text"] == .string("hello hello hello hello") && content["encoding"] == nil)
        #expect(content["size"]?.whole == 23 && content["compression"]?.whole == 23 - zipped.count)

        exchange.response?.fields.removeLast()
        content = try #require(try firstEntry(exchange)["response"]?["content"])
        #expect(content["encoding"] == .string("base64") && content["size"]?.whole == zipped.count)
        #expect(content["compression"] == nil)
    }

    @Test func `content that was not captured whole says so`() throws {
        let content = try #require(try firstEntry(CaptureFilterTests.sample())["response"]?["content"])
        #expect(content["size"]?.whole == 2 << 20)
        #expect(content["comment"]?.string?.contains("2097152") == true)
    }

    @Test func `an exchange without a response has status 0`() throws {
        var exchange = CaptureFilterTests.sample()
        exchange.response = nil
        exchange.status = nil
        exchange.fault = "connectionRefused"
        let response = try #require(try firstEntry(exchange)["response"])
        #expect(response["status"]?.whole == 0 && response["_error"] == .string("connectionRefused"))
        let again = try #require(HarReader(HarTests.archive([exchange])).exchanges.first)
        #expect(again.status == nil && again.response == nil && again.fault == "connectionRefused")
    }

    @Test func `messages of a WebSocket are as Chrome writes them`() throws {
        var exchange = CaptureFilterTests.sample()
        exchange.kind = .websocket
        exchange.status = 101
        let time = WallTime(seconds: 1_795_262_400, nanoseconds: 25_000_000)
        exchange.messages = [
            CapturedPiece(.send, .webSocket(opcode: 1), time: time, data: Array("hi".utf8), size: 2),
            CapturedPiece(.receive, .webSocket(opcode: 2), time: time, data: [0, 255], size: 2),
            CapturedPiece(.send, .webSocket(opcode: 9), time: time, data: [], size: 0),
        ]
        let entry = try firstEntry(exchange)
        let messages = try #require(entry["_webSocketMessages"]?.elements)
        #expect(messages.count == 2 && entry["_resourceType"] == .string("websocket"))
        #expect(
            messages[0]["type"] == .string("send") && messages[0]["opcode"]?.whole == 1
                && messages[0]["data"] == .string("hi"))
        #expect(messages[0]["time"]?.looseDouble == 1_795_262_400.025)
        #expect(messages[1]["type"] == .string("receive") && messages[1]["data"] == .string("AP8="))
        let again = try #require(HarReader(HarTests.archive([exchange])).exchanges.first)
        #expect(again.kind == .websocket && again.messages == Array(exchange.messages.prefix(2)))
    }

    // MARK: In and out

    @Test func `an archive that was written is read again`() throws {
        var exchange = CaptureFilterTests.sample()
        exchange.report = try CaptureFilterTests.report([])
        let reader = try HarReader(HarTests.archive([exchange], missingSecrets: 3), firstId: 40)
        let again = try #require(reader.exchanges.first)
        #expect(reader.warnings.isEmpty && reader.missingSecrets == 3)
        #expect(again.id == 40 && again.url == exchange.url && again.method == "POST" && again.status == 404)
        #expect(again.request.fields == exchange.request.fields && again.response?.fields == exchange.response?.fields)
        #expect(again.request.content.kept == exchange.request.content.kept)
        #expect(again.response?.content == exchange.response?.content)
        #expect(again.started == exchange.started && again.duration == exchange.duration)
        #expect(again.comment == exchange.comment && again.route == "orders" && again.server == "10.0.0.9:443")
        #expect(CapturedTimings(of: again) == CapturedTimings(of: exchange))
    }

    @Test func `decoded content is not decoded again`() throws {
        var exchange = CaptureFilterTests.sample()
        exchange.response?.fields.append(.init("Content-Encoding", "gzip"))
        exchange.response?.content.kept = CaptureFilterTests.zipped
        exchange.response?.content.size = CaptureFilterTests.zipped.count
        let again = try #require(HarReader(HarTests.archive([exchange])).exchanges.first)
        #expect(
            String(decoding: DecodedContent(try #require(again.response)).bytes, as: UTF8.self)
                == "hello hello hello hello")
        let twice = try #require(HarReader(HarTests.archive([again])).exchanges.first)
        #expect(twice.response?.content.kept == again.response?.content.kept)
        #expect(try CaptureFilter("~bs '^hello'").matches(again))
    }
}

/// Archives give back what was there.
extension HarTests {
    private func again(_ exchange: CapturedExchange) throws -> CapturedExchange {
        try #require(try HarReader(HarTests.archive([exchange])).exchanges.first)
    }

    @Test(arguments: [["dcb"], ["snappy"], ["x-custom"], ["gzip", "snappy"], ["gzip"]])
    func `content in a coding that cannot be removed stays coded, with its coding`(codings: [String]) throws {
        var exchange = CaptureFilterTests.sample()
        exchange.response?.fields = CapturedFields(codings.map { .init("Content-Encoding", $0) })
        exchange.response?.content.kept = [0xff, 0x00, 0x80, 0x01]
        exchange.response?.content.size = 4
        exchange.request.fields.append(.init("Content-Encoding", codings[0]))
        exchange.request.content.kept = [0xff, 0x01]
        exchange.request.content.size = 2
        let read = try again(exchange)
        #expect(read.response?.content.kept == [0xff, 0x00, 0x80, 0x01] && read.response?.content.isDecoded == false)
        #expect(read.request.content.kept == [0xff, 0x01] && read.request.content.isDecoded == false)
        let twice = try again(read)
        #expect(twice.response?.content == read.response?.content && twice.request.content == read.request.content)
    }

    @Test func `trailers, reason, version, cut ends and bytes that are not UTF-8 come back`() throws {
        var exchange = CaptureFilterTests.sample()
        exchange.request.trailers = [.init("X-Digest", "a")]
        exchange.response?.trailers = [.init("grpc-status", "0"), .init("grpc-message", "")]
        exchange.response?.fields.append(CapturedMessage.Field("Content-Disposition", bytes: [0x66, 0xe9, 0x74]))
        exchange.reason = "Caf\u{e9}"
        exchange.status = 999
        exchange.version = "HTTP/3"
        exchange.isCutOff = true
        exchange.isReasonRaw = true
        let har = try JsonValue(HarTests.archive([exchange]))
        let entry = try #require(har["log"]?["entries"]?.elements?.first)
        #expect(
            entry["response"]?["statusText"] == .string("Caf\u{e9}")
                && entry["request"]?["postData"]?["encoding"] == nil)
        let lines = entry["response"]?["headers"]?.elements ?? []
        #expect(lines.last?["value"] == .string("f\u{e9}t") && lines.last?["_charset"] == .string("iso-8859-1"))
        let read = try again(exchange)
        #expect(
            read.request.trailers == exchange.request.trailers && read.response?.trailers == exchange.response?.trailers
        )
        #expect(read.response?.fields == exchange.response?.fields)
        #expect(read.response?.fields.last?.bytes == [0x66, 0xe9, 0x74])
        #expect((read.reason, read.status, read.version, read.isCutOff) == ("Caf\u{e9}", 999, "HTTP/3", true))
        #expect(read.isReasonRaw && entry["response"]?["_charset"] == .string("iso-8859-1"))
    }

    @Test func `the bytes of a request are read with either name of their encoding`() throws {
        var exchange = CaptureFilterTests.sample()
        exchange.request.content.kept = [0, 0xff]
        exchange.request.content.size = 2
        let bytes = HarTests.archive([exchange])
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(text.contains("\"_encoding\":\"base64\""))
        for name in ["_encoding", "encoding"] {
            let other = text.replacing("\"_encoding\":", with: "\"\(name)\":").replacing(
                "\"httpware\"", with: "\"another\"")
            #expect(try HarReader(Array(other.utf8)).exchanges.first?.request.content.kept == [0, 0xff])
        }
    }

    @Test func `an exchange without a URL is left out and counted, and others stay`() throws {
        var exchange = CaptureFilterTests.sample()
        let good = exchange
        var bytes: [UInt8] = []
        var writer = HarWriter(version: "1")
        bytes += writer.begin()
        for url in ["http://", "", "http:///a", "https:///a?b"] {
            exchange.url = url
            bytes += writer.entry(exchange)
        }
        bytes += writer.entry(good)
        exchange.url = "data:text/plain,hi"
        bytes += writer.entry(exchange)
        bytes += writer.end()
        let reader = try HarReader(bytes)
        #expect(reader.exchanges.map(\.url) == [good.url, "data:text/plain,hi"] && reader.leftOut == 4)
        #expect(HarReader.facts(bytes) == (0, 4) && HarReader.facts(Array("{}".utf8)) == (0, 0))
    }

    @Test(arguments: ["ws", "wss"], ["\"_webSocketMessages\":[],", ""])
    func `the URL of a WebSocket keeps its scheme, also without messages`(scheme: String, messages: String) throws {
        let entry =
            "{\"request\":{\"method\":\"GET\",\"url\":\"\(scheme)://a.test/x\"},\(messages)\"response\":{\"status\":101}}"
        let read = try #require(try HarReader(Array("{\"log\":{\"entries\":[\(entry)]}}".utf8)).exchanges.first)
        #expect(read.url == (scheme == "ws" ? "http" : "https") + "://a.test/x")
        #expect(try firstEntry(read)["request"]?["url"] == .string("\(scheme)://a.test/x"))
        #expect(try again(read).url == read.url)
    }
}
