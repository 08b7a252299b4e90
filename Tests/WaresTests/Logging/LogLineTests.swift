import Foundation
import HttpWare
import Testing

@testable import Wares

@Suite struct LogLineTests {
    private func written(_ write: (inout LogLine) -> Void) -> String {
        let block = LogBlock()
        block.append(write)
        return String(decoding: block.bytes, as: UTF8.self)
    }

    private func json(_ bytes: [UInt8]) -> String {
        written { line in bytes.withUnsafeBufferPointer { line.json($0) } }
    }

    private func plain(_ bytes: [UInt8]) -> String {
        written { line in bytes.withUnsafeBufferPointer { line.plain($0) } }
    }

    @Test func `every byte, at every place of a word, is a JSON string that reads back - RFC 8259 §7`() throws {
        for byte in UInt8(0)...0x7f {
            for place in 0..<20 {
                var bytes = Array("abcdefghijklmnopqrst".utf8)
                bytes[place] = byte
                let text = json(bytes)
                let read =
                    try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed) as? String
                #expect(read == String(decoding: bytes, as: UTF8.self))
                #expect(text.utf8.allSatisfy { 0x20...0x7e ~= $0 })
            }
        }
    }

    @Test(arguments: [
        ("é", "\"é\""), ("日本語 – ok", "\"日本語 – ok\""), ("🙂", "\"🙂\""), ("\u{85}", "\"\\u0085\""),
        ("a\"b\\c", "\"a\\\"b\\\\c\""), ("", "\"\""), ("\u{1b}[2J", "\"\\u001b[2J\""), ("\u{2028}", "\"\u{2028}\""),
    ])
    func `text beyond ASCII stays, control characters do not`(text: String, expected: String) {
        #expect(json(Array(text.utf8)) == expected)
    }

    @Test(
        arguments: [
            [0xff], [0xc0, 0xaf], [0xe2, 0x82], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0x80],
            [0xe0, 0x80, 0x80],
        ] as [[UInt8]])
    func `text that is not UTF-8 is read as ISO 8859-1, and in a target percent-encoded`(bytes: [UInt8]) throws {
        let all = Array("a\u{e9}\"".utf8) + bytes + Array("z".utf8)
        func read(_ text: String) throws -> String? {
            try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed) as? String
        }
        #expect(try read(json(all)) == ReceivedText.text(all))
        let target = written { line in all.withUnsafeBufferPointer { line.json(target: $0) } }
        let encoded = bytes.map { "%" + String($0, radix: 16, uppercase: true) }.joined()
        #expect(try read(target) == "a%C3%A9\"\(encoded)z")
    }

    @Test func `a target in UTF-8 stays as it is`() {
        let target = Array("/caf\u{e9}?q=\u{1f642}\u{85}".utf8)
        let text = written { line in target.withUnsafeBufferPointer { line.json(target: $0) } }
        #expect(text == "\"/caf\u{e9}?q=\u{1f642}\\u0085\"")
    }

    @Test func `a plain text shows nothing but visible ASCII, and no quote`() {
        #expect(plain(Array("a\"b\\c\n\u{1b}é".utf8)) == "a\\x22b\\x5cc\\x0a\\x1b\\xc3\\xa9")
    }

    @Test func `a text longer than a block is written whole`() {
        let bytes = [UInt8](repeating: 0x01, count: 100_000)
        #expect(json(bytes).utf8.count == 600_002)
        #expect(json([UInt8](repeating: 0x61, count: 100_000)).utf8.count == 100_002)
    }

    @Test(arguments: [
        (0, "0"), (9, "9"), (10, "10"), (1_234_567_890, "1234567890"), (-5, "0"), (Int.max, "9223372036854775807"),
    ])
    func `numbers are in decimal digits`(number: Int, expected: String) {
        #expect(written { $0.number(number) } == expected)
    }

    @Test(arguments: [
        (0, "0.000"), (999, "0.000"), (1000, "0.001"), (1_234_567, "1.234"), (61_000_000_000, "61000.000"),
        (-1, "0.000"),
    ])
    func `durations are milliseconds with microseconds`(nanoseconds: Int64, expected: String) {
        #expect(written { $0.milliseconds(nanoseconds: nanoseconds) } == expected)
    }

    @Test(arguments: ["192.0.2.1", "0.0.0.0", "255.255.255.255", "2001:db8::1"])
    func `addresses are as they are written`(text: String) throws {
        let address = try #require(IPAddress(text))
        #expect(written { $0.address(address) } == text)
    }

    @Test(
        arguments: [
            (1_767_225_600, 0, "2026-01-01T00:00:00.000Z", "01/Jan/2026:00:00:00 +0000"),
            (1_709_210_096, 987_654_321, "2024-02-29T12:34:56.987Z", "29/Feb/2024:12:34:56 +0000"),
            (-1, 999_000_000, "1969-12-31T23:59:59.999Z", "31/Dec/1969:23:59:59 +0000"),
        ] as [(Int64, Int32, String, String)])
    func `times are RFC 3339 with milliseconds, or as the combined format has them`(
        seconds: Int64, nanoseconds: Int32, json: String, combined: String
    ) {
        var time = LogTime()
        let wall = WallTime(seconds: seconds, nanoseconds: nanoseconds)
        #expect(written { time.write(wall, to: &$0) } == json)
        #expect(written { time.writeCombined(wall, to: &$0) } == combined)
        #expect(written { time.write(wall, to: &$0) } == json)
    }
}
