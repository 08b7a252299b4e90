import Testing

@testable import GatewayWares

@Suite struct TextReplacerTests {
    private func replace(_ text: String, _ find: String, _ replacement: String, atMost most: Int = .max, piece: Int)
        -> (String, Int)
    {
        var replacer = TextReplacer(.init(Array(find.utf8)), with: Array(replacement.utf8), atMost: most)
        var output: [UInt8] = []
        let bytes = Array(text.utf8)
        for start in stride(from: 0, to: bytes.count, by: piece) {
            try? bytes[start..<min(start + piece, bytes.count)].withUnsafeBytes {
                try replacer.replace(in: $0, into: &output, upTo: .max)
            }
        }
        replacer.finish(into: &output)
        return (String(decoding: output, as: UTF8.self), replacer.count)
    }

    /// The same by trying each place.
    private func expected(_ text: String, _ find: String, _ replacement: String, atMost most: Int) -> (String, Int) {
        let (text, find, replacement) = (Array(text.utf8), Array(find.utf8), Array(replacement.utf8))
        var output: [UInt8] = []
        var count = 0
        var at = 0
        while at < text.count {
            if count < most, text[at...].starts(with: find) {
                output += replacement
                at += find.count
                count += 1
            } else {
                output.append(text[at])
                at += 1
            }
        }
        return (String(decoding: output, as: UTF8.self), count)
    }

    @Test(arguments: [
        ("a cat and a cat", "cat", "dog"), ("aaaa", "aa", "b"), ("aabaabaaab", "aabaaa", "X"),
        ("abababac", "ababac", "-"),
        ("", "a", "b"), ("aaa", "aaaa", "b"), ("no match at the en", "end", "END"), ("käse käse", "ä", "ae"),
        ("xx", "x", ""), ("xax", "x", "xx"),
    ])
    func `texts are replaced from left to right, however the content is cut`(
        text: String, find: String, replacement: String
    ) {
        for most in [1, 2, .max] {
            let (whole, count) = expected(text, find, replacement, atMost: most)
            for piece in 1...max(1, text.utf8.count) {
                let (got, found) = replace(text, find, replacement, atMost: most, piece: piece)
                #expect((got, found) == (whole, count), "\(text), in pieces of \(piece), at most \(most)")
            }
        }
    }

    @Test func `random contents of few letters are as if each place were tried`() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<2000 {
            func letters(_ range: ClosedRange<Int>) -> String {
                String((0..<Int.random(in: range, using: &random)).map { _ in Bool.random() ? "a" : "b" })
            }
            let (text, find, replacement) = (letters(0...24), letters(1...5), letters(0...3))
            let (whole, count) = expected(text, find, replacement, atMost: 3)
            let piece = Int.random(in: 1...5)
            let (got, found) = replace(text, find, replacement, atMost: 3, piece: piece)
            #expect((got, found) == (whole, count), "\(find) in \(text), in pieces of \(piece)")
        }
    }

    @Test func `a text that nearly matches everywhere takes linear time`() {
        let text = String(repeating: "a", count: 1 << 20)
        let find = String(repeating: "a", count: 4000) + "b"
        let clock = ContinuousClock()
        var result = ("", 0)
        let time = clock.measure { result = replace(text, find, "c", piece: 1 << 16) }
        #expect(result.0 == text)
        #expect(time < .seconds(20), "4,000 times as long would be minutes")
    }

    @Test func `output that outgrows its limit is refused`() {
        var replacer = TextReplacer(.init([0x61]), with: [UInt8](repeating: 0x62, count: 100), atMost: .max)
        var output: [UInt8] = []
        let input = [UInt8](repeating: 0x61, count: 1000)
        #expect(throws: TextReplacer.Outgrown.self) {
            try input.withUnsafeBytes { try replacer.replace(in: $0, into: &output, upTo: 5000) }
        }
        #expect(output.count <= 5100)
    }
}
