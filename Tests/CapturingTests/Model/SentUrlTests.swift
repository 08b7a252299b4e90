import Capturing
import HttpWare
import Testing

@Suite struct SentUrlTests {
    @Test(arguments: [
        ("https://a.test/x?y=1", "https://a.test/x?y=1"), ("http://a.test/a b?c d#frag", "http://a.test/a%20b?c%20d"),
        ("  http://a.test/#x\n", "http://a.test/"), ("http://bücher.test/", "http://xn--bcher-kva.test/"),
        ("https://MÜNCHEN.test:8443/ü?ß='", "https://xn--mnchen-3ya.test:8443/%C3%BC?%C3%9F=%27"),
        ("http://例え.テスト/", "http://xn--r8jz45g.xn--zckzah/"), ("http://faß。test", "http://xn--fa-hia.test"),
        ("http://a.test\\b\\c", "http://a.test/b/c"),
        ("http://a.test/{x}|\"<>`^", "http://a.test/%7Bx%7D|%22%3C%3E%60%5E"),
        ("http://a.test/%7e%zz\u{2026}", "http://a.test/%7e%zz%E2%80%A6"),
        ("nonsense with space", "nonsense with space"),
        ("HTTP://a.test/\t x", "http://a.test/%20x"), ("http://a.test?q=\u{1f600}", "http://a.test?q=%F0%9F%98%80"),
        ("", ""), ("http://", "http://"), ("http://user:pw@a.test/x@y", "http://a.test/x@y"),
        ("HTTPS://u@A.test:1?a@b", "HTTPS://A.test:1?a@b"), ("http://u@v@a.test#@", "http://a.test"),
        ("http://ü:ß@a.test/ü", "http://a.test/%C3%BC"), ("http:\\\\u@a.test\\x", "http://a.test/x"),
        ("a@b?c=http://d@e/", "a@b?c=http://d@e/"), ("http://a.test/?u=http://d@e/", "http://a.test/?u=http://d@e/"),
    ])
    func `a URL is sent as a browser sends it`(url: String, expected: String) throws {
        #expect(SentUrl.encoded(url) == expected)
        #expect(SentUrl.encoded(expected) == expected)
    }

    @Test func `no URL traps, and what was an http URL can be sent`() {
        var random = SystemRandomNumberGenerator()
        let pieces = [
            "http://", "https://", "a", "ü", "例", ".", "\u{3002}", ":", "8", "/", "?", "#", " ", "\\", "%", "\u{1f600}",
            "@", "-", "\u{0}", "\n",
        ]
        for _ in 0..<20_000 {
            let url =
                "http://a"
                + (0..<Int.random(in: 0...12, using: &random)).map { _ in pieces.randomElement() ?? "" }.joined()
            let sent = SentUrl.encoded(url)
            #expect(SentUrl.encoded(sent) == sent, "\(url.debugDescription)")
        }
        let long = String(repeating: "ü", count: 100_000)
        #expect(SentUrl.encoded("http://\(long)/\(long)").count > 100_000)
    }
}
