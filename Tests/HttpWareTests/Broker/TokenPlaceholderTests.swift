import Testing

@testable import HttpWare

@Suite struct TokenPlaceholderTests {
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
}
