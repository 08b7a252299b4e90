import Testing

@testable import HttpWare

/// RFC 9112 §3.2: the four forms of a request target.
@Suite struct RequestTargetTests {
    private func parse(_ text: String, _ method: HttpMethod = .get, isReverse: Bool = false) throws -> RequestTarget {
        var target = RequestTarget()
        try target.parse(
            Array(text.utf8).span.bytes, isConnect: method == .connect, isOptions: method == .options,
            isReverse: isReverse)
        return target
    }

    @Test(arguments: [
        ("/", "/", nil), ("/a/b", "/a/b", nil), ("/a?b", "/a", "b"), ("/a?", "/a", ""), ("/a?b?c", "/a", "b?c"),
        ("//a/b", "//a/b", nil),
        ("/a/%7e", "/a/~", nil), ("/?/../x", "/", "/../x"), ("/a:80", "/a:80", nil), ("/http://b/", "/http://b/", nil),
        ("/*", "/*", nil),
    ])
    func `origin form is a path and a query`(text: String, path: String, query: String?) throws {
        let target = try parse(text)
        #expect(target.form == .origin)
        #expect(target.string(target.path) == path)
        #expect((target.hasQuery ? target.string(target.query) : nil) == query)
        #expect(target.string(target.received) == text)
        #expect(target.host.count == 0 && target.port == nil && !target.isSecure)
    }

    @Test(arguments: [
        ("http://Example.COM/a?b", "example.com", nil, "/a", "/a?b"), ("http://a.:80/x", "a", UInt16(80), "/x", "/x"),
        ("HTTP://a", "a", nil, "/", "/"), ("http://a?b", "a", nil, "/", "/?b"), ("http://a:/", "a", nil, "/", "/"),
        ("http://[::1]:8/", "[::1]", 8, "/", "/"), ("http://[2001:DB8::1]/", "[2001:db8::1]", nil, "/", "/"),
        ("http://a/%7e/./b", "a", nil, "/~/b", "/%7e/./b"), ("http://a/b//c?", "a", nil, "/b//c", "/b//c?"),
    ])
    func `absolute form names the authority`(text: String, host: String, port: UInt16?, path: String, upstream: String)
        throws
    {
        let request = try HttpRequest(.get, text)
        #expect(request.target.form == .absolute)
        #expect(request.host == host && request.port == port)
        #expect(request.path == path && request.upstreamTarget == upstream)
        #expect(request.receivedTarget == text && request.scheme == "http")
        #expect(request.authority?.description == host + (port.map { ":\($0)" } ?? ""))
    }

    @Test func `absolute form may be https`() throws {
        #expect(try HttpRequest(.get, "https://a/b").scheme == "https")
    }

    @Test(arguments: [
        ("a:443", "a", UInt16(443)), ("[::1]:80", "[::1]", 80), ("1.2.3.4:5", "1.2.3.4", 5), ("A.b.:1", "a.b", 1),
    ])
    func `authority form is for CONNECT`(text: String, host: String, port: UInt16) throws {
        let request = try HttpRequest(.connect, text)
        #expect(request.target.form == .authority)
        #expect(request.host == host && request.port == port && request.path.isEmpty)
    }

    @Test func `asterisk form is for OPTIONS`() throws {
        // RFC 9112 §3.2.4.
        let request = try HttpRequest(.options, "*")
        #expect(request.target.form == .asterisk && request.path == "*" && request.upstreamTarget == "*")
        for method in [HttpMethod.get, .trace, .connect] {
            #expect(throws: GatewayError.self) { try HttpRequest(method, "*") }
        }
    }

    @Test func `OPTIONS for a whole server through a proxy becomes asterisk form`() throws {
        // RFC 9112 §3.2.4: "the last proxy on the request chain MUST send a request-target of '*'".
        #expect(try HttpRequest(.options, "http://a:8001").upstreamTarget == "*")
        #expect(try HttpRequest(.options, "http://a/").upstreamTarget == "/")
        #expect(try HttpRequest(.options, "http://a?b").upstreamTarget == "/?b")
        #expect(try HttpRequest(.get, "http://a").upstreamTarget == "/")
    }

    @Test(arguments: [
        "", "a", "a:80", "a/b", "?a", "http:", "http:/a", "http://", "http:///a", "http://?a", "http://:80/",
        "http://a:99999/", "http://u@a/",
        "http://a b/", "ws://a/", "file:///a", "http//a", "http://[::1/", "http://a\\b/", "javascript:a", "*a", "**",
    ])
    func `a target in none of the forms is refused`(text: String) {
        #expect(throws: GatewayError.self) { try HttpRequest(.get, text) }
    }

