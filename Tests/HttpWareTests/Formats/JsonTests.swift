import Foundation
import Testing

@testable import HttpWare

@Suite struct JsonTests {
    @Test func `each character is escaped that has to be, and no other`() {
        for value in (UInt32(0)...0x24f) {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let hex = String(value, radix: 16)
            let expected =
                switch value {
                case 0x22: "\\\""
                case 0x5c: "\\\\"
                case 0x0a: "\\n"
                case 0x0d: "\\r"
                case 0x09: "\\t"
                case 0..<0x20, 0x7f...0x9f: "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
                default: String(scalar)
                }
            #expect(Json.text("a\(scalar)b\(scalar)").text == "\"a\(expected)b\(expected)\"", "U+\(hex)")
        }
        #expect(Json.text("").text == "\"\"" && Json.text("…😀").bytes == Array("\"…😀\"".utf8))
    }

    private let value = Json.object([
        ("text", "a \"b\" \\ \n\u{1}\u{7f}\u{9b}é"), ("number", -7), ("yes", true), ("nothing", .null),
        ("digits", .digits("1e9")), ("list", [Json.text("x"), .list([]), .object([])].json),
    ])

    @Test func `every kind of value is written`() {
        #expect(
            value.text
                == #"{"text":"a \"b\" \\ \n\u0001\u007f\u009bé","number":-7,"yes":true,"nothing":null,"#
                + #""digits":1e9,"list":["x",[],{}]}"#)
    }

    @Test(arguments: [
        (0.0, "0.000"), (1.2346, "1.235"), (12.0, "12.000"), (0.0004, "0.000"), (-3.0, "0.000"), (Double.nan, "null"),
    ])
    func `decimals have three places and are not below zero`(value: Double, text: String) {
        #expect(Json.decimal(value).text == text)
    }

    @Test func `members without a value are left out`() {
        #expect(
            Json.object(given: [("a", nil), ("b", .optional(nil)), ("c", .optional("x"))]).text
                == #"{"b":null,"c":"x"}"#)
    }

    @Test func `JSON that is written over several lines is the same value`() throws {
        let long = Json.object([("long", .list((0..<40).map { .number($0) })), ("value", value)])
        #expect(long.prettyText.split(separator: "\n").allSatisfy { $0.utf8.count <= 120 })
        let one = try JSONSerialization.jsonObject(with: Data(long.text.utf8)) as? NSDictionary
        let other = try JSONSerialization.jsonObject(with: Data(long.prettyText.utf8)) as? NSDictionary
        #expect(one != nil && one == other)
        #expect(value.prettyText.contains("\n"))
        #expect(Json.list([1, 2]).prettyText == "[1,2]")
    }
}

extension [Json] {
    fileprivate var json: Json { .list(self) }
}
