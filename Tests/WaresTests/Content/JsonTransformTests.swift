import HttpWareTesting
import Testing

@testable import HttpWare
@testable import GatewayWares

@Suite(.timeLimit(.minutes(2))) struct JsonTransformTests {
    private func edit(_ text: String, _ options: ConfigNode) throws -> String? {
        var reader = OptionsReader(options, keyPath: "jsonTransform")
        let edits = JsonEdits(options: &reader)
        if let mistake = reader.finish().first { throw mistake }
        return try edits.apply(to: Array(text.utf8), upTo: 1 << 20).map { String(decoding: $0, as: UTF8.self) }
    }

    // MARK: Edits

    @Test(
        arguments: [
            (["remove": ["/a"]], #"{"a":1,"b":2}"#, #"{"b":2}"#),
            (["remove": ["/b/1", "/c"]], #"{"a":1,"b":[1,2,3]}"#, #"{"a":1,"b":[1,3]}"#),
            (["remove": ["/*/a"]], #"[{"a":1},{"b":2},3,{"a":4,"b":5}]"#, #"[{},{"b":2},3,{"b":5}]"#),
            (["remove": ["/a/*"]], #"{"a":[1,2],"b":1}"#, #"{"a":[],"b":1}"#),
            (["remove": ["/a~1b", "/c~0d"]], #"{"a/b":1,"c~d":2,"e":3}"#, #"{"e":3}"#),
            (["remove": ["/ä"]], #"{"\u00e4":1,"b":2}"#, #"{"b":2}"#),
            (["remove": ["/😀"]], #"{"\ud83d\ude00":1,"b":2}"#, #"{"b":2}"#),
            (["remove": ["/01", "/1"]], #"[0,1,2]"#, #"[0,2]"#),
            (["rename": ["/a": "z"]], #"{"a":1,"b":2}"#, #"{"z":1,"b":2}"#),
            (["rename": ["/a": "b"]], #"{"a":1,"b":2}"#, #"{"b":1}"#),
            (["rename": ["/*/a": "\"x\\"]], #"{"p":{"a":1},"q":{"a":2}}"#, #"{"p":{"\"x\\":1},"q":{"\"x\\":2}}"#),
            (["move": ["/a": "/c/d"]], #"{"a":1,"b":2}"#, #"{"b":2,"c":{"d":1}}"#),
            (["move": ["/a/b": "/b"]], #"{"a":{"b":[1]},"b":2}"#, #"{"a":{},"b":[1]}"#),
            (
                ["move": ["/*/a": "/*/b/c"]], #"[{"a":1},{"a":2,"b":{}},{"x":1}]"#,
                #"[{"b":{"c":1}},{"b":{"c":2}},{"x":1}]"#
            ),
            (["move": ["/0": "/-"]], #"[1,2,3]"#, #"[2,3,1]"#),
            (["set": ["/a": 2]], #"{"a":1,"b":2}"#, #"{"a":2,"b":2}"#),
            (
                ["set": ["/c/d": "x", "/e": ["f": [1, true, "2"]]]], #"{"a":1}"#,
                #"{"a":1,"c":{"d":"x"},"e":{"f":[1,true,"2"]}}"#
            ),
            (["set": ["/*/a": "n"]], #"[{"a":1},{}]"#, #"[{"a":"n"},{"a":"n"}]"#),
            (["set": ["/*": 0]], #"{"a":1,"b":[2]}"#, #"{"a":0,"b":0}"#),
            (["set": ["/-": 3, "/0": 0]], #"[1,2]"#, #"[0,2,3]"#),
            (["set": ["": ["a": 1]]], #"[1]"#, #"{"a":1}"#),
            (
                ["keep": ["/a", "/c/*/d"]], #"{"a":1,"b":2,"c":[{"d":1,"e":2},{"e":3},4],"f":5}"#,
                #"{"a":1,"c":[{"d":1},{}]}"#
            ),
            (["keep": ["/1"]], #"[1,2,3]"#, #"[2]"#), (["keep": ["/a/b"]], #"{"a":"secret"}"#, #"{}"#),
            (["keep": ["/a"]], #""secret""#, "null"), (["keep": ["/a"]], "\n \"secret\" \n", "\n null \n"),
            (
                ["patch": [["op": "add", "path": "/b/1", "value": ["x": "y"]], ["op": "remove", "path": "/a"]]],
                #"{"a":1,"b":[1,2]}"#, #"{"b":[1,{"x":"y"},2]}"#
            ),
            (
                [
                    "patch": [
                        ["op": "copy", "from": "/a", "path": "/b"], ["op": "replace", "path": "/a/0", "value": 9],
                    ]
                ],
                #"{"a":[1]}"#, #"{"a":[9],"b":[1]}"#
            ),
            (
                [
                    "patch": [
                        ["op": "test", "path": "", "value": ["a": "é", "b": 100]],
                        ["op": "move", "from": "/a", "path": "/*"],
                    ]
                ],
                #"{"b":1.00e2,"a":"\u00e9"}"#, #"{"b":1.00e2,"*":"\u00e9"}"#
            ),
            (
                ["remove": ["/a"], "set": ["/a": 1], "rename": ["/b": "a"], "keep": ["/a", "/b"]],
                #"{"c":0,"b":2,"a":3}"#,
                #"{"a":1}"#
            ),
        ] as [(ConfigNode, String, String)])
    func `edits do what they say`(options: ConfigNode, text: String, result: String) throws {
        #expect(try edit(text, options) == result)
    }

    @Test(
        arguments: [
            ["remove": ["/x", "/a/0", "/b/9", "/b/-"]], ["rename": ["/x": "y", "/b/0": "c", "/a": "a"]],
            ["move": ["/x": "/y", "/a": "/b/x"]],
            ["set": ["/a/x": 1, "/b/9": 1]],
            ["keep": ["/a", "/b", "/*/x", "/c"]],
        ] as [ConfigNode])
    func `a path that leads to nothing changes nothing, not a byte`(options: ConfigNode) throws {
        let text = "\u{feff} {\"a\" : 12345678901234567890,\n\"b\":[ 1, 2 ] , \"c\":{\"d\":1}}\n"
        #expect(try edit(text, options) == nil)
    }

    @Test func `numbers, escapes, order and the white space of what is not edited stay`() throws {
        let kept = #"{ "z": 1.0E+2, "a" : -0.000, "\u0061b":"\u00e9\/", "n": 123456789012345678901234567890.10 }"#
        #expect(try edit(#"{"x":\#(kept), "y":1}"#, ["remove": ["/y"]]) == #"{"x":\#(kept)}"#)
    }

    @Test(arguments: [
        "", " ", "{", "[1,]", "{\"a\":1,}", "{\"a\"}", "[1 2]", "01", "-", "1.", "1e", ".5", "+1", "tru", "nul", "\"a",
        "\"\\x\"", "\"\\u12\"", "\"\u{1}\"", "{a:1}", "[1]x", "NaN", "{\"a\":1 \"b\":2}", "]", "[}", "'a'",
        String(repeating: "[", count: 65) + String(repeating: "]", count: 65), String(repeating: "[", count: 100_000),
    ])
    func `content that is not JSON is refused`(text: String) {
        #expect(throws: JsonFault.self) { try edit(text, ["remove": ["/a"]]) }
    }

    @Test func `two members of one name are refused where an edit looks, and nowhere else`() throws {
        for text in [#"{"a":1,"a":2}"#, #"{"a":1,"\u0061":2}"#] {
            #expect(throws: JsonFault.self) { try edit(text, ["remove": ["/a"]]) }
        }
        #expect(try edit(#"{"x":{"a":1,"a":2},"y":1}"#, ["remove": ["/y"]]) == #"{"x":{"a":1,"a":2}}"#)
    }

    @Test(
        arguments: [
            ["op": "remove", "path": "/x"], ["op": "replace", "path": "/x", "value": 1],
            ["op": "test", "path": "/a", "value": 2],
            ["op": "test", "path": "/x", "value": 1], ["op": "add", "path": "/x/y", "value": 1],
            ["op": "add", "path": "/b/3", "value": 1], ["op": "copy", "from": "/x", "path": "/y"],
            ["op": "move", "from": "/x", "path": "/y"], ["op": "test", "path": "/a", "value": "1"],
            ["op": "remove", "path": "/b/-"], ["op": "replace", "path": "/b/2", "value": 1],
        ] as [ConfigNode])
    func `a patch that does not fit changes nothing`(operation: ConfigNode) {
        #expect(throws: JsonFault.self) {
            try edit(#"{"a":1,"b":[1,2]}"#, ["patch": [["op": "add", "path": "/n", "value": 1], operation]])
        }
    }

    @Test(arguments: [
        ("1", "1.0", true), ("100", "1e2", true), ("0", "-0.0e9", true), ("0.1", "1e-1", true), ("1", "2", false),
        ("1e400", "10e399", true), ("12345678901234567890", "12345678901234567891", false),
        ("1e99999999999999999999", "1", false),
    ])
    func `numbers are equal by their exact value`(one: String, other: String, areEqual: Bool) throws {
        var source = JsonSource([])
        let (one, other) = (source.add(Array(one.utf8)), source.add(Array(other.utf8)))
        #expect(try JsonPatch.areEqual(one, other, &source) == areEqual)
    }

    @Test(
        arguments: [
            [0x80], [0xff], [0xc3], [0xc3, 0x28], [0xc0, 0xaf], [0xe0, 0x80, 0xaf], [0xed, 0xa0, 0x80],
            [0xf4, 0x90, 0x80, 0x80], [0xf0, 0x9f, 0x98],
        ] as [[UInt8]])
    func `strings that are not valid UTF-8 are refused, in names and in values`(bytes: [UInt8]) throws {
        for (before, after) in [("{\"a", "\":1}"), ("{\"a\":\"", "\"}"), ("[1,\"x", "y\"]"), ("\"", "\"")] {
            let text = Array(before.utf8) + bytes + Array(after.utf8)
            let fault = #expect(throws: JsonFault.self) { try JsonScanner.check(text) }
            #expect(fault?.description.hasPrefix("a string is not valid UTF-8 at byte ") == true)
        }
    }

    @Test func `all that is valid UTF-8 is accepted`() throws {
        for text in ["\"ä\u{7ff}\u{800}\u{ffff}\u{10ffff}\u{7f}\u{2028}\"", "\u{feff}{\"ключ\":\"😀\"}", "\"\\ud800\""] {
            #expect(throws: Never.self) { try JsonScanner.check(Array(text.utf8)) }
        }
    }

    @Test func `content with a string that is not UTF-8 passes unchanged, or is refused with 502`() async throws {
        let bytes = Array("{\"id\":1,\"password\":\"".utf8) + [0xff] + Array("\"}".utf8)
        let (answer, notes) = try await get(try response([:], .bytes(bytes)), ["remove": ["/password"]])
        #expect(answer.content.bytes == bytes)
        #expect(notes.contains { $0.hasPrefix("not edited: a string is not valid UTF-8") })
        let refusing: ConfigNode = ["remove": ["/password"], "onFailure": "refuse"]
        #expect(try await get(try response([:], .bytes(bytes)), refusing).response.status == .badGateway)
    }

    @Test func `copies of copies do not outgrow the limit`() {
        let copies = (0..<60).map { number -> ConfigNode in
            ["op": "copy", "from": "", "path": ConfigNode(stringLiteral: "/\(number)")]
        }
        #expect(throws: EditingFault.self) { try edit(#"{"a":"0123456789"}"#, ["patch": ConfigNode(.list(copies))]) }
    }

    @Test func `texts with random damage are refused or stay JSON`() throws {
        let seeds = [
            #"{"a":{"b":[1,-0.5e+10,"\u00e4\ud83d\ude00\""]},"c":null}"#, #" [ {"a": true} , [ ] , { } , "x\\" ] "#,
        ]
        let options: [ConfigNode] = [
            ["keep": ["/a/b/*", "/0/a"]], ["remove": ["/*/*", "/c"]], ["rename": ["/a": "c", "/*/a": "b"]],
            ["move": ["/a/b": "/c/d", "/0": "/-"]], ["set": ["/a/b/-": [1], "/*/a": ["x": "y"]]],
            ["patch": [["op": "copy", "from": "", "path": "/a"], ["op": "test", "path": "/c", "value": 1]]],
        ]
        let all = options.map { options in
            var reader = OptionsReader(options, keyPath: "")
            return JsonEdits(options: &reader)
        }
        var random = SystemRandomNumberGenerator()
        let bytes = Array("{}[]\":,\\u0e-+. atfn".utf8)
        var edited = 0
        for _ in 0..<20_000 {
            var text = Array((seeds.randomElement(using: &random) ?? "").utf8)
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                let place = Int.random(in: 0..<text.count, using: &random)
                if Bool.random() {
                    text[place] = bytes.randomElement(using: &random) ?? 0
                } else {
                    text.remove(at: place)
                }
            }
            guard let edits = all.randomElement(using: &random), let result = try? edits.apply(to: text, upTo: 4096)
            else {
                continue
            }
            edited += 1
            #expect((try? JsonScanner.check(result)) != nil, "\(String(decoding: text, as: UTF8.self))")
        }
        #expect(edited > 1000)
    }

    @Test func `many small members take bounded time`() throws {
        let text = "[" + String(repeating: "{\"a\":1},", count: 100_000) + "0]"
        let clock = ContinuousClock()
        let began = clock.now
        let result = try edit(text, ["remove": ["/*/a"]])
        #expect(result == "[" + String(repeating: "{},", count: 100_000) + "0]")
        #expect(clock.now - began < .seconds(60))
    }

    // MARK: Messages

    private static let json = "{\"id\": 1.50, \"password\": \"x\"}"

    private func response(_ fields: HttpFields = [:], _ content: HttpContent = .text(json)) throws -> HttpResponse {
        var response = HttpResponse(.ok, fields: fields, content: content)
        if !response.fields.contains(.contentType) { try response.fields.set(.contentType, to: "application/json") }
        return response
    }

    private func get(
        _ response: HttpResponse, _ options: ConfigNode = ["remove": ["/password"]], method: HttpMethod = .get
    ) async throws -> (response: HttpResponse, notes: [String]) {
        let ware = try TestExchange.make(JsonTransform.self, options)
        var setting = TestExchange.Setting()
        setting.records = RecordRing(mostRecords: 100, mostBytes: .mebibytes(1))
        let exchange = try TestExchange(
            chain: WareChain(middlewares: [], postwares: [ChainEntry(ware, label: "jsonTransform")]), setting: setting)
        exchange.upstream.always(respondWith: response)
        let answer = try await exchange.send(.make(method, "/"))
        return (answer, exchange.notes)
    }

    @Test(arguments: [
        ("application/json", true), ("application/problem+json; charset=utf-8", true), ("text/json", false),
        ("application/x-ndjson", false), ("text/html", false),
    ])
    func `a postware edits JSON in responses`(type: String, isEdited: Bool) async throws {
        var made = try response(["ETag": "\"a\"", "Content-Digest": "sha-256=:AAAA:"])
        try made.fields.set(.contentType, to: type)
        let (answer, notes) = try await get(made)
        #expect(answer.content.text == (isEdited ? "{\"id\":1.50}" : JsonTransformTests.json))
        #expect(answer.fields[.etag] == (isEdited ? "W/\"a\"" : "\"a\""))
        #expect(answer.fields.contains("Content-Digest" as FieldName) == !isEdited)
        #expect(notes.contains("edited") == isEdited)
    }

    @Test func `a middleware edits JSON in requests`() async throws {
        let ware = try TestExchange.make(JsonTransform.self, ["set": ["/user": "me"]])
        let exchange = try TestExchange(
            chain: WareChain(middlewares: [ChainEntry(ware)], postwares: []))
        var request = HttpRequest.post(
            "/", fields: ["Content-Type": "application/json", "Content-Encoding": "gzip"],
            content: .bytes(try CodedText.encode("{\"a\":1e2,\"user\":\"you\"}", .gzip)))
        _ = try await exchange.send(request)
        request = try #require(exchange.upstream.requests.first)
        #expect(try CodedText.decode(request.content, request.fields) == "{\"a\":1e2,\"user\":\"me\"}")
    }

    @Test func `coded content is coded again, and HEAD and 304 fit it`() async throws {
        for coding in ContentCoding.allCases {
            var made = try response(["ETag": "\"a\""], .bytes(try CodedText.encode(JsonTransformTests.json, coding)))
            try made.fields.set(.contentEncoding, to: coding.rawValue)
            let (answer, _) = try await get(made)
            #expect(try CodedText.decode(answer.content, answer.fields) == "{\"id\":1.50}")
            #expect(answer.fields[.contentEncoding] == coding.rawValue)
        }
        var head = try await get(try response(["ETag": "\"a\""]), method: .head).response
        #expect((head.fields[.etag], head.fields.contains(.contentLength)) == ("W/\"a\"", false))
        var unmodified = try response(["ETag": "\"a\""], .none)
        unmodified.status = .notModified
        head = try await get(unmodified).response
        #expect((head.status, head.fields[.etag]) == (.notModified, "W/\"a\""))
    }

    @Test(arguments: [
        "{\"id\":", "{\"password\":1,\"password\":2}", "{\"big\":\"\(String(repeating: "x", count: 2000))\"}",
    ])
    func `content that cannot be edited passes unchanged, or is refused with 502`(text: String) async throws {
        let passing: ConfigNode = ["remove": ["/password"], "maxBody": "1KiB"]
        let (answer, notes) = try await get(try response(["ETag": "\"a\""], .text(text)), passing)
        #expect((answer.content.text, answer.fields[.etag]) == (text, "\"a\""))
        #expect(notes.contains { $0.hasPrefix("not edited: ") })
        let refusing: ConfigNode = ["remove": ["/password"], "maxBody": "1KiB", "onFailure": "refuse"]
        #expect(try await get(try response([:], .text(text)), refusing).response.status == .badGateway)
    }

    // MARK: Options

    @Test(
        arguments: [
            ([:], "jsonTransform: changes nothing; write set, remove, rename, move, keep or patch"),
            (
                ["remove": ["a"]],
                "jsonTransform.remove[0]: \"a\" is not a JSON pointer; write one such as /user/name or /items/*/id; ~1 stands for a slash in a name, ~0 for a tilde"
            ),
            (["remove": [""]], "jsonTransform.remove: names the whole text; write a member"),
            (
                ["set": ["a": 1]],
                "jsonTransform.set: \"a\" is not a JSON pointer; write one such as /user/name or /items/*/id"
            ),
            (["set": "x"], "jsonTransform.set: \"x\" is not a map; write pointer: value"),
            (["rename": ["/a/*": "b"]], "jsonTransform.rename: \"/a/*\" does not end with a name"),
            (["move": ["/a": "/a/b"]], "jsonTransform.move: /a/b is inside of /a, or the same"),
            (
                ["move": ["/a/*": "/b"]],
                "jsonTransform.move: a * must stand in the beginning that both pointers have in common"
            ),
            (
                ["patch": [["op": "add", "path": "/a"]]],
                "jsonTransform.patch[0].op: add needs the option value"
            ),
            (
                ["patch": [["op": "remove", "path": ""]]],
                "jsonTransform.patch[0].path: names the whole text, which cannot be removed"
            ),
            (
                ["patch": [["op": "move", "from": "/a", "path": "/a/b"]]],
                "jsonTransform.patch[0].path: is inside of what is moved"
            ),
        ] as [(ConfigNode, String)])
    func `wrong options are refused at load`(options: ConfigNode, message: String) {
        let error = #expect(throws: ConfigError.self) { try TestExchange.make(JsonTransform.self, options) }
        #expect(error.map { "\($0.keyPath): \($0.message)" } == message)
    }
}
