import HttpWare
import Testing

@testable import GatewayWares

@Suite struct MediaPatternTests {
    @Test(arguments: [
        ("text/html", "text/html", true), ("text/html", "text/htmlx", false), ("TEXT/Html", "text/html", true),
        ("text/*", "text/plain", true), ("text/*", "text/", false), ("text/*", "texts/plain", false),
        ("text/*", "text", false),
        ("application/*+json", "application/problem+json", true), ("application/*+json", "application/json", false),
        ("application/*+json", "application/+json", false), ("image/svg+xml", "image/svg+xml", true),
        ("text/*", "", false),
    ])
    func `a pattern means types`(pattern: String, type: String, expected: Bool) throws {
        #expect(try MediaPattern(optionText: pattern).matches(type) == expected)
    }

    @Test(arguments: [
        "", "text", "/", "text/", "*/*", "*", "text/ht*", "text/*x", "text/html; charset=a", "a b/c", "a/b/c",
        "text/*+",
    ])
    func `an invalid pattern is refused`(text: String) {
        #expect(throws: OptionMistake.self) { try MediaPattern(optionText: text) }
    }

    @Test(arguments: ["text/html", "text/*", "application/*+json"])
    func `a pattern is written as it was read`(text: String) throws {
        #expect(try MediaPattern(optionText: text).optionText == text)
    }
}
