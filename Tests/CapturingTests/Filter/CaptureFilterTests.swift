import Capturing
import FoundationEssentials
import HttpWare
import Testing

@Suite struct CaptureFilterTests {
    /// An exchange that has what each operator looks at.
    static func sample() -> CapturedExchange {
        var request = CapturedMessage(fields: [
            .init("Host", "api.example.com"), .init("Content-Type", "application/json"), .init("X-Trace", "abc"),
        ])
        request.content.kept = Array("{\"name\":\"first\nsecond\"}".utf8)
        request.content.size = request.content.kept.count
        var exchange = CapturedExchange(
            id: 17, started: WallTime(seconds: 1_795_262_400), method: "POST",
            url: "https://api.example.com:8443/orders?page=2", version: "HTTP/1.1", listener: "dev", request: request)
        var response = CapturedMessage(fields: [
            .init("content-type", "text/css; charset=utf-8"), .init("Set-Cookie", "a=1"), .init("Set-Cookie", "b=2"),
        ])
        response.content.kept = Array("body { color: red }".utf8)
        response.content.size = 2 << 20
        exchange.response = response
        exchange.status = 404
        exchange.isOpen = false
        exchange.duration = 750_000_000
        exchange.client = "127.0.0.1:5000"
        exchange.server = "10.0.0.9:443"
        exchange.route = "orders"
        exchange.service = "shop"
        exchange.comment = "first line\nlook here"
        exchange.isPinned = true
        exchange.operations = ["GetOrder"]
        return exchange
    }

    @Test(arguments: [
        "~u orders", "orders", "~u ^https://", "~d example.com", "~d ^api\\.example\\.com$", "~m post", "~c 404",
        "~h x-trace",
        "~h '^x-trace: abc$'", "~hq ABC", "~hs 'set-cookie: b=2'", "~b COLOR", "~b 'first.second'", "~bq second",
        "~bs red",
        "~t json", "~t css", "~tq json", "~ts css", "~s", "~a", "~src 5000", "~dst 10\\.0", "~comment '^look'",
        "~marked",
        "~marker default", "~meta 'route: orders'", "~http", "~all", "~route ord", "~service SHOP", "~dur >500ms",
        "~dur > 500ms", "~dur <=1s", "~dur =750ms", "~size >1MiB", "~id 17", "~gql getorder", "~c 0404",
        "~c 4xx", "~c 4XX", "~c >=400", "~c > 403", "~c <=404", "~c =404", "~c 400-499", "~err", "~id >16", "~id 10-20",
        "~id <=17",
    ])
    func `an operator matches what it names`(text: String) throws {
        #expect(try CaptureFilter(text).matches(CaptureFilterTests.sample()))
        #expect(try !CaptureFilter("!" + text).matches(CaptureFilterTests.sample()))
    }

    @Test(arguments: [
        "~u nothing", "~d orders", "~d 8443", "~m get", "~c 5xx", "~c >404", "~c <404",
        "~c 405-599", "~id >17", "~id <17", "~hq set-cookie", "~hs x-trace", "~bq color",
        "~bs second",
        "~tq css", "~ts json", "~q", "~e", "~src 443", "~dst 5000", "~comment '^here'", "~meta status", "~tcp", "~udp",
        "~dns",
        "~websocket", "~ws", "~sse", "~grpc", "~replay", "~replayq", "~replays", "~route shop", "~service orders",
        "~ware mock", "~did held", "~dur >750ms", "~dur <750ms", "~size <1MiB", "~id 1", "~id 99999999999999999999",
        "~gql other",
    ])
    func `an operator does not match anything else`(text: String) throws {
        #expect(try !CaptureFilter(text).matches(CaptureFilterTests.sample()))
        #expect(try CaptureFilter("!" + text).matches(CaptureFilterTests.sample()))
    }

