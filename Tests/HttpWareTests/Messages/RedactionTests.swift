import Testing

@testable import HttpWare

@Suite struct RedactionTests {
    @Test(arguments: [
        ("http://user:pw@host:3128", "http://…@host:3128"), ("https://token@host/a", "https://…@host/a"),
        ("http://u:p@a,http://v:q@b", "http://…@b"), ("[http://a,http://v:q@b]", "[http://…@b]"),
        ("http://u:p@a http://b/c", "http://…@a http://b/c"),
        ("redis://:pw@host:6379/0", "redis://…@host:6379/0"), ("//u:p@host", "//…@host"),
        ("http://user:p/w@host", "http://…@host"), ("http://user:p#w?x@host", "http://…@host"),
        ("http://user:p\"w@host", "http://…@host"), ("http://user:p@w@host/", "http://…@host/"),
        ("user:pw@proxy:3128", "…@proxy:3128"), ("\"user:pw@proxy\" is not", "\"…@proxy\" is not"),
        ("http://host/@scope/a", "http://host/@scope/a"), ("http://host:8080/a@b", "http://host:8080/a@b"),
        ("http://[::1]:80/a@b", "http://[::1]:80/a@b"), ("http://host/?m=a@b", "http://host/?m=a@b"),
        ("mailto:ops@example.com", "mailto:ops@example.com"), ("ops@example.com", "ops@example.com"),
        ("a@b:c", "a@b:c"),
        ("http://user:pw x@h", "http://…@h"), ("a \"http://user:p/w x y@h:1/\" b", "a \"http://…@h:1/\" b"),
        ("http://user:12 34@h/ c", "http://…@h/ c"), ("redis://:pw x@h", "redis://…@h"),
        ("http://us er:pw@h", "http://us …@h"), ("http://user:pw x@y@h z", "http://…@h z"),
        ("http://host:80 and ops@h", "http://host:80 and ops@h"), ("http://host/ ops@h", "http://host/ ops@h"),
        ("http://host:80, ops@h", "http://host:80, ops@h"), ("http://user:pw\nx@h", "http://user:pw\nx@h"),
        ("http://a:b http://c/ x@h", "http://a:b http://c/ x@h"), ("http://[::1]:x y@h", "http://[::1]:x y@h"),
        ("http://a/,user:pw@h", "http://a/,…@h"), ("http://a:80/;b/|u:p@h", "http://a:80/;…@h"),
        ("{\"mail\":\"a@b.test\"}", "{\"mail\":\"a@b.test\"}"),
        ("{\"proxy\":\"u:p@b.test\"}", "{\"proxy\":\"…@b.test\"}"), ("unix:@name", "unix:@name"),
        ("--url=http://user:pw@h/", "--url=http://…@h/"), ("http://a:", "http://a:"), ("http://a: @", "http://…@"),
        ("@", "@"), ("", ""), ("://@", "://…@"), ("http://@h", "http://…@h"), ("[http://u:p@h, x]", "[http://…@h, x]"),
    ])
    func `user information in a text is not shown`(text: String, shown: String) {
        #expect(Redaction.text(text) == shown)
    }

    @Test(arguments: ["http://a:b ", "//", "http://a:1 ", "a,", "x:", "http://a/,", "@", "\":", "//@"])
    func `the search for user information takes linear time`(piece: String) {
        let text = String(repeating: piece, count: 400_000 / piece.utf8.count) + " x@y"
        #expect(ContinuousClock().measure { _ = (Redaction.text(text), Redaction.target(text)) } < .seconds(8))
    }

    @Test func `user information in the key path of an error is not shown`() {
        let error = ConfigError(
            at: .code, keyPath: "chains.a.middlewares[0].http://user:pw123@h/", message: "is not a ware")
        #expect(!"\(error)".contains("pw123") && error.keyPath.hasSuffix("http://…@h/"))
    }

    @Test func `a long password is masked before its text is shortened`() {
        let long = String(repeating: "s3cret", count: 40)
        #expect(!"http://user:\(long)@host".quotedForErrors.contains("s3"))
    }

    @Test(arguments: [
        ("/a", "/a"),
        ("/a?b=c", "/a?b=c"),
        ("/a?token=1&b=2", "/a?token=…&b=2"),
        ("/a?b=2&access_token=1", "/a?b=2&access_token=…"),
        ("/a?%74oKen=1", "/a?%74oKen=…"),
        ("/a?api_key=1&X-Amz-Signature=2&sig=3&code=4", "/a?api_key=…&X-Amz-Signature=…&sig=…&code=…"),
        ("/a?client_secret=a=b&&password=", "/a?client_secret=…&&password=…"),
        ("/a?token", "/a?token"),
        ("/a?author=x&state=open", "/a?author=x&state=open"),
        ("/a?%=1&%7=2&%zz=3", "/a?%=1&%7=2&%zz=3"),
        ("http://user:pw@host/a", "http://…@host/a"),
        ("http://host/a@b", "http://host/a@b"),
        ("http://user:pa&ss@host/", "http://…@host/"), ("//u:p&q@h/?a&b", "//…@h/?a&b"),
        ("http://user:p&q@host/?u=http://me:p@host&v=a@b", "http://…@host/?u=http://…@host&v=a@b"),
        ("http://user:pw@host/a?token=1&b", "http://…@host/a?token=…&b"),
        ("/a?u=http://me:pw@host/", "/a?u=http://…@host/"),
        ("/a?u=http://x&v=http://me:pw@host/", "/a?u=http://x&v=http://…@host/"),
        ("http://a:b@c/?u=http://me:pw@host/", "http://…@c/?u=http://…@host/"),
        ("/a?KEY=1&monkey=2&keys=3&ke=4", "/a?KEY=…&monkey=…&keys=3&ke=4"),
        ("/a?oAuth=1&mytokens=2&tok=3&toke=4", "/a?oAuth=…&mytokens=…&tok=3&toke=4"),
        ("/a?code=1&codes=2&sid=&pin=x", "/a?code=…&codes=2&sid=…&pin=…"),
        ("/a??token=1", "/a??token=…"),
        ("/a?=token&token==", "/a?=token&token=…"),
        ("/a?&&", "/a?&&"),
        ("/ä?naïve=ü&token=ß", "/ä?naïve=ü&token=…"),
        ("/a?b=1;token=2;c=3", "/a?b=1;token=…;c=3"),
        ("/a?token=1;2&c=3", "/a?token=…&c=3"),
        ("/a?token=1;2;b=3", "/a?token=…;b=3"),
        ("/a?b;token=1", "/a?b;token=…"),
        ("/a?;;token=1;", "/a?;;token=…"),
        ("/a;jsessionid=1?b=2", "/a;jsessionid=…?b=2"),
        ("/a;jsessionid=1/b;c=2;token=3", "/a;jsessionid=…/b;c=2;token=…"),
        ("/a;b/c", "/a;b/c"),
        ("*", "*"),
        ("", ""),
    ])
    func `credentials in a target are not shown`(target: String, shown: String) {
        #expect(Redaction.target(target) == shown)
        var bytes: [[UInt8]] = []
        Array(target.utf8).withUnsafeBufferPointer { target in
            Redaction.withTarget(target) { bytes.append(Array($0)) }
        }
        #expect(bytes == [Array(shown.utf8)])
    }
}
