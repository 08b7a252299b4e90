import Foundation
import HttpWareTesting
import Testing

@testable import HttpWare
@testable import GatewayWares
@testable import Wares

@Suite struct AccessLogTests {
    private let folder: LogFolder

    init() throws { folder = try LogFolder() }

    /// An exchange whose log is in the folder.
    private func exchange(
        _ options: [String: ConfigNode] = [:], before: [any Ware] = [], setting: TestExchange.Setting = .init()
    ) throws -> TestExchange {
        var entries = options.map { ConfigNode.Entry(key: $0.key, location: .code, value: $0.value) }
        let output = ConfigNode(.scalar("file:" + folder.file("log"), isQuoted: true))
        entries.append(.init(key: "output", location: .code, value: output))
        let log = try TestExchange.make(AccessLog.self, ConfigNode(.map(entries)))
        return try TestExchange(before + [log], setting: setting)
    }

    private func lines() -> [String] {
        #expect(LogWriter.shared.flush())
        return folder.lines("log")
    }

    @Test func `wares says what each ware did, in its order`() async throws {
        struct Held: Middleware {
            func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
                exchange.note("for \"reasons\"")
                return .pass
            }
        }
        _ = try await exchange(["wares": "true"], before: [Held()]).send(.get("/"))
        let wares = try #require(try objects().first?["wares"] as? [[String: Any]])
        #expect(wares.map { $0["ware"] as? String } == ["Held", "AccessLog"])
        #expect(wares.map { $0["decision"] as? String } == ["passed for \"reasons\"", "passed"])
        _ = try await exchange(before: [Held()]).send(.get("/"))
        #expect(try objects().last?["wares"] == nil)
    }

    @Test func `a target that is not UTF-8 is percent-encoded, and a field is read as ISO 8859-1`() async throws {
        var fields = HttpFields()
        try fields.append(.userAgent, raw: [0x41, 0xe9])
        let target: [UInt8] = Array("/l".utf8) + [0xe9] + Array("?q=".utf8) + [0xe9]
        _ = try await exchange().send(try HttpRequest(.get, received: target, fields: fields))
        let line = try #require(try objects().first)
        #expect(line["target"] as? String == "/l%E9?q=%E9" && line["userAgent"] as? String == "A\u{e9}")
    }

    @Test(arguments: [true, false])
    func `bytes are counted as sent, and unfilteredBytes before compress`(isOfOrigin: Bool) async throws {
        let text = String(repeating: "again and ", count: 1000)
        var answer = HttpResponse(.ok, content: .text(text))
        try answer.fields.set(.contentType, to: "text/plain")
        struct Answers: Middleware {
            let response: HttpResponse
            func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .abort(with: response) }
        }
        let template = ConfigNode(.scalar("{bytes} {unfilteredBytes}", isQuoted: true))
        for options in [[:], ["format": "template", "template": template]] as [[String: ConfigNode]] {
            let exchange = try exchange(
                options, before: [Compress() as any Ware] + (isOfOrigin ? [] : [Answers(response: answer)]))
            exchange.upstream.always(respondWith: answer)
            let response = try await exchange.send(.get("/", fields: ["Accept-Encoding": "gzip"]))
            let sent = try #require(response.content.bytes?.count)
            #expect(sent < 1000)
            if options.isEmpty {
                let object = try #require(try objects().last)
                #expect(object["bytes"] as? Int == sent)
                #expect(object["unfilteredBytes"] as? Int == text.utf8.count)
            } else {
                #expect(lines().last == "\(sent) \(text.utf8.count)")
            }
        }
    }

    @Test func `content that no filter changed is counted once`() async throws {
        let exchange = try exchange(before: [Compress()])
        exchange.upstream.always(respondWith: HttpResponse(.ok, content: .text("short")))
        _ = try await exchange.send(.get("/", fields: ["Accept-Encoding": "gzip"]))
        let object = try #require(try objects().last)
        #expect(object["bytes"] as? Int == 5)
        #expect(object["unfilteredBytes"] == nil)
    }

    @Test func `no format shows what is named like a credential in a target or in Referer`() async throws {
        let request = HttpRequest.get(
            "/a?token=hush&b=1",
            fields: ["Referer": "http://me:hush@x/?code=hush&q=2", "Authorization": "hush", "X-A": "1"])
        _ = try await exchange().send(request)
        let object = try #require(try objects().first)
        #expect(object["target"] as? String == "/a?token=…&b=1")
        #expect(object["referer"] as? String == "http://…@x/?code=…&q=2")
        _ = try await exchange(["format": "combined"]).send(request)
        // Each exchange has a loop of its own, and lines of several loops are in no order.
        _ = lines()
        let template =
            "{target} {request.query.token} {request.query.b} {request.header.Authorization} "
            + "{request.header.X-A} {request.query.secret}"
        let text = ConfigNode(.scalar(template, isQuoted: true))
        _ = try await exchange(["format": "template", "template": text]).send(request)
        _ = lines()
        _ = try await exchange(["format": "template", "template": text, "redact": "X-A"]).send(request)
        let written = lines()
        #expect(written[1].contains(#""GET /a?token=\xe2\x80\xa6&b=1 HTTP/1.1""#))
        #expect(written[1].contains(#""http://\xe2\x80\xa6@x/?code=\xe2\x80\xa6&q=2""#))
        #expect(written[2] == #"/a?token=\xe2\x80\xa6&b=1 … 1 … 1 -"#)
        #expect(written[3] == #"/a?token=\xe2\x80\xa6&b=1 … 1 hush … -"#)
    }

    @Test func `the principal is a member, the user in combined, and a placeholder`() async throws {
        struct Naming: Middleware {
            let names: [String]
            func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
                for name in names { exchange.authenticated(as: Principal(method: "x", name: name)) }
                return .pass
            }
        }
        var setting = TestExchange.Setting()
        setting.certificate = TlsClientIdentity(subject: "CN=anna")
        let template: ConfigNode = "{principal} {status}"
        let people: [([String], TestExchange.Setting)] = [
            ([], .init()), ([], setting), (["joe", "a \"b [c]\n\\"], setting),
        ]
        let formats: [[String: ConfigNode]] = [
            [:], ["format": "combined"], ["format": "template", "template": template],
        ]
        for (names, setting) in people {
            for format in formats {
                _ = try await exchange(format, before: [Naming(names: names)], setting: setting).send(.get("/"))
                // Each exchange has a loop of its own, and lines of several loops are in no order.
                _ = lines()
            }
        }
        let written = lines()
        #expect(!written[0].contains("principal") && written[3].contains(#""principal":"CN=anna""#))
        #expect(written[6].contains(#""principal":"a \"b [c]\u000a\\""#))
        #expect(written[1].hasPrefix("203.0.113.7 - - [") && written[4].hasPrefix("203.0.113.7 - CN=anna ["))
        #expect(written[7].hasPrefix(#"203.0.113.7 - a\x20\x22b\x20[c]\x0a\x5c ["#))
        #expect(written[2] == "- 200" && written[5] == "CN=anna 200")
    }

    @Test func `wares needs JSON`() {
        #expect(throws: ConfigError.self) {
            try TestExchange.make(AccessLog.self, ["format": "combined", "wares": "true"])
        }
    }

    private func objects() throws -> [[String: Any]] {
        try lines().map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line)")
        }
    }

    @Test func `a line describes the exchange, as one JSON object`() async throws {
        let exchange = try exchange()
        exchange.upstream.respond(
            with: HttpResponse(.created, content: .text("hello")), after: .microseconds(1_234_567))
        let pending = await exchange.start(
            .post("/a?b=1", fields: ["User-Agent": "curl/8", "Referer": "http://x/"], content: .text("abc")))
        try await eventually { !exchange.upstream.requests.isEmpty }
        await exchange.advance(by: .microseconds(1_234_567))
        _ = try await pending.response()
        let object = try #require(try objects().first)
        #expect(object["time"] as? String == "2026-01-01T00:00:01.234Z")
        #expect(object["client"] as? String == "203.0.113.7")
        #expect(object["method"] as? String == "POST")
        #expect(object["target"] as? String == "/a?b=1")
        #expect(object["host"] as? String == "example.test")
        #expect(object["protocol"] as? String == "HTTP/1.1")
        #expect(object["status"] as? Int == 201)
        #expect(object["bytes"] as? Int == 5)
        #expect(object["duration"] as? Double == 1234.567)
        #expect(object["upstream"] as? String == "127.0.0.1:\(exchange.upstream.port)")
        #expect(object["route"] as? String == "test")
        #expect(object["service"] as? String == "upstream")
        #expect(object["responder"] as? String == "upstream")
        #expect(object["userAgent"] as? String == "curl/8")
        #expect(object["referer"] as? String == "http://x/")
        for absent in ["id", "fault", "end", "fields"] { #expect(object[absent] == nil) }
    }

    @Test func `the client's request is logged as it came, whatever wares made of it`() async throws {
        let exchange = try exchange(before: [
            try TestExchange.make(UserAgent.self, ["value": "other", "mode": "replace"]),
            try TestExchange.make(RequestHeaders.self, ["set": ["Host": "changed.example"], "remove": ["Referer"]]),
            try TestExchange.make(Rewrite.self, ["path": ["add": "/x"]]),
        ])
        _ = try await exchange.send(.get("/a", fields: ["User-Agent": "mine", "Referer": "http://r/"]))
        let object = try #require(try objects().first)
        #expect(object["userAgent"] as? String == "mine")
        #expect(object["referer"] as? String == "http://r/")
        #expect(object["host"] as? String == "example.test")
        #expect(object["target"] as? String == "/a")
    }

    @Test func `an id that was made, and a fault, are told`() async throws {
        let exchange = try exchange(before: [RequestId()])
        exchange.upstream.refuse()
        _ = try await exchange.send(.get("/"))
        let object = try #require(try objects().first)
        #expect(object["id"] as? String == exchange.outcomes.first?.id)
        #expect(object["id"] != nil)
        #expect(object["status"] as? Int == 502)
        #expect(object["fault"] as? String == "connectionRefused")
        #expect(object["responder"] as? String == "gateway")
    }

    @Test func `a client that left is logged with 499`() async throws {
        let exchange = try exchange()
        exchange.upstream.neverRespond()
        await exchange.start(.get("/gone")).leave()
        let object = try #require(try objects().first)
        #expect(object["status"] as? Int == 499)
        #expect(object["end"] as? String == "clientLeft")
    }

    @Test func `a line stays one line and has no words of its own, for any request`() async throws {
        let exchange = try exchange()
        var fields = HttpFields()
        let hostile = "\",\"status\":200}{\"a\":\"\\\u{9b}é"
        try fields.append(.userAgent, hostile)
        _ = try await exchange.send(.get("/\"\\{}", fields: fields))
        let lines = self.lines()
        #expect(lines.count == 1)
        let object = try #require(try objects().first)
        #expect(object["userAgent"] as? String == hostile)
        #expect(object["target"] as? String == "/\"\\{}")
        #expect(lines[0].unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7f...0x9f).contains($0.value) })
    }

    @Test func `fields that are asked for are logged as received, secrets as …`() async throws {
        let exchange = try exchange(["fields": ["Accept", "Authorization", "X-Api-Key", "X-None"]])
        _ = try await exchange.send(
            .get("/", fields: ["Accept": "*/*", "authorization": "Bearer secret", "X-API-Key": "secret"]))
        let object = try #require(try objects().first)
        #expect(
            object["fields"] as? [String: String]
                == ["accept": "*/*", "authorization": "…", "x-api-key": "…"])
        #expect(!lines().joined().contains("secret"))
    }

    @Test func `no field is logged unless it is asked for`() async throws {
        let exchange = try exchange()
        _ = try await exchange.send(.get("/", fields: ["Authorization": "Bearer secret", "Cookie": "secret"]))
        #expect(!lines().joined().contains("secret"))
    }

    @Test func `a sample of nothing still has errors`() async throws {
        let exchange = try exchange(["sample": "0"])
        for _ in 0..<20 { _ = try await exchange.send(.get("/fine")) }
        exchange.upstream.respond(with: HttpResponse(.serviceUnavailable))
        _ = try await exchange.send(.get("/error"))
        #expect(try objects().map { $0["target"] as? String } == ["/error"])
    }

    @Test func `a sample without exceptions has none of them`() async throws {
        let exchange = try exchange(["sample": "0", "always": []])
        exchange.upstream.respond(with: HttpResponse(.serviceUnavailable))
        _ = try await exchange.send(.get("/error"))
        #expect(lines().isEmpty)
    }

    @Test func `the combined format is Apache's and nginx's`() async throws {
        let exchange = try exchange(["format": "combined"])
        exchange.upstream.respond(with: HttpResponse(.ok, content: .text("hello")))
        var fields = HttpFields()
        try fields.append(.userAgent, "a\"b")
        _ = try await exchange.send(.get("/a?b", fields: fields))
        #expect(
            lines() == [
                "203.0.113.7 - - [01/Jan/2026:00:00:00 +0000] \"GET /a?b HTTP/1.1\" 200 5 \"-\" \"a\\x22b\""
            ])
    }

    @Test func `a template may hold what only an ended exchange knows`() async throws {
        let exchange = try exchange([
            "format": "template",
            "template": "{client.ip} {request.method} {target} {status} {bytes} {fault} {request.header.X-A} {{end}",
        ])
        _ = try await exchange.send(.get("/a", fields: ["X-A": "q\"q"]))
        #expect(lines() == ["203.0.113.7 GET /a 200 0 - q\\x22q {end}"])
    }

    @Test func `the condition of an entry decides which exchanges are logged`() async throws {
        let output = ConfigNode(.scalar("file:" + folder.file("log"), isQuoted: true))
        let log = try TestExchange.make(AccessLog.self, ["output": output])
        var options = ConditionOptions()
        options.statuses = StatusSet([400...599])
        let exchange = try TestExchange(
            chain: WareChain(middlewares: [], postwares: [ChainEntry(log, condition: Condition(options))]))
        _ = try await exchange.send(.get("/fine"))
        exchange.upstream.respond(with: HttpResponse(.notFound))
        _ = try await exchange.send(.get("/missing"))
        #expect(try objects().map { $0["target"] as? String } == ["/missing"])
    }

    @Test(
        arguments: [
            ["format": "xml"], ["format": "template"], ["template": "{status}"],
            ["format": "template", "template": "{statuss}"], ["format": "template", "template": "{status"],
            ["format": "combined", "fields": ["Accept"]], ["output": "file:/nonexistent/x.log"],
            ["output": "file:/tmp"],
            ["output": "disk"], ["sample": "2"], ["always": ["never"]], ["redact": ["a b"]],
        ] as [ConfigNode])
    func `options that cannot be meant are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(AccessLog.self, options) }
    }

    @Test func `a trace that a ware knows is told`() async throws {
        let exchange = try exchange(before: [Traceparent()])
        let received: HttpFields = ["traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"]
        _ = try await exchange.send(.get("/", fields: received))
        let object = try #require(try objects().first)
        #expect(object["traceId"] as? String == "0af7651916cd43dd8448eb211c80319c")
    }
}
