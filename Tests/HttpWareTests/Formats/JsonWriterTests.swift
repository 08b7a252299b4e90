import Testing

@testable import HttpWare

@Suite struct JsonWriterTests {
    private func pair(_ first: [UInt8], _ second: [UInt8]) -> String {
        var writer = JsonWriter(reserving: 64)
        writer.object { writer in
            writer.list("a") { list in
                for _ in 0..<2 {
                    first.withUnsafeBufferPointer { first in
                        second.withUnsafeBufferPointer { list.pair(first, $0) }
                    }
                }
            }
        }
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    @Test(arguments: [
        ("X-A", Array("1".utf8), #"["X-A","1"]"#), ("X-A", [], #"["X-A",""]"#),
        ("X-A", Array("a\"\\\t".utf8), #"["X-A","a\"\\\t"]"#), ("X-A", Array("ä €".utf8), #"["X-A","ä €"]"#),
        // Not UTF-8, so each byte is a character.
        ("X-A", [0xe4, 0x62], #"["X-A","äb"]"#), ("X-A", [0x85], #"["X-A","\u0085"]"#),
    ])
    func `received texts are written in pairs`(name: String, value: [UInt8], expected: String) {
        #expect(pair(Array(name.utf8), value) == #"{"a":[\#(expected),\#(expected)]}"#)
    }

    @Test func `an object is continued behind its members`() {
        var writer = JsonWriter(continuing: Array(#"{"a":1"#.utf8))
        writer.text("b", "x")
        writer.number("c", 2)
        #expect(String(decoding: writer.bytes, as: UTF8.self) == #"{"a":1,"b":"x","c":2"#)
    }
}