    @Test(arguments: [
        "a", "a:", "a:0", "a:65536", ":80", "/", "*", "http://a:80", "a:80/", "u@a:80", "[::1]", "::1:80", "a:80:80",
        "a:+80",
    ])
    func `a target without host and port is refused for CONNECT`(text: String) {
        #expect(throws: GatewayError.self) { try HttpRequest(.connect, text) }
    }

    @Test func `a reverse listener sends plain dot segments removed, a forward one as received`() throws {
        let reverse = try parse("/a/../b?c", isReverse: true)
        #expect(reverse.string(reverse.path) == "/b" && reverse.string(reverse.upstreamPath) == "/b")
        let forward = try parse("/a/../b?c")
        #expect(forward.string(forward.path) == "/b" && forward.string(forward.upstreamPath) == "/a/../b")
        let encoded = try parse("/%7e", isReverse: true)
        #expect(encoded.string(encoded.path) == "/~" && encoded.string(encoded.upstreamPath) == "/%7e")
    }

    @Test func `a request goes to another path, query and authority when it is told to`() throws {
        var request = try HttpRequest(.get, "http://a:1/b?c=1&d&c=%32")
        #expect(
            request.queryValues("c") == ["1", "%32"] && request.queryValues("d") == [""]
                && request.queryValues("e").isEmpty)
        try request.setPath("/x/./%7e")
        try request.setQuery("y=z")
        request.setAuthority(try #require(Authority("B.example:8")))
        #expect(request.path == "/x/~" && request.upstreamTarget == "/x/~?y=z")
        #expect(request.host == "b.example" && request.fields[.host] == "b.example:8")
        try request.setQuery(nil)
        #expect(request.query == nil && request.upstreamTarget == "/x/~")
        for path in ["", "a", "/a?b", "/a b", "/a\r\n", "/..", "/%00"] {
            #expect(throws: GatewayError.self) { try request.setPath(path) }
        }
        for query in ["a b", "a\r\nb", "a#b"] { #expect(throws: GatewayError.self) { try request.setQuery(query) } }
        #expect(request.upstreamTarget == "/x/~")
    }

    @Test(arguments: [
        ("/p%61ge?q=%61", "A.Example.", "/page?q=%61", "a.example"), ("/a%2fb", "a.example:80", "/a%2Fb", "a.example"),
        ("/page", "a.example", "/page", "a.example"), ("/a%20b", "a.example:8", "/a%20b", "a.example:8"),
        ("/%7e", "A.example:8", "/~", "a.example:8"), ("/a", "[::1]:80", "/a", "[::1]"),
    ])
    func `a normal target is sent as its normal form has it, RFC 3986 §6.2.2`(
        target: String, host: String, sent: String, sentHost: String
    ) throws {
        var request = Feeding.request(Wire("GET \(target) HTTP/1.1\r\nHost: \(host)\r\n\r\n")).request
        let uri = request.targetUri()
        var other = request
        request.sendNormalTarget()
        #expect(request.upstreamTarget == sent && request.fields[.host] == sentHost)
        #expect(uri == request.targetUri() && uri == request.targetUri(asSent: true))
        #expect(request.receivedTarget == target && request.fields.received[.host] == host)
        other.sendNormalTarget(keepsPath: true)
        #expect(other.upstreamTarget == target && other.fields[.host] == sentHost)
    }

    @Test(arguments: [
        ("/a//b", "two slashes in a row"), ("//admin", "two slashes in a row"), ("/a//", "two slashes in a row"),
        ("/a\\b", "a backslash"), ("/admin;x", "a semicolon"), ("/a/..;/b", "a semicolon"),
        ("/a%2fb", "an encoded slash"), ("/a%2Fb", "an encoded slash"), ("/a%5Cb", "an encoded backslash"),
        ("/a%5cb", "an encoded backslash"), ("/a%3Bb", "an encoded semicolon"), ("/a%3b", "an encoded semicolon"),
        ("/%2561dmin", "an encoding that is encoded again"), ("/a;x/../b", "a semicolon"),
        ("http://a.test//b", "two slashes in a row"), ("http://a.test/b;c?d", "a semicolon"),
    ])
    func `a path that servers read differently is told`(target: String, form: String) throws {
        for isReverse in [true, false] {
            #expect(try parse(target, isReverse: isReverse).ambiguity.map { "\($0)" } == form)
        }
    }

    @Test(arguments: [("/100%", "a percent sign without two digits"), ("/a%00b", "an encoded NUL")])
    func `a path that only a proxy passes on is told, too`(target: String, form: String) throws {
        var passed = RequestTarget()
        try passed.parse(Array(target.utf8).span.bytes, isConnect: false, isReverse: false, isPassed: true)
        #expect(passed.ambiguity.map { "\($0)" } == form)
    }

    @Test(arguments: [
        "/", "/a/b/", "/a%20b", "/caf%C3%A9", "/a:b@c,d=e!f$g'h(i)*", "/a?b//c;d%2Fe\\f", "/100%25", "/a%25b", "/a%7Eb",
        "http://a.test", "http://a.test?//", "http://a.test/a?;",
    ])
    func `a path with one reading has no other`(target: String) throws {
        #expect(try parse(target).ambiguity == nil)
    }

    @Test func `CONNECT and the asterisk have no path`() throws {
        #expect(try parse("a.test:443", .connect).ambiguity == nil)
        var target = RequestTarget()
        try target.parse(Array("*".utf8).span.bytes, isConnect: false, isOptions: true, isReverse: true)
        #expect(target.ambiguity == nil)
    }
}

/// RFC 9110 §4.2, RFC 3986 §3.2.
@Suite struct AuthorityTests {
    @Test(arguments: [
        "[::ffff:192.0.2.1]", "[::FFFF:192.0.2.1]", "[0:0:0:0:0:ffff:c000:201]", "[::ffff:c000:0201]", "192.0.2.1",
    ])
    func `a request names an IPv4 address in one form, however it is written`(host: String) throws {
        let absolute = try HttpRequest(.get, "http://\(host):8080/a")
        #expect(absolute.host == "192.0.2.1" && absolute.port == 8080)
        let origin = Feeding.request(Wire("GET /a HTTP/1.1\r\nHost: \(host):8080\r\n\r\n")).request
        #expect(origin.host == "192.0.2.1" && origin.port == 8080)
        #expect(try HttpRequest(.connect, "\(host):443").host == "192.0.2.1")
        #expect(try HostPattern(optionText: host).name == Array("192.0.2.1".utf8))
    }

