import Testing

@testable import HttpWare

@Suite struct TokenPlaceholderTests {
    private func first(_ text: String, from: Int = 0) -> Int? {
        Array(text.utf8).withUnsafeBytes { TokenPlaceholder.first(in: $0, from: from) }
    }

    private func unfinished(_ text: String) -> Int {
        Array(text.utf8).withUnsafeBytes { TokenPlaceholder.unfinished(in: $0) }
    }

    private let one = "hwp_0123456789ABCDEFGHIJKLMNOPQRSTUV"

    @Test func `a placeholder is hwp_ and 32 letters and digits`() {
        let made = TokenPlaceholder.make()
        #expect(made.text.utf8.count == 36)
        #expect(TokenPlaceholder(made.text) == made)
        #expect(made != .make())
        for text in [
            "", "hwp_", String(one.dropLast()), one + "x", "hwp-" + one.dropFirst(4), "hwp_" + one.dropFirst(5) + "-",
        ] {
            #expect(TokenPlaceholder(text) == nil, "\(text)")
        }
    }

    @Test func `it is found at each place, and nowhere else`() {
        #expect(first(one) == 0)
        #expect(first("a\(one)b") == 1)
        #expect(first("hwp_hwp_\(one)") == 8)
        #expect(first("hwp_0123hwp\(one)") == 11)
        #expect(first("\(one)\(one)", from: 1) == 36)
        #expect(first(one, from: 1) == nil)
        for text in ["", "h", "hwp_", "_\(one.dropFirst(4))", String(one.dropLast()), "wp_\(one.dropFirst(4))"] {
            #expect(first(text) == nil, "\(text)")
        }
    }

    @Test func `an end that may be the beginning of one is known`() {
        #expect(unfinished("abc") == 3)
        #expect(unfinished("abch") == 3)
        #expect(unfinished("hwp_012") == 0)
        #expect(unfinished("hwp_012hw") == 0)
        #expect(unfinished("hwp_012hwp_") == 7)
        #expect(unfinished("hwp_012-hw") == 8)
        #expect(unfinished("xx" + one.dropLast()) == 2)
        #expect(unfinished("") == 0)
    }
}