    /// The first column matches the sample, `no` does not.
    @Test(arguments: [
        ("~all no", false), ("~all ~all", true), ("no | ~all ~tcp", false), ("~tcp & ~tcp | ~all", true),
        ("~all | ~all & ~tcp", true), ("!~tcp & ~all", true), ("!(~tcp & ~all)", true), ("!!~all", true),
        ("!!!~all", false),
        ("~tcp ~tcp | ~all", false), ("(~tcp ~tcp) | ~all", true), ("orders|no", true), ("no|never", false),
        ("no | orders", true), ("\"no\"|\"orders\"", true), ("~c 200|~c 404", true), ("~c 200 | ~c 404", true),
        ("~m GET~u x", false), ("(orders)(example)", true), ("orders(example)", true), ("~q&~s", false),
        ("~q|~s", true),
        ("(~q)", false), ("(~s)", true), ("a!b", false), ("~u !orders", false), (" \n~s\t", true), ("\"\"", true),
        ("~u ''", true),
    ])
    func `operators bind as in mitmproxy`(text: String, isMatch: Bool) throws {
        #expect(try CaptureFilter(text).matches(CaptureFilterTests.sample()) == isMatch)
    }

    @Test func `in quotes a backslash stands for itself before anything but a quote or a backslash`() throws {
        #expect(try CaptureFilter("~u \"page=\\d$\"").matches(CaptureFilterTests.sample()))
        #expect(try CaptureFilter("~u \"api\\\\.example\"").matches(CaptureFilterTests.sample()))
        #expect(try CaptureFilter("~bq '\"name\":\\\"first'").matches(CaptureFilterTests.sample()))
        #expect(try CaptureFilter("~bq \"'?\\\"name\"").matches(CaptureFilterTests.sample()))
    }

    @Test(arguments: [
        ("", 1, "empty"), ("  ", 3, "empty"), ("~foo", 1, "~foo does not exist"),
        ("a ~markd", 3, "did you mean \"marked\"?"),
        ("foo~bar", 4, "quotes"), ("~u", 3, "regular expression"), ("~u ~q", 4, "regular expression"),
        ("~u (a)", 4, "quotes"),
        ("(a", 1, "not closed"), ("a)", 2, "closes nothing"), ("()", 2, "missing"), ("a & ", 5, "missing"),
        ("| a", 1, "missing before |"),
        ("a || b", 4, "missing before |"), ("\"a", 1, "not closed"), ("~c", 3, "digits"), ("~c 2xy", 4, "digits"),
        ("~c 6xx", 4, "1xx to 5xx"), ("~c 5", 4, "~c 5xx"), ("~c 40", 4, "three digits"),
        ("~c 5xxx", 4, "class"), ("~c >=x", 6, "digits"), ("~c 500-", 8, "end of the range"),
        ("~c 599-500", 4, "500-599"),
        ("~c200", 3, "a space"), ("~c -1", 4, "digits"), ("~dur 5s", 6, "comparison"), ("~dur >5", 7, "duration"),
        ("~size >1mib", 8, "byte count"), ("~id x", 5, "digits"), ("~u \"a\\\\(b\" ~u (", 15, "quotes"),
        ("~u 'x(b'", 8, "parenthesis"), ("é ~nope", 3, "~nope"), ("~b \"(\"", 6, "malformed"), ("!", 2, "missing"),
    ])
    func `a mistake is refused with its column`(text: String, column: Int, part: String) throws {
        do {
            _ = try CaptureFilter(text)
            Issue.record("\(text) is accepted")
        } catch {
            #expect(error.column == column, "\(error)")
            #expect(error.sentence.contains(part), "\(error)")
        }
    }

