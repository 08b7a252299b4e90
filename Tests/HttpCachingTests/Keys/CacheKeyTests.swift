import HttpCaching
import HttpWare
import Testing

@Suite struct CacheKeyTests {
    private func key(_ target: String, _ rule: CacheKeyRule = CacheKeyRule()) throws -> String? {
        try rule.key(for: HttpRequest(.get, target))?.description
    }

    @Test(arguments: [
        ("http://example.com/a", "http://EXAMPLE.com:80/a"), ("http://example.com/%7Ea", "http://example.com./~a"),
        ("http://example.com/a/../b", "http://example.com/b"), ("http://example.com", "http://example.com/"),
    ])
    func `equal target URIs have one key, RFC 9110 §4.2.3`(first: String, second: String) throws {
        #expect(try key(first) == key(second))
    }

    @Test(arguments: [
        ("http://a.com/", "https://a.com/"), ("http://a.com/", "http://b.com/"), ("http://a.com/", "http://a.com:81/"),
        ("http://a.com/x", "http://a.com/X"), ("http://a.com/x", "http://a.com/x?"),
        ("http://a.com/x?a", "http://a.com/x?b"),
        ("http://a.com/x?a=1&b=2", "http://a.com/x?b=2&a=1"), ("http://a.com/%2F", "http://a.com//"),
    ])
    func `others have another`(first: String, second: String) throws {
        #expect(try key(first) != key(second))
    }

    @Test func `the configuration chooses the parameters that count`() throws {
        var rule = CacheKeyRule()
        rule.ignoredQuery = ["utm"]
        #expect(try key("http://a.com/?a=1&utm=x&b=2", rule) == "http://a.com/?a=1&b=2")
        #expect(try key("http://a.com/?utm=x", rule) == "http://a.com/")
        rule.query = ["b"]
        #expect(try key("http://a.com/?a=1&utm=x&b=2", rule) == "http://a.com/?b=2")
    }

    @Test func `a key that is too long is none`() throws {
        #expect(try key("http://a.com/" + String(repeating: "x", count: 17_000)) == nil)
    }

    @Test(arguments: [
        ("/b", "http://a.com/b"), ("b", "http://a.com/x/b"), ("?q", "http://a.com/x/y?q"), ("../b#f", "http://a.com/b"),
        ("http://a.com:80/b", "http://a.com/b"), ("//a.com/b", "http://a.com/b"),
    ])
    func `references are resolved on the same origin, RFC 9111 §4.4`(reference: String, expected: String) throws {
        let request = try HttpRequest(.get, "http://a.com/x/y")
        #expect(CacheKeyRule().key(for: reference, from: request)?.description == expected)
    }

    @Test(arguments: [
        "http://b.com/b", "https://a.com/b", "http://a.com:81/b", "//b.com/", "mailto:x", "http://", "a b",
    ])
    func `those to other origins are none of ours, RFC 9111 §4.4`(reference: String) throws {
        let request = try HttpRequest(.get, "http://a.com/x/y")
        #expect(CacheKeyRule().key(for: reference, from: request) == nil)
    }
}