    @Test(arguments: [
        ("a", "a", nil), ("A.Example", "a.example", nil), ("a.", "a", nil), ("a:80", "a", UInt16(80)), ("a:", "a", nil),
        ("a.:8", "a", 8),
        ("a:0", "a", 0), ("a:65535", "a", 65535), ("a:00080", "a", 80), ("1.2.3.4", "1.2.3.4", nil),
        ("[::1]", "[::1]", nil),
        ("[::]", "[::]", nil), ("[1:2:3:4:5:6:7:8]:9", "[1:2:3:4:5:6:7:8]", 9), ("[1::8]", "[1::8]", nil),
        ("[1:2:3:4:5:6:7::]", "[1:2:3:4:5:6:7:0]", nil), ("[0:0:0::0:1]:1", "[::1]", 1),
        ("[::ffff:1.2.3.4]", "1.2.3.4", nil), ("[::FFFF:102:304]:80", "1.2.3.4", 80),
        ("[1:2:3:4:5:6:1.2.3.4]", "[1:2:3:4:5:6:102:304]", nil),
        ("[2001:DB8::A]", "[2001:db8::a]", nil),
        ("a_b-c~d", "a_b-c~d", nil), ("xn--nxasmq6b", "xn--nxasmq6b", nil),
    ])
    func `a host and a port are read`(text: String, host: String, port: UInt16?) throws {
        let authority = try #require(Authority(text))
        #expect(authority.host == host && authority.port == port)
        #expect(Authority(authority.description) == authority)
    }

    @Test(arguments: [
        "", ".", ":", ":80", "..", "a..", "a..b", ".a", "a b", "a/b", "a@b", "u:p@a", "a:b", "a:-1", "a:+1", "a:65536",
        "a:100000", "a:8 ",
        " a", "a\t", "a\u{0}", "a\r\n", "a%41", "a%", "\u{e9}", "[", "]", "[]", "[a]", "[:]", "[:::]", "[::1", "::1",
        "[::1]a", "[::1]:x",
        "[1:2:3:4:5:6:7]", "[1:2:3:4:5:6:7:8:9]", "[1::2::3]", "[12345::]", "[1:2:3:4:5:6:7:8::]", "[::1.2.3]",
        "[::1.2.3.256]", "[::01.2.3.4]",
        "[::1.2.3.4.5]", "[1.2.3.4]", "[::1.2.3.4:5]", "[:1]", "[1:]", "[fe80::1%25eth0]", "[fe80::1%eth0]", "[v1.a]",
        "a[::1]", "\"a\"", "a\\b", "<a>",
    ])
    func `text without host and port is refused`(text: String) { #expect(Authority(text) == nil) }
}
