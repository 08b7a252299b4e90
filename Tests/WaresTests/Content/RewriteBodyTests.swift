import HttpWareTesting
import Testing

@testable import HttpWare
@testable import GatewayWares

@Suite(.timeLimit(.minutes(2))) struct RewriteBodyTests {
    private static let rule: ConfigNode = ["find": "http://internal", "replace": "https://public"]
    private static let text = "<a href=\"http://internal/a\">a</a> <a href='http://internal/b'>b</a>\n"
    private static let rewritten = "<a href=\"https://public/a\">a</a> <a href='https://public/b'>b</a>\n"

    private func ware(_ options: ConfigNode.Entry..., rules: ConfigNode = [rule]) throws -> RewriteBody {
        let all = [ConfigNode.Entry(key: "rules", location: .code, value: rules)] + options
        return try TestExchange.make(RewriteBody.self, ConfigNode(.map(all)))
    }

    private func option(_ key: String, _ value: ConfigNode) -> ConfigNode.Entry {
        .init(key: key, location: .code, value: value)
    }

    private func page(
        _ fields: HttpFields = [:], status: HttpStatus = .ok, type: String? = "text/html",
        content: HttpContent = .text(text)
    ) throws -> HttpResponse {
        var response = HttpResponse(status, fields: fields, content: content)
        if let type { try response.fields.set(.contentType, to: type) }
        return response
    }

    private func get(
        _ response: HttpResponse, _ ware: RewriteBody, method: HttpMethod = .get, _ more: [any Ware] = []
    ) async throws -> (response: HttpResponse, notes: [String]) {
        let exchange = try TestExchange(observing: [ware] + more)
        exchange.upstream.always(respondWith: response)
        let answer = try await exchange.send(.make(method, "/"))
        return (answer, exchange.notes)
    }

    // MARK: Rules

    @Test func `each rule applies to the result of those before it`() async throws {
        let ware = try ware(rules: [
            RewriteBodyTests.rule, ["regex": "(?i)<A href=(.)([^'\"]*)\\1>", "replace": "[$2|$$]", "max": 1],
        ])
        let (response, notes) = try await get(try page(), ware)
        #expect(response.content.text == "[https://public/a|$]a</a> <a href='https://public/b'>b</a>\n")
        #expect(notes.contains("3 replacements"))
    }

    @Test func `a rule with max ends after that many replacements, in each message`() async throws {
        let ware = try ware(rules: [["find": "http://internal", "replace": "X", "max": 1]])
        for _ in 0..<2 {
            let text = try await get(try page(), ware).response.content.text
            #expect(text == "<a href=\"X/a\">a</a> <a href='http://internal/b'>b</a>\n")
        }
    }

    @Test(arguments: [
        ("^", "> ", "> äb\nc"), ("(?m)^", "> ", "> äb\n> c"), ("x*", "-", "-ä-b-\n-c-"),
        ("(b)|c", "[$1$0]", "ä[bb]\n[c]"),
        ("(?<=ä)b", "B", "äB\nc"), ("c$", "", "äb\n"),
    ])
    func `empty matches and lookbehinds are replaced, never inside a character`(
        regex: String, replacement: String, result: String
    ) async throws {
        let ware = try ware(rules: [
            ["regex": ConfigNode(stringLiteral: regex), "replace": ConfigNode(stringLiteral: replacement)]
        ])
        #expect(try await get(try page(content: .text("äb\nc")), ware).response.content.text == result)
    }

    // MARK: Long content

    @Test(arguments: [(32 << 10, false), (32 << 10 | 32, true)])
    func `long content is edited on other threads`(size: Int, isElsewhere: Bool) throws {
        let exchange = Exchange(loop: try EventLoop(name: "edits", clock: ManualClock()))
        exchange.heldRequest = .get("/")
        exchange.responder = .upstream
        for isCoded in [false, true] {
            var response = try page(content: .bytes(Array(repeating: 0x61, count: isCoded ? size >> 5 : size)))
            if isCoded { try response.fields.set(.contentEncoding, to: "gzip") }
            let answer = try ware().handle(&response, in: exchange)
            guard case .wait = answer else {
                #expect(!isElsewhere)
                continue
            }
            #expect(isElsewhere)
        }
    }

    @Test(arguments: [nil, ContentCoding.gzip])
    func `long content is rewritten as short content is`(coding: ContentCoding?) async throws {
        let text = String(repeating: RewriteBodyTests.text, count: 5000)
        var response = try page(content: .bytes(try coding.map { try CodedText.encode(text, $0) } ?? Array(text.utf8)))
        if let coding { try response.fields.set(.contentEncoding, to: coding.rawValue) }
        let (answer, notes) = try await get(response, ware())
        #expect(
            try CodedText.decode(answer.content, answer.fields)
                == String(repeating: RewriteBodyTests.rewritten, count: 5000))
        #expect(notes.contains("10000 replacements"))
    }

    @Test func `all regular expressions of one content have the time of one`() throws {
        let rewriting = BodyRewriting(
            rules: [try RewriteRule(regex: Pattern("a[^x]*[yz]"), replace: ""), RewriteRule(find: "b", replace: "c")],
            types: [], maxBody: .mebibytes(1), streams: false, onFailure: .pass)
        #expect(throws: Pattern.LimitReached.self) {
            try rewriting.rewrite(Array(repeating: 0x61, count: 500_000), within: .milliseconds(20))
        }
        #expect(throws: Pattern.LimitReached.self) { try rewriting.rewrite([0x62], within: .zero) }
    }

    // MARK: Codings

    @Test(arguments: ContentCoding.allCases, [false, true])
    func `coded content is decoded, rewritten and coded again`(coding: ContentCoding, streams: Bool) async throws {
        let ware = try ware(option("stream", streams ? "true" : "false"))
        var response = try page(content: .bytes(try CodedText.encode(RewriteBodyTests.text, coding)))
        try response.fields.set(.contentEncoding, to: coding.rawValue)
        let (answer, _) = try await get(response, ware)
        #expect(answer.fields[.contentEncoding] == coding.rawValue)
        #expect(try CodedText.decode(answer.content, answer.fields) == RewriteBodyTests.rewritten)
    }

    @Test(arguments: [false, true])
    func `content with several codings goes on without coding`(streams: Bool) async throws {
        let ware = try ware(option("stream", streams ? "true" : "false"))
        let twice = try CodedText.encode(try CodedText.encode(RewriteBodyTests.text, .gzip), .br)
        let response = try page(["Content-Encoding": "gzip, br"], content: .bytes(twice))
        let (answer, _) = try await get(response, ware)
        #expect(!answer.fields.contains(.contentEncoding))
        #expect(answer.content.text == RewriteBodyTests.rewritten)
    }

    // MARK: Fields

    private static let described: HttpFields = [
        "ETag": "\"a\"", "Content-Digest": "sha-256=:AAAA:", "Repr-Digest": "sha-256=:AAAA:", "Digest": "SHA-256=AAAA",
        "Content-MD5": "AAAA", "Accept-Ranges": "bytes", "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT",
    ]
    private static let gone: [FieldName] = ["Content-Digest", "Repr-Digest", "Digest", "Content-MD5", .acceptRanges]

    @Test(arguments: [false, true])
    func `the ETag becomes weak and digests go, other fields stay`(streams: Bool) async throws {
        let ware = try ware(option("stream", streams ? "true" : "false"))
        let (answer, _) = try await get(try page(RewriteBodyTests.described), ware)
        #expect(answer.content.text == RewriteBodyTests.rewritten)
        #expect(answer.fields[.etag] == "W/\"a\"")
        for name in RewriteBodyTests.gone { #expect(!answer.fields.contains(name), "\(name)") }
        #expect(answer.fields.contains(.lastModified))
    }

    @Test func `content without a match keeps all fields and bytes`() async throws {
        let coded = try CodedText.encode("nothing to see", .gzip)
        var response = try page(RewriteBodyTests.described, content: .bytes(coded))
        try response.fields.set(.contentEncoding, to: "gzip")
        let (answer, notes) = try await get(response, try ware())
        #expect(answer.content.bytes == coded)
        #expect(answer.fields[.etag] == "\"a\"")
        for name in RewriteBodyTests.gone { #expect(answer.fields.contains(name), "\(name)") }
        #expect(notes.contains("0 replacements"))
    }

    @Test func `a response to HEAD has no fields that would be untrue of GET`() async throws {
        var response = try page(RewriteBodyTests.described)
        response.content = .text(RewriteBodyTests.text)
        let (answer, _) = try await get(response, try ware(), method: .head)
        #expect(answer.fields[.etag] == "W/\"a\"")
        for name in RewriteBodyTests.gone + [.contentLength] { #expect(!answer.fields.contains(name), "\(name)") }
    }

    @Test(arguments: ["text/html", nil] as [String?])
    func `the ETag of a 304 becomes weak - RFC 9110 §15.4.5`(type: String?) async throws {
        let response = try page(RewriteBodyTests.described, status: .notModified, type: type, content: .none)
        let (answer, _) = try await get(response, try ware())
        #expect((answer.status, answer.fields[.etag]) == (.notModified, "W/\"a\""))
    }

    // MARK: Which responses

    @Test func `partial content is never rewritten`() async throws {
        let (answer, _) = try await get(
            try page(["Content-Range": "bytes 0-66/200", "ETag": "\"a\""], status: .partialContent), try ware())
        #expect(answer.content.text == RewriteBodyTests.text)
        #expect(answer.fields[.etag] == "\"a\"")
    }

    @Test(
        arguments: [
            ("text/html; charset=utf-8", true), ("application/json", true), ("application/xml", true),
            ("image/png", false),
            ("application/octet-stream", false), ("text/event-stream", false), (nil, false),
        ] as [(String?, Bool)])
    func `content of the types is rewritten, other content not`(type: String?, isRewritten: Bool) async throws {
        let (answer, _) = try await get(try page(type: type), try ware())
        #expect((answer.content.text == RewriteBodyTests.rewritten) == isRewritten)
    }

    @Test func `no-transform of the response is respected`() async throws {
        let (answer, _) = try await get(try page(["Cache-Control": "max-age=60, No-Transform"]), try ware())
        #expect(answer.content.text == RewriteBodyTests.text)
    }

    @Test func `204 and empty content pass`() async throws {
        for status in [HttpStatus.noContent, .ok] {
            let (answer, _) = try await get(try page(["ETag": "\"a\""], status: status, content: .none), try ware())
            #expect((answer.status, answer.fields[.etag], answer.content.isEmpty) == (status, "\"a\"", true))
        }
    }

    // MARK: Failures

    @Test func `larger content passes unchanged, or is refused with 502`() async throws {
        let large = HttpContent.text(String(repeating: "http://internal ", count: 20_000))
        let passing = try ware(option("maxBody", "1KiB"))
        let (answer, notes) = try await get(try page(["ETag": "\"a\""], content: large), passing)
        #expect(answer.content.bytes == large.bytes)
        #expect(answer.fields[.etag] == "\"a\"")
        #expect(notes == ["not edited: the content is larger than 1024 bytes"])
        let refusing = try ware(option("maxBody", "1KiB"), option("onFailure", "refuse"))
        #expect(try await get(try page(content: large), refusing).response.status == .badGateway)
    }

    @Test func `content that decodes to more than maxBody is not decoded further`() async throws {
        let bomb = try CodedText.encode([UInt8](repeating: 0x61, count: 50 << 20), .gzip)
        var response = try page(content: .bytes(bomb))
        try response.fields.set(.contentEncoding, to: "gzip")
        let (answer, notes) = try await get(response, try ware())
        #expect(answer.content.bytes == bomb)
        #expect(notes == ["not edited: the content is larger than 1048576 bytes"])
        let refusing = try ware(option("onFailure", "refuse"))
        #expect(try await get(response, refusing).response.status == .badGateway)
    }

    @Test func `content that would become larger than maxBody is a failure`() async throws {
        let content = HttpContent.text(String(repeating: "a", count: 1000))
        for rule: ConfigNode in [["find": "a", "replace": "12345678"], ["regex": "a", "replace": "12345678"]] {
            let ware = try ware(option("maxBody", "4KiB"), rules: [rule])
            let (answer, notes) = try await get(try page(content: content), ware)
            #expect(answer.content.bytes == content.bytes)
            #expect(notes.contains { $0.hasPrefix("not edited: ") })
        }
    }

    @Test(arguments: ["gzip", "br", "zstd", "compress"])
    func `content that is not what its coding says passes unchanged, or is refused`(coding: String) async throws {
        var response = try page(["ETag": "\"a\""])
        try response.fields.set(.contentEncoding, to: coding)
        let (answer, notes) = try await get(response, try ware())
        #expect(answer.content.text == RewriteBodyTests.text)
        #expect((answer.fields[.contentEncoding], answer.fields[.etag]) == (coding, "\"a\""))
        #expect(notes.contains { $0.hasPrefix("not edited: ") })
        let refusing = try ware(option("onFailure", "refuse"))
        #expect(try await get(response, refusing).response.status == .badGateway)
    }

    @Test func `a regular expression that takes too long is a failure, and soon`() async throws {
        let ware = try ware(rules: [["regex": "(x+x+)+[yz]", "replace": "z"]])
        let content = HttpContent.text(String(repeating: String(repeating: "x", count: 60) + " ", count: 2000))
        let clock = ContinuousClock()
        let began = clock.now
        let (answer, notes) = try await get(try page(content: content), ware)
        #expect(answer.content.bytes == content.bytes)
        #expect(notes == ["not edited: a regular expression reached its limit"])
        #expect(clock.now - began < .seconds(30))
    }

    // MARK: Streams

    @Test func `a stream rewrites content of any size`() async throws {
        let content = String(repeating: RewriteBodyTests.text, count: 40_000)
        let ware = try ware(option("stream", "true"))
        let (answer, _) = try await get(try page(content: .text(content)), ware)
        #expect(answer.content.text == String(repeating: RewriteBodyTests.rewritten, count: 40_000))
    }

    @Test func `a stream that grows without bound is cut off`() async throws {
        let bomb = try CodedText.encode([UInt8](repeating: 0x61, count: 50 << 20), .zstd)
        var response = try page(content: .bytes(bomb))
        try response.fields.set(.contentEncoding, to: "zstd")
        await #expect(throws: GatewayError.self) {
            _ = try await get(response, try ware(option("stream", "true")))
        }
    }

    /// Passes content through the filter of a stream, and returns its output step by step.
    private func steps(_ content: [UInt8], _ codings: [String], _ rules: [RewriteRule]) throws -> [[UInt8]] {
        let rewriting = BodyRewriting(
            rules: rules, types: [], maxBody: .mebibytes(1), streams: true, onFailure: .pass)
        let filter = try #require(RewrittenContent(rewriting.rules, codings: codings, rewriting.editing))
        var steps: [[UInt8]] = []
        func step(_ body: (inout [UInt8]) throws -> Void) rethrows {
            var output: [UInt8] = []
            try body(&output)
            steps.append(output)
        }
        try content.withUnsafeBytes { bytes in try step { try filter.filter(bytes, into: &$0) } }
        while filter.isPending { try step { try filter.more(into: &$0) } }
        try step { try filter.finish(into: &$0) }
        return steps
    }

    @Test(arguments: [ContentCoding.gzip, .br, .zstd])
    func `a stream is decoded and rewritten in steps of bounded size`(coding: ContentCoding) throws {
        // Of each 16 KiB, some bytes at the beginning are new.
        var text: [UInt8] = []
        for block in 0..<200 {
            var random = UInt64(block) &* 0x9e37_79b9_7f4a_7c15
            for _ in 0..<120 {
                random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                text.append(UInt8(truncatingIfNeeded: random >> 57) | 0x80)
            }
            text += Array(repeating: 0x7a, count: 16384 - 120)
        }
        let coded = try CodedText.encode(text, coding)
        let steps = try steps(coded, [coding.rawValue], [RewriteRule(find: "zz", replace: "yyyy")])
        // Each step gives at most a limited number of bytes before its coding.
        #expect(steps.count >= text.count / (256 << 10))
        var fields = HttpFields()
        try fields.set(.contentEncoding, to: coding.rawValue)
        let rewritten = try CodedText.decode(.bytes(Array(steps.joined())), fields)
        #expect(rewritten.utf8.filter { $0 == 0x79 }.count == 200 * 2 * (16384 - 120))
    }

    @Test func `replacements that are longer than what they replace take more steps`() throws {
        let rule = RewriteRule(find: "a", replace: String(repeating: "b", count: 64))
        let steps = try steps([UInt8](repeating: 0x61, count: 64 << 10), [], [rule])
        #expect(steps.allSatisfy { $0.count <= 512 << 10 })
        #expect(steps.joined().count == 4 << 20)
        let further = RewriteRule(find: "b", replace: String(repeating: "c", count: 64))
        #expect(throws: TextReplacer.Outgrown.self) {
            _ = try self.steps([UInt8](repeating: 0x61, count: 64 << 10), [], [rule, further])
        }
    }

    // MARK: Other wares

    @Test func `a cache keeps the original content, and each hit is rewritten once`() async throws {
        let stage = try CacheStage(behind: [try ware(rules: [["find": "a", "replace": "aa"]])])
        try stage.respond(["Cache-Control: max-age=60", "ETag: \"a\"", "Content-Type: text/html"], "-a-")
        for _ in 0..<3 {
            let answer = try await stage.send()
            #expect(answer.text == "-aa-")
            #expect(answer[.etag] == "W/\"a\"")
        }
        #expect(stage.asked == 1)
    }

    @Test func `compress compresses what was rewritten`() async throws {
        let exchange = try TestExchange([try ware(), Compress(encodings: [.gzip], minSize: .bytes(1))])
        exchange.upstream.always(respondWith: try page())
        let answer = try await exchange.send(.get("/", fields: ["Accept-Encoding": "gzip"]))
        #expect(answer.fields[.contentEncoding] == "gzip")
        #expect(try CodedText.decode(answer.content, answer.fields) == RewriteBodyTests.rewritten)
    }

    // MARK: Options

    @Test(
        arguments: [
            (["rules": []], "rewriteBody.rules: is empty; write a rule such as { find: old, replace: new }"),
            ([:], "rewriteBody.rules: is missing, and there is no default"),
            (["rules": [["find": "", "replace": "b"]]], "rewriteBody.rules[0].find: is empty; write the text to find"),
            (["rules": [["find": "a"]]], "rewriteBody.rules[0].replace: is missing, and there is no default"),
            (["rules": [["replace": "a"]]], "rewriteBody.rules[0]: needs find or regex"),
            (
                ["rules": [["find": "a", "regex": "b", "replace": "c"]]],
                "rewriteBody.rules[0].regex: cannot be combined with find; write only one of find or regex"
            ),
            (
                ["rules": [["regex": "(a)", "replace": "$2"]]],
                "rewriteBody.rules[0].replace: names group 2, but the regular expression has 1 groups"
            ),
            (
                ["rules": [["regex": "a", "replace": "b"]], "stream": "true"],
                "rewriteBody.stream: cannot be combined with rules[0].regex; write find there, or remove stream"
            ),
            (
                ["rules": [["find": "a", "replace": "b"]], "stream": "true", "maxBody": "1KiB"],
                "rewriteBody.maxBody: has no effect with stream: true; remove one of them"
            ),
            (
                ["rules": [["find": "a", "replace": "b"]], "maxBody": "17MiB"],
                "rewriteBody.maxBody: \"17MiB\" is too large; write 1B to 16MiB"
            ),
            (
                ["rules": [["find": "a", "replace": "b"]], "types": []],
                "rewriteBody.types: is empty; write a media type such as text/html"
            ),
        ] as [(ConfigNode, String)])
    func `wrong options are refused at load`(options: ConfigNode, message: String) {
        let error = #expect(throws: ConfigError.self) { try TestExchange.make(RewriteBody.self, options) }
        #expect(error.map { "\($0.keyPath): \($0.message)" } == message)
    }
}
