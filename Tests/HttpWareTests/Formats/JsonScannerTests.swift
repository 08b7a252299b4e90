import Testing

@testable import HttpWare

@Suite struct JsonScannerTests {
    /// Reads a text, and checks that its range is found by the same rules.
    private func read(_ bytes: [UInt8], _ rules: JsonScanner.Rules) throws -> String {
        let value = try JsonValue(bytes, rules: rules).json
        if rules.dialect != .lenient { _ = try JsonScanner.check(bytes, rules: rules) }
        return value
    }

    @Test(arguments: [
        "[1,2,]", "[,1]", #"{"a":1,}"#, #"{"a":1"b":2}"#, "[1 2]", "\"a\tb\"", #""\x""#, #""\u12""#, #""\ud800""#,
        #""\udc00\ud800""#, "\u{feff}1", "NaN", "undefined", "-Infinity", "01", "1.", #"{"a":1,"a":2}"#,
    ])
    func `lenient rules accept what strict rules refuse`(text: String) {
        #expect(throws: Never.self) { try JsonValue(text.utf8, rules: .lenient) }
        #expect(throws: JsonFault.self) { try JsonValue(text.utf8) }
    }

    @Test(arguments: [
        "", " ", "{", "[", "[1", "{\"a\"}", "{\"a\":}", "{a:1}", "'x'", ".5", "+1", "1e", "-", "tru", "nul", "\"",
        "\"\\",
        "[1}", "[1] 2", "}", "]", ",", ":", "/* */ 1",
    ])
    func `no rules accept a text without a value`(text: String) {
        for rules in [JsonScanner.Rules.strict, .exact, .lenient] {
            #expect(throws: JsonFault.self, "\(rules)") { try JsonValue(text.utf8, rules: rules) }
        }
        #expect(throws: JsonFault.self) { try JsonScanner.check(Array(text.utf8)) }
    }

    @Test func `exact rules accept halves of surrogate pairs and a byte order mark`() throws {
        #expect(try JsonScanner.check(Array("\u{feff} [\"\\ud800\"] ".utf8)) == 4..<14)
        #expect(JsonString.text(of: 1..<7, in: Array(#""\ud800""#.utf8)) == [0xed, 0xa0, 0x80])
    }

    @Test func `escapes of surrogate pairs become one character`() throws {
        for rules in [JsonScanner.Rules.strict, .exact, .lenient] {
            #expect(try read(Array(#""\ud83d\ude00\u00e9\u20ac\/""#.utf8), rules) == "\"😀é€/\"")
        }
        #expect(try JsonValue(#""a\ud800b\ud83d""#.utf8, rules: .lenient).string == "a\u{fffd}b\u{fffd}")
    }

    @Test func `strings that are not UTF-8 are repaired by lenient rules only`() throws {
        let text: [UInt8] = [0x22, 0xc3, 0x28, 0x22]
        #expect(try JsonValue(text, rules: .lenient).string == "\u{fffd}(")
        #expect(throws: JsonFault.self) { try JsonValue(text) }
        #expect(throws: JsonFault.self) { try JsonValue([0x22, 0x5c, 0x6e, 0xc3, 0x22]) }
        let fault = #expect(throws: JsonFault.self) { try JsonScanner.check(text) }
        #expect(fault?.description == "a string is not valid UTF-8 at byte 1")
    }

    @Test func `UTF-16 with a byte order mark is read by lenient rules`() throws {
        let units = Array("[\"é\"]".utf16)
        let big: [UInt8] = [0xfe, 0xff] + units.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xff)] }
        let little: [UInt8] = [0xff, 0xfe] + units.flatMap { [UInt8($0 & 0xff), UInt8($0 >> 8)] }
        for text: [UInt8] in [big, little, big + [0], [0xfe, 0xff, 0, 0x31]] {
            #expect(throws: Never.self) { try JsonValue(text, rules: .lenient) }
        }
        #expect(throws: JsonFault.self) { try JsonValue([0xfe, 0xff], rules: .lenient) }
    }

    @Test(arguments: [
        "0", "-0", "1.0", "1e2", "9007199254740993", "123456789012345678901234567890", "0.1000", "1E+400", "-1.5e-7",
    ])
    func `numbers are kept as they are written`(number: String) throws {
        for rules in [JsonScanner.Rules.strict, .exact, .lenient] {
            #expect(try read(Array("[\(number)]".utf8), rules) == "[\(number)]")
        }
        #expect(JsonScanner.isNumber(number))
    }

    @Test(arguments: ["", "-", "01", ".5", "1.", "1e", "1e+", "0x10", "nan", "1 ", " 1", "١"])
    func `text that is not a number gives no number`(text: String) {
        #expect(!JsonScanner.isNumber(text))
    }

    @Test func `nesting and the number of values are limited`() {
        func nested(_ depth: Int) -> [UInt8] {
            Array(
                (String(repeating: "[{\"a\":", count: depth / 2) + "1" + String(repeating: "}]", count: depth / 2)).utf8
            )
        }
        for rules in [JsonScanner.Rules.strict, .exact, .lenient] {
            #expect(throws: Never.self) { try read(nested(rules.depth), rules) }
            #expect(throws: JsonFault.self) { try JsonValue(nested(rules.depth + 2), rules: rules) }
        }
        #expect(throws: JsonFault.self) { try JsonScanner.check(nested(66)) }
        // Nothing here is recursive without a limit.
        #expect(throws: JsonFault.self) { try JsonScanner.check([UInt8](repeating: 0x5b, count: 1_000_000)) }
        var rules = JsonScanner.Rules.lenient
        rules.values = 3
        #expect(throws: Never.self) { try JsonValue("[1,2]".utf8, rules: rules) }
        #expect(throws: JsonFault.self) { try JsonValue("[1,2,3]".utf8, rules: rules) }
    }

    @Test func `names are compared without escapes, in objects of any size`() {
        for count in [1, 15, 16, 17, 300] {
            let members = (0..<count).map { "\"a\($0)\":1" }.joined(separator: ",")
            #expect(throws: Never.self) { try JsonValue("{\(members)}".utf8) }
            for twin in [#""a0":2"#, #""\u00610":2"#, "\"a\(count - 1)\":2"] {
                #expect(throws: JsonFault.self, "\(count)") { try JsonValue("{\(members),\(twin)}".utf8) }
            }
        }
    }

    @Test func `members and elements are read one at a time`() throws {
        var scanner = JsonScanner(Array(#" {"a" : [1, [2], {}], "b":{"c":"}"},"d":null} "#.utf8))
        var texts: [String] = []
        #expect(try scanner.enterObject())
        while let name = try scanner.nextMember() {
            texts.append(name)
            if try scanner.enterList() {
                while try scanner.hasNextElement() { texts.append(try scanner.value().json) }
            } else {
                texts.append("\(try scanner.skip().count)")
            }
        }
        #expect(scanner.isAtEnd && texts == ["a", "1", "[2]", "{}", "b", "9", "d", "4"])
    }

    @Test func `each beginning of a text is refused`() {
        let text = Array(#"{"a\n":[1.5e+2,true,null,"\ud83d\ude00"]}"#.utf8)
        for rules in [JsonScanner.Rules.strict, .exact, .lenient] {
            for count in text.indices {
                #expect(throws: JsonFault.self) { try JsonValue(text[..<count], rules: rules) }
            }
        }
    }
}