    @Test func `length and depth are bounded`() throws {
        #expect(throws: FilterFault.self) { try CaptureFilter(String(repeating: "a", count: 4097)) }
        #expect(throws: Never.self) { try CaptureFilter(String(repeating: "a", count: 4096)) }
        let deep = String(repeating: "(", count: 100) + "a" + String(repeating: ")", count: 100)
        #expect(throws: Never.self) { try CaptureFilter(deep) }
        #expect(throws: FilterFault.self) { try CaptureFilter("(" + deep + ")") }
        #expect(try CaptureFilter(String(repeating: "!", count: 4000) + "~all").matches(CaptureFilterTests.sample()))
    }

    @Test func `wares are found by name and by what they did`() throws {
        var exchange = CaptureFilterTests.sample()
        exchange.report = try CaptureFilterTests.report([
            ("mock", "aborted"), ("tokenRefresh", "held"), ("retry", "retried after 503, 2nd of 3"),
            ("timeout", "skipped"),
        ])
        for text in [
            "~ware mock", "~ware refresh", "~did held", "~did HELD", "~did held|hit", "~did mocked", "~did retried",
            "~did tokenRefresh:held", "~did collapsed",
        ] { #expect(try CaptureFilter(text).matches(exchange), "\(text)") }
        for text in ["~ware timeout", "~did hel", "~did mock:held", "~did hit"] {
            #expect(try !CaptureFilter(text).matches(exchange), "\(text)")
        }
    }

    /// A report in which wares of these names came to these decisions.
    static func report(_ wares: [(String, String)]) throws -> ExchangeReport {
        let steps = wares.map { ware, decision in
            """
            {"ware":"\(ware)","side":"request","attempt":1,"decision":"\(decision)","text":"\(decision)","start":0,"duration":0}
            """
        }
        let json = """
            {"id":"17","time":"2026-11-21T00:00:00Z","duration":750,"listener":"dev","method":"POST","target":"/","protocol":"HTTP/1.1",
            "status":404,"end":"completed","responder":"upstream","cache":"collapsed","attempts":1,"replays":0,"reused":false,
            "requestBytes":0,"responseBytes":0,"cut":false,"wares":[\(steps.joined(separator: ","))],"phases":[
            {"phase":"connect","attempt":1,"start":1,"duration":20},{"phase":"backoff","attempt":2,"start":21,"duration":9},
            {"phase":"queue","attempt":2,"start":30,"duration":5},{"phase":"dns","attempt":2,"start":35,"duration":2},
            {"phase":"connect","attempt":2,"start":37,"duration":3},{"phase":"tls","attempt":2,"start":40,"duration":7},
            {"phase":"send","attempt":2,"start":47,"duration":1.5},{"phase":"firstByte","attempt":2,"start":48.5,"duration":600},
            {"phase":"content","attempt":2,"start":648.5,"duration":100}]}
            """
        return try JSONDecoder().decode(ExchangeReport.self, from: Data(json.utf8))
    }

    /// `hello hello hello hello` as gzip.
    static let zipped: [UInt8] = [
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8, 0x40,
        0x27, 0x01,
        0xe3, 0x51, 0x3d, 0x8d, 0x17, 0x00, 0x00, 0x00,
    ]

    @Test func `content is decoded as far as it was captured`() throws {
        var exchange = CaptureFilterTests.sample()
        let zipped = CaptureFilterTests.zipped
        exchange.response?.fields.append(.init("Content-Encoding", "gzip"))
        exchange.response?.content.kept = zipped
        #expect(try CaptureFilter("~bs '^hello'").matches(exchange))
        exchange.response?.content.kept = Array(zipped.prefix(18))
        #expect(try CaptureFilter("~bs '^hello'").matches(exchange))
        exchange.response?.content.kept = Array("not gzip".utf8)
        #expect(try CaptureFilter("~bs 'not gzip'").matches(exchange))
    }

    @Test func `messages of a WebSocket are content of their side`() throws {
        var exchange = CaptureFilterTests.sample()
        let time = WallTime(seconds: 0)
        exchange.kind = .websocket
        exchange.messages = [
            CapturedPiece(.send, .webSocket(opcode: 1), time: time, data: Array("ping me".utf8), size: 7),
            CapturedPiece(.receive, .webSocket(opcode: 1), time: time, data: Array("pong".utf8), size: 4),
        ]
        #expect(try CaptureFilter("~ws ~websocket ~b ping ~bq ping ~bs pong ! ~bs ping ! ~bq pong").matches(exchange))
    }

    @Test func `a match over its limit does not match, and decides nothing`() throws {
        var exchange = CaptureFilterTests.sample()
        // The letter at the end keeps PCRE2 from seeing at once that nothing can match.
        exchange.response?.content.kept = Array((String(repeating: "a", count: 100_000) + "d").utf8)
        let filter = try CaptureFilter("~bs '(a+)+(b|c)+d'")
        #expect(filter.outcome(exchange) == .limitReached && !filter.matches(exchange))
        let other = try CaptureFilter("! ~bs '(a+)+(b|c)+d'")
        #expect(other.outcome(exchange) == .limitReached && !other.matches(exchange))
        #expect(try CaptureFilter("~bs '(a+)+(b|c)+d' | ~all").matches(exchange))
    }

    // MARK: Phases

    @Test func `an operator that needs a later phase is refused with its column`() throws {
        let expected: [(String, CapturePhase)] = [
            ("~c 200", .responseHead), ("~bs x", .responseContent), ("~dur >1s", .end), ("~t x", .responseHead),
            ("~bq x", .requestContent), ("~e", .end), ("~did held", .end), ("~gql x", .requestContent),
            ("~size >1B", .responseContent), ("~h x", .responseHead), ("~b x", .responseContent),
            ("~dst x", .responseHead),
        ]
        for (text, phase) in expected {
            let filter = try CaptureFilter("~d x & " + text)
            #expect(filter.needs.map(\.phase) == [phase] && filter.needs.map(\.column) == [8])
            #expect(filter.needs.map(\.name) == [String(text.prefix { $0 != " " })])
            #expect(throws: FilterFault.self) { try filter.check(at: .requestHead) }
            #expect(throws: Never.self) { try filter.check(at: phase) }
        }
        #expect(throws: Never.self) {
            try CaptureFilter("~d x ~m GET ~hq a ~tq b ~q | ~s ~all").check(at: .requestHead)
        }
        do {
            try CaptureFilter("~u a ~t b").check(at: .requestContent)
            Issue.record("is accepted")
        } catch {
            #expect(error.column == 6 && error.sentence.contains("write ~tq"), "\(error)")
        }
    }

