import Testing

@testable import HttpCaching
@testable import HttpWare

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

    @Test(arguments: [
        ("i%64=1&x=2", "i%64=1"), ("%69%64=1", "%69%64=1"), ("id=1;x=2", "id=1;x=2"), ("x=2;id=1", "x=2;id=1"),
        ("x=2&id=1", "id=1"), ("id", "id"), ("%i%64=1", nil), ("id%3D=1", nil), ("a+b=1&c%20d=2", "a+b=1"),
    ])
    func `the names that count are compared decoded, RFC 3986 §6.2.2.2`(query: String, counts: String?) throws {
        var rule = CacheKeyRule()
        rule.query = ["id", "a b"]
        #expect(try key("http://a.com/?\(query)", rule) == "http://a.com/" + (counts.map { "?\($0)" } ?? ""))
    }

    @Test func `a plus that stands for itself is compared, too`() throws {
        var rule = CacheKeyRule()
        rule.query = ["a+b"]
        #expect(try key("http://a.com/?a+b=1&a%2Bb=2&a%20b=3", rule) == "http://a.com/?a+b=1&a%2Bb=2")
    }

    @Test(arguments: [
        ("utm%5fsource=1&a=2", "a=2"), ("%75tm_source=1", nil), ("utm_source=1;id=2", "utm_source=1;id=2"),
        ("utm_source=1&utm_source=2;", "utm_source=2;"), ("utm+source=1", "utm+source=1"),
    ])
    func `names that do not count are compared decoded, and a parameter with a semicolon counts, RFC 3986 §6.2.2.2`(
        query: String, counts: String?
    ) throws {
        var rule = CacheKeyRule()
        rule.ignoredQuery = ["utm_source", "utm source"]
        #expect(try key("http://a.com/?\(query)", rule) == "http://a.com/" + (counts.map { "?\($0)" } ?? ""))
    }

    @Test(arguments: [nil, ["a"]])
    func `bytes that are not UTF-8 tell keys apart`(names: [String]?) throws {
        var rule = CacheKeyRule()
        rule.query = names
        let keys = try [0xfc, 0xe4].map { byte in
            rule.key(for: try request("GET /?a=", [byte], " HTTP/1.1\r\nHost: a.com\r\n\r\n"))
        }
        #expect(keys[0] != nil && keys[0] != keys[1])
    }

    /// A request as it is decoded, of text, bytes and text.
    private func request(_ start: String, _ bytes: [UInt8], _ end: String) throws -> HttpRequest {
        var decoder = RequestHeadDecoder()
        var request = try HttpRequest(.get, "/")
        let wire = Array(start.utf8) + bytes + Array(end.utf8)
        _ = try decoder.decode(wire.span.bytes, into: &request, limits: HeadLimits(), isReverse: true)
        return request
    }

    // MARK: The path

    @Test(arguments: [("/p%61ge", "/page"), ("/a%2fb", "/a%2Fb")])
    func `a key with the path as received holds its bytes`(path: String, normal: String) throws {
        #expect(try key("http://a.com\(path)?q=%61") == "http://a.com\(normal)?q=%61")
        #expect(try key("http://A.com:80\(path)?q=%61", CacheKeyRule(path: .received)) == "http://a.com\(path)?q=%61")
    }

    @Test func `a key that is too long is refused`() throws {
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
    func `references to other origins have no key, RFC 9111 §4.4`(reference: String) throws {
        let request = try HttpRequest(.get, "http://a.com/x/y")
        #expect(CacheKeyRule().key(for: reference, from: request) == nil)
    }

    // MARK: Parts

    /// Keys of one URI and of others that look like it, each with other parts.
    private static let different: [CacheKey] = {
        let uri = Array("http://a.com/x".utf8)
        let (anna, bert) = (Digest256(of: ["anna"]), Digest256(of: ["bert"]))
        return [
            CacheKey(uri), CacheKey(uri, identity: anna), CacheKey(uri, identity: bert), CacheKey(uri, share: "a"),
            CacheKey(uri, share: "b"), CacheKey(uri, share: ""), CacheKey(uri, identity: anna, share: "a"),
            CacheKey(uri, identity: bert, share: "a"), CacheKey(uri, share: "identity \(anna.hex)"),
            CacheKey(uri, share: "a\nidentity \(anna.hex)"), CacheKey(uri + "\nidentity \(anna.hex)".utf8),
            CacheKey(uri + "\nshare a".utf8), CacheKey(uri).of(variant: [1]),
            CacheKey(uri, share: "a").of(variant: [1]),
            CacheKey(uri).of(variant: [2]), CacheKey(CacheKey(uri, share: "a").encoded),
        ]
    }()

    @Test func `no two keys with different parts are equal`() {
        #expect(Set(Self.different).count == Self.different.count)
        for (index, key) in Self.different.enumerated() {
            for (other, second) in Self.different.enumerated() { #expect((key == second) == (index == other)) }
        }
    }

    @Test func `parts can be set in any order, and only an identity makes a key personal`() {
        let uri = Array("http://a.com/x".utf8)
        let anna = Digest256(of: ["anna"])
        #expect(CacheKey(uri).of(anna).of(share: "a") == CacheKey(uri).of(share: "a").of(anna))
        #expect(CacheKey(uri).of(anna).of(anna) == CacheKey(uri, identity: anna))
        #expect(CacheKey(uri, share: "a").identity == nil && CacheKey(uri, share: "a").share == "a")
        #expect(CacheKey(uri, identity: anna).share == nil && CacheKey(uri, identity: anna).identity == anna)
        for key in Self.different { #expect(key.plain == CacheKey(key.uri) && key.plain.hashed == key.family) }
    }

    @Test func `a key reads as it was written, and a cut or longer one does not`() throws {
        for key in Self.different {
            guard key.hasParts else {
                #expect(key.encoded == key.uri)
                continue
            }
            let bytes = key.encoded
            #expect(CacheKey(encodedWithParts: bytes) == key)
            #expect(CacheKey(encodedWithParts: bytes + [0]) == nil)
            for count in bytes.indices { #expect(CacheKey(encodedWithParts: Array(bytes[..<count])) == nil) }
        }
    }
}
