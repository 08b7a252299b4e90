import HttpWare
import Testing

@testable import Capturing

@Suite struct LiteralSearchTests {
    private func isFound(_ text: String, _ bytes: [UInt8]) -> Bool? {
        bytes.withUnsafeBytes { LiteralSearch(text).isFound(in: $0) }
    }

    @Test func `a text is found wherever it stands, in either case`() {
        let text = "Content-Type: a/B"
        let bytes = Array(text.utf8)
        for start in 0..<bytes.count {
            for end in start...bytes.count {
                let part = String(decoding: bytes[start..<end], as: UTF8.self)
                #expect(isFound(part.uppercased(), bytes) == true && isFound(part.lowercased(), bytes) == true)
                #expect(isFound(part + "~", bytes) == false && isFound("~" + part, bytes) == false)
                #expect(isFound(part, Array(bytes[start..<end])) == true)
                if start < end { #expect(isFound(part, Array(bytes[start..<end - 1])) == false) }
            }
        }
        #expect(isFound("a", []) == false && isFound("", []) == true)
        // @ and ` differ from each other as letters do.
        #expect(isFound("@", Array("`".utf8)) == false && isFound("é", Array("É".utf8)) == false)
    }

    @Test func `short texts over few letters are found as by looking at each place`() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<3000 {
            let text = (0..<Int.random(in: 1...4, using: &generator)).map { _ in
                "abAB".randomElement(using: &generator) ?? "a"
            }
            let bytes = (0..<Int.random(in: 0...20, using: &generator)).map { _ in
                "abABc".randomElement(using: &generator) ?? "a"
            }
            let expected = String(bytes).lowercased().contains(String(text).lowercased())
            let found = isFound(String(text), Array(String(bytes).utf8))
            #expect(found == expected || found == nil, "\(String(text)) in \(String(bytes))")
        }
    }

    @Test func `bytes that nearly contain a text everywhere are left to the bounded search, which tells the same`()
        throws
    {
        let bytes = [UInt8](repeating: 0x61, count: 100_000)
        let text = String(repeating: "a", count: 2000) + "b"
        #expect(
            isFound(String(repeating: "a", count: 2000) + "c" + String(repeating: "a", count: 2000), bytes) == false)
        #expect(isFound(String(repeating: "a", count: 1000), bytes) == true)
        let mixed = Array(repeating: Array("aaaaaaaaab".utf8), count: 10_000).flatMap(\.self)
        let hard = String(repeating: "aaaaaaaaab", count: 300) + "bb"
        #expect(isFound(hard, mixed) == nil)
        let pattern = try FilterPattern(hard, [.ignoresCase], limits: .init(subject: 1 << 20, time: .seconds(10)))
        #expect(try !pattern.isFound(in: mixed))
        #expect(try FilterPattern(text, [.ignoresCase], limits: .loop).isFound(in: bytes + [0x42]))
    }
}