    @Test func `a filter is undecided until what it needs is known`() throws {
        var exchange = CaptureFilterTests.sample()
        exchange.response = nil
        exchange.status = nil
        func outcome(_ text: String, _ phase: CapturePhase = .requestHead) throws -> CaptureFilter.Outcome {
            try CaptureFilter(text).outcome(exchange, at: phase)
        }
        #expect(try outcome("~c 404") == .undecided)
        #expect(try outcome("! ~c 404") == .undecided)
        #expect(try outcome("~c 404 | ~m POST") == .matches)
        #expect(try outcome("~c 404 & ~m GET") == .differs)
        #expect(try outcome("~t json") == .matches)
        #expect(try outcome("~t css") == .undecided)
        #expect(try outcome("~q") == .matches)
        #expect(try outcome("~s") == .differs)
        #expect(try outcome("~bq first") == .undecided)
        #expect(try outcome("~bq first", .requestContent) == .matches)
    }

    // MARK: As an option

    @Test func `a filter is an option's value`() throws {
        #expect(try CaptureFilter(optionText: "~d example.com").optionText == "~d example.com")
        do {
            _ = try CaptureFilter(optionText: "~d a ~nope")
            Issue.record("is accepted")
        } catch {
            #expect(error.problem == "\"~d a ~nope\" is not a filter")
            #expect(error.hint.hasPrefix("see column 6: the operator ~nope does not exist"), "\(error.hint)")
        }
    }
}
