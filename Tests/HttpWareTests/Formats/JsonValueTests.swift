import Testing

@testable import HttpWare

@Suite struct JsonValueTests {
    @Test(arguments: [
        (#" {"a" : [1, -0.5e+3, true, null, "x\u00e9\ud83d\ude00\n"]} "#, #"{"a":[1,-0.5e+3,true,null,"xé😀\n"]}"#),
        (#""""#, #""""#), ("[]", "[]"), ("{}", "{}"), ("0", "0"), (#""\/\"\\""#, #""/\"\\""#),
    ])
    func `RFC 8259, what is JSON is read`(text: String, json: String) throws {
        #expect(try JsonValue(text.utf8).json == json)
    }

    @Test(arguments: [
        "", " ", "{", "[", "[1", "[1,]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "'x'", "01", "1.", ".5", "+1",
        "1e", "-",
        "NaN", "Infinity", "tru", "nul", "\"", "\"\\x\"", "\"\\u12g4\"", "\"\\ud800\"", "\"\\ud800\\u0041\"",
        "\"\\udc00\"",
        "\"\\u0000\"", "\"\u{1}\"", "[1] 2", "[1 2]", "{\"a\":1 \"b\":2}", "{\"a\":1,\"a\":2}",
        "{\"a\":1,\"\\u0061\":2}", "\u{feff}{}",
        "/* */ 1", "1 // x",
    ])
    func `RFC 8259 and RFC 7493, what is not is refused`(text: String) {
        #expect(throws: JsonFault.self) { try JsonValue(text.utf8) }
    }

    @Test func `text that is not UTF-8 is refused`() {
        #expect(throws: JsonFault.self) { try JsonValue([0x22, 0xc3, 0x28, 0x22]) }
    }

    @Test func `nesting is bounded`() throws {
        let deep = { String(repeating: "[", count: $0) + String(repeating: "]", count: $0) }
        #expect(throws: Never.self) { try JsonValue(deep(JsonScanner.Rules.strict.depth).utf8) }
        #expect(throws: JsonFault.self) { try JsonValue(deep(JsonScanner.Rules.strict.depth + 1).utf8) }
    }

    @Test(arguments: [
        ("\"a\"", "a"), ("7", "7"), ("true", "true"), ("[\"a\",\"b\"]", "a b"), ("[1,2]", "[1,2]"),
        ("{\"a\":1}", "{\"a\":1}"), ("null", nil),
    ])
    func `a value stands as text in fields`(json: String, text: String?) throws {
        #expect(try JsonValue(json.utf8).fieldText == text)
    }
}
