import Capturing
import Foundation
import HttpWareTesting
import Testing

@testable import HttpWare
@testable import GatewayWares
@testable import Wares

@Suite(.timeLimit(.minutes(10))) struct RecordTests {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)

    init() throws { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }

    private func path(_ name: String = "a.har") -> String { folder.appendingPathComponent(name).path }

    private func read(_ record: Record) async throws -> [CapturedExchange] {
        await record.finisher?.finish()
        return try HarReader(Array(Data(contentsOf: URL(filePath: record.file.path)))).exchanges
    }

    @Test func `requests and responses are in the archive, credentials masked`() async throws {
        let record = Record(file: FilePath(path()))
        let exchange = try TestExchange([record])
        exchange.upstream.respond(with: HttpResponse(.created, fields: ["X-A": "1"], content: .text("answer")))
        var request = HttpRequest.post("/orders?token=secret&a=1", content: .text("question"))
        try request.fields.set("Authorization", to: "Bearer secret")
        _ = try await exchange.send(request)
        let recorded = try #require(try await read(record).first)
        #expect((recorded.method, recorded.status) == ("POST", 201))
        #expect(recorded.url.hasSuffix("/orders?token=…&a=1"))
        #expect(recorded.request.values(of: "Authorization") == ["Bearer …"])
        #expect(recorded.request.content.kept == Array("question".utf8))
        #expect(recorded.response?.content.kept == Array("answer".utf8))
        #expect(recorded.response?.values(of: "X-A") == ["1"])
        let text = try String(contentsOfFile: path(), encoding: .utf8)
        #expect(!text.contains("secret"))
    }

    private func login(_ password: String) throws -> HttpRequest {
        var request = HttpRequest.post("/login", content: .text("user=a&password=\(password)"))
        try request.fields.set("Content-Type", to: "application/x-www-form-urlencoded")
        return request
    }

    @Test(arguments: [false, true])
    func `secrets in contents are masked, and the request is known again`(isRedacted: Bool) async throws {
        let record = isRedacted ? Record(file: FilePath(path())) : Record(file: FilePath(path()), redact: [])
        let exchange = try TestExchange([record])
        exchange.upstream.respond(
            with: HttpResponse(
                .ok, fields: ["Content-Type": "application/json"],
                content: .text(#"{"access_token": "t0ken", "user": "a"}"#)))
        _ = try await exchange.send(try login("pa55"))
        let recorded = try #require(try await read(record).first)
        let kept = recorded.request.content.kept + (recorded.response?.content.kept ?? [])
        let text = String(decoding: kept, as: UTF8.self)
        #expect(text.contains("pa55") == !isRedacted && text.contains("t0ken") == !isRedacted)
        #expect(
            (recorded.request.content.maskedFrom, recorded.request.content.isWhole) == (isRedacted ? 20 : nil, true))
        #expect(text.contains("user=a") && text.contains(#""user": "a""#))
        let replayed = try await TestExchange([try replay(record, ["missing": "404"])]).send(try login("pa55"))
        #expect(replayed.status == .ok)
        #expect(replayed.content.bytes == recorded.response?.content.kept)
    }

    @Test func `without redaction all is there but the tokens that the gateway put in`() async throws {
        let record = Record(file: FilePath(path()), redact: [])
        let exchange = try TestExchange([
            try TestExchange.make(TokenInject.self, ["value": "own-t0ken", "header": "X-Own"]), record,
        ])
        var request = HttpRequest.get("/?token=secret")
        try request.fields.set("Authorization", to: "Bearer secret")
        _ = try await exchange.send(request)
        let recorded = try #require(try await read(record).first)
        #expect(recorded.url.hasSuffix("/?token=secret"))
        #expect(recorded.request.values(of: "Authorization") == ["Bearer secret"])
        #expect(recorded.request.values(of: "X-Own") == ["Bearer …"])
    }

    @Test func `the filter is decided at the end`() async throws {
        let record = Record(file: FilePath(path())).filtered(by: try CaptureFilter("~c 404 & ~bs gone & ~dur <1m"))
        let exchange = try TestExchange([record])
        for (status, text) in [(HttpStatus.ok, "gone"), (.notFound, "gone"), (.notFound, "other")] {
            exchange.upstream.respond(with: HttpResponse(status, content: .text(text)))
            _ = try await exchange.send(.get("/"))
        }
        #expect(try await read(record).map(\.status) == [404])
    }

    @Test func `the file stays within its limit and is whole`() async throws {
        let record = Record(file: FilePath(path()), maxSize: .kibibytes(64))
        let exchange = try TestExchange([record])
        for _ in 0..<20 {
            exchange.upstream.respond(with: HttpResponse(.ok, content: .text(String(repeating: "x", count: 8000))))
            _ = try await exchange.send(.get("/"))
        }
        let recorded = try await read(record)
        #expect((4...8).contains(recorded.count), "\(recorded.count)")
        let size = try FileManager.default.attributesOfItem(atPath: path())[.size] as? Int
        #expect(size ?? 0 <= 64 << 10)
    }

    @Test func `the archive is whole while it grows, and only its owner reads it`() async throws {
        let record = Record(file: FilePath(path()))
        let exchange = try TestExchange([record])
        for round in 1...3 {
            _ = try await exchange.send(.get("/"))
            let deadline = ContinuousClock.now + .seconds(20)
            var count = 0
            while count < round, ContinuousClock.now < deadline {
                if let data = try? Data(contentsOf: URL(filePath: path())) {
                    count = try HarReader(Array(data)).exchanges.count
                }
                await Task.yield()
            }
            #expect(count == round)
        }
        #expect(try FileManager.default.attributesOfItem(atPath: path())[.posixPermissions] as? Int == 0o600)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["a.har"])
    }

    @Test func `wares that write to the same file share it`() async throws {
        let records = [Record(file: FilePath(path())), Record(file: FilePath(path()))]
        for record in records {
            let exchange = try TestExchange([record])
            _ = try await exchange.send(.get("/"))
        }
        #expect(try await read(records[0]).count == 2)
    }

    @Test func `a folder that is not there does not disturb the exchange`() async throws {
        let record = Record(file: FilePath(path("none/a.har")))
        let exchange = try TestExchange([record])
        #expect(try await exchange.send(.get("/")).status == .ok)
        await record.finisher?.finish()
    }

    // MARK: Replay

    private func replay(_ record: Record, _ options: ConfigNode = [:]) throws -> Replay {
        let entries = [ConfigNode.Entry(key: "file", location: .code, value: .init(stringLiteral: record.file.path))]
        return try TestExchange.make(Replay.self, ConfigNode(.map(entries + (options.entries ?? []))))
    }

    private func recording(_ responses: [(String, String)]) async throws -> Record {
        let record = Record(file: FilePath(path()))
        let exchange = try TestExchange([record])
        for (target, text) in responses {
            exchange.upstream.respond(with: HttpResponse(.ok, fields: ["X-A": "1"], content: .text(text)))
            _ = try await exchange.send(.get(target))
        }
        await record.finisher?.finish()
        return record
    }

    @Test(arguments: [
        ("last", ["1", "2", "2", "2"]), ("loop", ["1", "2", "1", "2"]), ("once", ["1", "2", "404", "404"]),
    ])
    func `responses come in turn, and then as the order says`(order: String, expected: [String]) async throws {
        let record = try await recording([("/a?_=5", "1"), ("/b", "other"), ("/a?_=6", "2")])
        let ware = try replay(record, ["ignoreQuery": ["_"], "missing": "404", "order": .init(stringLiteral: order)])
        let exchange = try TestExchange([ware])
        var texts: [String?] = []
        for number in 0..<4 {
            let response = try await exchange.send(.get("/a?_=\(number)"))
            texts.append(response.status == .notFound ? "404" : response.content.text)
            if response.status == .ok { #expect(response.fields["X-A"] == "1") }
        }
        #expect(texts == expected)
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test(arguments: [("forward", 200, 1), ("404", 404, 0), ("fail", 502, 0)])
    func `a request that was not recorded is handled as told`(missing: String, status: Int, asked: Int) async throws {
        let record = try await recording([("/a", "1")])
        let exchange = try TestExchange([try replay(record, ["missing": .init(stringLiteral: missing)])])
        #expect(try await exchange.send(.get("/c")).status.code == status)
        #expect(exchange.upstream.requests.count == asked)
    }

    @Test func `a redacted archive still matches its requests`() async throws {
        let record = Record(file: FilePath(path()))
        let exchange = try TestExchange([record])
        var request = HttpRequest.post("/login?code=123&a=1", content: .text("x=1"))
        try request.fields.set("Authorization", to: "Bearer secret")
        exchange.upstream.respond(with: HttpResponse(.ok, fields: ["Set-Cookie": "sid=1"], content: .text("in")))
        _ = try await exchange.send(request)
        await record.finisher?.finish()
        let player = try TestExchange([
            try replay(record, ["headers": ["authorization"], "missing": "fail"])
        ])
        let response = try await player.send(request)
        #expect(response.content.text == "in")
        #expect(response.fields[.setCookie] == nil, "what was masked is left out")
        var other = HttpRequest.post("/login?code=123&a=2", content: .text("x=1"))
        try other.fields.set("Authorization", to: "Bearer secret")
        #expect(try await player.send(other).status == .badGateway)
        other = HttpRequest.post("/login?code=123&a=1", content: .text("x=2"))
        try other.fields.set("Authorization", to: "Bearer secret")
        #expect(try await player.send(other).status == .badGateway)
        #expect(try await player.send(.post("/login?code=1&a=1", content: .text("x=1"))).status == .badGateway)
    }

    @Test func `events come at the times that were recorded`() async throws {
        var captured = CapturedExchange(
            id: 1, started: WallTime(seconds: 0), method: "GET", url: "http://a.test/events", version: "HTTP/1.1",
            listener: "web", request: CapturedMessage())
        captured.status = 200
        captured.kind = .sse
        captured.response = CapturedMessage(fields: [.init("Content-Type", "text/event-stream")])
        captured.response?.content.kept = Array("data: 1\n\ndata: 2\n\n".utf8)
        captured.response?.content.size = 18
        captured.progress = [ContentProgress(time: 1_000_000, size: 9), ContentProgress(time: 3_000_000, size: 18)]
        captured.timings = CapturedTimings()
        captured.timings?.wait = 500_000
        captured.timings?.receive = 3_000_000
        var writer = HarWriter()
        let archive = writer.begin() + writer.entry(captured) + writer.end()
        let exchange = try TestExchange([Replay(try HarReader(archive).exchanges, timing: true)])
        let pending = await exchange.start(.get("/events"))
        for (step, bytes) in [(499, 0), (1, 0), (999, 0), (1, 9), (1999, 9)] {
            await exchange.advance(by: .milliseconds(step))
            #expect(exchange.outcomes.isEmpty, "\(bytes)")
        }
        await exchange.advance(by: .milliseconds(1))
        #expect(try await pending.response().content.text == "data: 1\n\ndata: 2\n\n")
    }

    @Test(arguments: [
        ("a…c", "abc", true), ("a…c", "ac", true), ("a…c", "abd", false), ("…", "", true), ("a…b…c", "axxbyyc", true),
        ("a…b…c", "axxyyc", false), ("ab…bc", "abc", false), ("abc", "abc", true), ("…x…x…", "axbx", true),
        ("…x…x…", "axb", false),
    ])
    func `a mark stands for any text`(recorded: String, asked: String, isEqual: Bool) {
        #expect(RecordedResponses.equals(Array(recorded.utf8), Array(asked.utf8)) == isEqual)
    }

    @Test func `marks without number take linear time`() {
        let recorded = Array(String(repeating: "a…", count: 20_000).utf8) + [0x62]
        let asked = [UInt8](repeating: 0x61, count: 200_000) + [0x63]
        #expect(!RecordedResponses.equals(recorded, asked))
    }

    @Test(arguments: ["", "{}", "[1]", "{\"log\":{\"entries\":1}}", String(repeating: "[", count: 100_000)])
    func `a file that is not an archive is refused at load`(text: String) throws {
        try text.write(toFile: path(), atomically: true, encoding: .utf8)
        #expect(throws: ConfigError.self) { try replay(Record(file: FilePath(path()))) }
    }

    // MARK: What was recorded comes back

    private func exchange(
        _ status: Int = 200, method: String = "GET", fields: CapturedFields = [], bytes: [UInt8] = []
    ) -> CapturedExchange {
        var captured = CapturedExchange(
            id: 1, started: WallTime(seconds: 0), method: method, url: "http://a.test/x", version: "HTTP/1.1",
            listener: "web",
            request: CapturedMessage())
        captured.isOpen = false
        captured.status = status
        captured.response = CapturedMessage(fields: fields)
        captured.response?.content.kept = bytes
        captured.response?.content.size = bytes.count
        return captured
    }

    private func played(_ captured: CapturedExchange, _ request: HttpRequest = .get("/x")) async throws -> HttpResponse
    {
        var writer = HarWriter()
        let archive = writer.begin() + writer.entry(captured) + writer.end()
        return try await TestExchange([Replay(try HarReader(archive).exchanges, missing: .notFound)]).send(request)
    }

    @Test(arguments: [true, false])
    func `coded content is compared decoded`(isSame: Bool) async throws {
        // `printf 'a question' | gzip -n`.
        let coded: [UInt8] = [
            0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b, 0x54, 0x28, 0x2c, 0x4d, 0x2d, 0x2e, 0xc9, 0xcc, 0xcf, 3, 0, 0xbc,
            0x13, 0x8b, 0x8c, 0x0a, 0, 0, 0,
        ]
        var recorded = exchange(method: "POST", bytes: Array("answer".utf8))
        recorded.request.content.kept = Array((isSame ? "a question" : "a comment").utf8)
        recorded.request.content.size = recorded.request.content.kept.count
        var request = HttpRequest.post("/x", content: .bytes(coded))
        try request.fields.set("Content-Encoding", to: "gzip")
        #expect(try await played(recorded, request).status == (isSame ? .ok : .notFound))
    }

    @Test func `HEAD and 304 keep the length of the content that they are about`() async throws {
        let head = exchange(
            method: "HEAD", fields: [.init("Content-Length", "1000"), .init("Content-Encoding", "gzip")])
        let response = try await played(head, try HttpRequest(.head, "/x"))
        #expect(
            response.status == .ok && response.fields[.contentLength] == "1000"
                && response.fields["Content-Encoding"] == "gzip")
        let unchanged = try await played(
            exchange(304, fields: [.init("Content-Length", "1000"), .init("ETag", "\"a\"")]))
        #expect(unchanged.status == .notModified && unchanged.fields[.contentLength] == "1000")
        #expect(
            try await played(exchange(fields: [.init("Content-Length", "1000")], bytes: [1])).fields[.contentLength]
                != "1000")
    }

    @Test(arguments: ["dcb", "snappy", "x-custom"])
    func `content in an unknown coding is sent with its coding`(coding: String) async throws {
        let response = try await played(exchange(fields: [.init("Content-Encoding", coding)], bytes: [0xff, 0, 0x80]))
        #expect(response.fields["Content-Encoding"] == coding && response.content.bytes == [0xff, 0, 0x80])
    }

    @Test(arguments: [200, 299, 404, 599, 600, 999])
    func `any final status comes back, with its reason and with bytes that are not UTF-8`(status: Int) async throws {
        var captured = exchange(status)
        captured.reason = "Caf\u{e9}"
        captured.response?.fields.append(CapturedMessage.Field("X-Name", bytes: [0x74, 0xe9]))
        captured.response?.trailers = [.init("grpc-status", "0")]
        let response = try await played(captured)
        #expect(response.status.code == status && response.receivedReason == "Caf\u{e9}")
        #expect(response.fields.rawValues(of: "X-Name") == [[0x74, 0xe9]])
    }

    @Test(arguments: [[0x43, 0x61, 0x66, 0xe9], Array("Caf\u{e9}".utf8), [0xff]] as [[UInt8]])
    func `a reason phrase comes back in its bytes`(reason: [UInt8]) async throws {
        let record = Record(file: FilePath(path()))
        let exchange = try TestExchange([record])
        var response = HttpResponse(.ok, content: .text("a"))
        response.receivedReasonBytes = reason
        exchange.upstream.respond(with: response)
        _ = try await exchange.send(.get("/"))
        await record.finisher?.finish()
        let played = try await TestExchange([try replay(record)]).send(.get("/"))
        #expect(played.receivedReasonBytes == reason)
    }

    @Test func `the names of trailer fields come back with them, RFC 9110 §6.6.2`() async throws {
        var captured = exchange(fields: [.init("Trailer", "X-Sum"), .init("Trailer", "X-End")], bytes: [1])
        captured.response?.trailers = [.init("X-Sum", "1")]
        let response = try await played(captured)
        #expect(response.fields.values(of: .trailer) == ["X-Sum", "X-End"] && response.trailers?["X-Sum"] == "1")
        captured.response?.trailers = []
        #expect(try await played(captured).fields.values(of: .trailer) == [])
    }

    @Test(arguments: [
        "/l\u{e9}", "/x?l=\u{e9}", "/caf\u{c3}\u{a9}?\u{c3}\u{a9}", "/\u{ff}\u{c3}\u{a9}", "/a|b'?{c}",
    ])
    func `a request in any bytes is found again, also percent-encoded`(latin1: String) async throws {
        let target = latin1.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
        let record = Record(file: FilePath(path()))
        _ = try await TestExchange([record]).send(try HttpRequest(.get, received: target))
        await record.finisher?.finish()
        let player = try TestExchange([try replay(record, ["missing": "404"])])
        #expect(try await player.send(try HttpRequest(.get, received: target)).status == .ok)
        let encoded = PercentText.encoded(target) { $0 > 0x20 && $0 < 0x7f && !"|'{}".utf8.contains($0) }
        #expect(try await player.send(try HttpRequest(.get, received: encoded)).status == .ok)
        #expect(try await player.send(try HttpRequest(.get, received: target + [0x78])).status == .notFound)
    }

    @Test func `OPTIONS for the server is found again, and is another request than OPTIONS for the root`() async throws
    {
        let record = Record(file: FilePath(path()))
        _ = try await TestExchange([record]).send(try HttpRequest(.options, "*"))
        await record.finisher?.finish()
        let player = try TestExchange([try replay(record, ["missing": "404"])])
        #expect(try await player.send(try HttpRequest(.options, "*")).status == .ok)
        #expect(try await player.send(try HttpRequest(.options, "/")).status == .notFound)
    }

    @Test func `compared fields match in bytes that are not UTF-8`() async throws {
        var request = HttpRequest.get("/x")
        try request.fields.append("X-Name", raw: [0x74, 0xe9])
        let record = Record(file: FilePath(path()))
        _ = try await TestExchange([record]).send(request)
        await record.finisher?.finish()
        let player = try TestExchange([try replay(record, ["missing": "404", "headers": ["X-Name"]])])
        #expect(try await player.send(request).status == .ok)
    }

    @Test func `a failed attempt is passed over`() async throws {
        let failed =
            "{\"request\":{\"method\":\"get\",\"url\":\"http://a.test/x\"},\"response\":{\"status\":200,\"content\":{},\"_failureText\":\"net::ERR_ABORTED\"}}"
        let good =
            "{\"request\":{\"method\":\"get\",\"url\":\"http://a.test/x\"},\"response\":{\"status\":200,\"content\":{\"text\":\"good\"}}}"
        let archive = try HarReader(Array("{\"log\":{\"entries\":[\(failed),\(good)]}}".utf8))
        let exchange = try TestExchange([Replay(archive.exchanges, missing: .notFound)])
        #expect(try await exchange.send(.get("/x")).content.text == "good")
    }

    @Test(arguments: [("/x/%7Ey?q=%7e", "/x/~y?q=~"), ("/x/~y?q=~", "/x/%7Ey?q=%7E"), ("/a?b=%2f", "/a?b=%2F")])
    func `requests match in their normal form`(recorded: String, asked: String) async throws {
        var captured = exchange(bytes: [1])
        captured.url = "http://a.test" + recorded
        #expect(try await played(captured, .get(asked)).status == .ok)
    }

    @Test func `entries of a recording are in the order of their starts`() {
        var entries = RecordedEntries()
        for (seconds, place) in [(5, 0), (7, 1), (6, 2), (1, 3), (7, 4)] {
            entries.add(WallTime(seconds: Int64(seconds)), place..<place + 1)
        }
        #expect(entries.ordered.map(\.lowerBound) == [3, 0, 2, 1, 4])
    }
}
