import Testing

@testable import HttpWare

@Suite struct PathPatternTests {
    private func matches(_ pattern: String, _ path: String) throws -> Bool {
        try Array(path.utf8).withUnsafeBytes { try PathPattern(optionText: pattern).matches($0) }
    }

    @Test(arguments: [
        ("/", ["/"], ["", "/a", "//", "*", "a"]),
        ("/exact", ["/exact"], ["/", "/exac", "/exactly", "/exact/", "/Exact", "exact"]),
        ("/exact/", ["/exact/"], ["/exact", "/exact//"]),
        ("/**", ["/", "/a", "/a/b/"], ["", "*", "a"]),
        ("/prefix/**", ["/prefix", "/prefix/", "/prefix/a/b", "/prefix//"], ["/prefixed", "/", "/pre"]),
        ("/users/{id}", ["/users/7", "/users/a%2Fb"], ["/users", "/users/", "/users/7/", "/users/7/x"]),
        ("/a/*/c", ["/a/b/c"], ["/a//c", "/a/c", "/a/b/b/c"]),
        (
            "/img/*.png", ["/img/a.png", "/img/.png", "/img/a.png.png"],
            ["/img/a.jpg", "/img/a/b.png", "/img/", "/img/a.pngx"]
        ),
        ("/a*b*c", ["/abc", "/axbxc", "/abbcc"], ["/ab", "/acb", "/xabc"]),
        ("/{a}/{b}/**", ["/1/2", "/1/2/3"], ["/1", "/1/"]),
        ("/%7euser/%2f", ["/~user/%2F"], ["/~user//"]),
        ("/ä b", ["/%C3%A4%20b"], ["/ä b"]),
    ])
    func `a pattern matches some paths and not others`(pattern: String, good: [String], bad: [String]) throws {
        for path in good { #expect(try matches(pattern, path), "\(path)") }
        for path in bad { #expect(try !matches(pattern, path), "\(path)") }
    }

    @Test(arguments: [
        "", "a", "*", "/**/a", "/a**", "/***", "/{a}/{a}", "/{a", "/a}", "/{}", "/{a}.json", "/{a b}", "/a?b", "/a#b",
        "/../a",
        "/./a", "/%", "/%2", "/%zz", "/%00", "http://a/",
    ])
    func `an invalid pattern of paths is refused`(text: String) {
        #expect(throws: OptionMistake.self) { try PathPattern(optionText: text) }
    }

    @Test(arguments: [
        ("/admin/**", ["/admin", "/Admin", "/ADMIN/x", "/aDmIn/\n"], ["/administration", "/x/admin", "/admin\n"]),
        ("/exact", ["/exact", "/EXACT"], ["/exact/", "/exact/x"]), ("/", ["/"], ["/a"]), ("/**", ["/", "/A/b"], [""]),
        ("/users/{id}/x", ["/USERS/7/X"], ["/users//x", "/users/7/8/x"]),
        ("/img/*.png", ["/Img/a.PNG", "/img/.png"], ["/img/a/b.png", "/img/", "/imgx/a.png"]),
        ("/a.b+c(d)", ["/A.B+C(D)"], ["/axb+c(d)", "/aabcd"]), ("/%C3%A4", ["/%c3%a4"], ["/ä"]),
    ])
    func `without case a pattern matches the same paths in any case`(pattern: String, good: [String], bad: [String])
        throws
    {
        let expression = try Pattern(optionText: PathPattern(optionText: pattern).expressionIgnoringCase)
        func matches(_ path: String) throws -> Bool {
            var time = PatternTime()
            return try Array(path.utf8).withUnsafeBytes { try expression.matches($0, within: &time) }
        }
        for path in good { #expect(try matches(path), "\(path)") }
        for path in bad { #expect(try !matches(path), "\(path)") }
    }

    @Test func `captures are segments by name`() throws {
        let pattern = try PathPattern(optionText: "/users/{id}/files/{name}/**")
        let ranges = Array("/users/42/files/a.txt/x".utf8).withUnsafeBytes { pattern.captured(in: $0) }
        #expect(pattern.captures == ["id", "name"])
        #expect(ranges == [7..<9, 16..<21])
    }

    @Test func `many stars before a long segment take little time`() throws {
        let pattern = try PathPattern(optionText: "/" + String(repeating: "*a", count: 500) + "b")
        let path = Array(("/" + String(repeating: "a", count: 16_000)).utf8)
        let begin = ContinuousClock.now
        #expect(!path.withUnsafeBytes { pattern.matches($0) })
        #expect(begin.duration(to: .now) < .seconds(1))
    }
}

@Suite struct HostPatternTests {
    private func matches(_ pattern: String, _ host: String, _ port: Int? = nil) throws -> Bool {
        try Array(host.utf8).withUnsafeBytes { try HostPattern(optionText: pattern).matches($0, port: port) }
    }

    @Test func `case, a trailing dot and the port count for nothing`() throws {
        #expect(try matches("Example.com.", "eXample.COM") && matches("example.com", "example.com.", 8080))
        #expect(try !matches("example.com", "example.org") && !matches("example.com", "www.example.com"))
        #expect(try !matches("example.com", "") && !matches("example.com", "."))
    }

    @Test func `a star is one or more labels, and not none`() throws {
        #expect(try matches("*.example.com", "a.example.com") && matches("*.example.com", "a.b.Example.com."))
        #expect(try !matches("*.example.com", "example.com") && !matches("*.example.com", ".example.com"))
        #expect(try !matches("*.example.com", "badexample.com"))
    }

    @Test func `a port in the pattern is asked for`() throws {
        #expect(try matches("example.com:8443", "example.com", 8443))
        #expect(try !matches("example.com:8443", "example.com", 443) && !matches("example.com:8443", "example.com"))
        #expect(
            try matches("[::1]:80", "[::1]", 80) && matches("[::1]", "[::1]", 1) && matches("127.0.0.1", "127.0.0.1"))
    }

    @Test(arguments: [
        "", "*", "*.", ".", "a..b", ".a", "a b", "*.*.a", "a.*", "ex*mple.com", "a:0", "a:65536", "a:", "a:b", "[::1",
        "::1",
        "[]", "[a]", "http://a", "a/b", "ä.de", ":80",
    ])
    func `an invalid pattern of hosts is refused`(text: String) {
        #expect(throws: OptionMistake.self) { try HostPattern(optionText: text) }
    }
}

@Suite struct TemplateTests {
    @Test func `a template is its texts and placeholders`() throws {
        let template = try Template(optionText: "/v1{request.path}?{{x}={request.query.a-b}{client.ip}")
        #expect(
            template.segments == [
                .text(Array("/v1".utf8)), .placeholder(.requestPath), .text(Array("?{x}=".utf8)),
                .placeholder(.requestQuery("a-b")), .placeholder(.clientIp),
            ])
        #expect(template.fixedText == nil)
        #expect(try Template(optionText: "{{\"a\": {{}}").fixedText == Array("{\"a\": {}}".utf8))
        #expect(try Template(optionText: "").fixedText == [])
        #expect(try Template(optionText: "{path.id}/{path.x}").neededCaptures == ["id", "x"])
    }

    @Test(arguments: [
        "{", "{request.path", "{}", "{ request.path }", "{request}", "{request.header.}", "{request.header.a b}", "{x}",
    ])
    func `an invalid placeholder is refused`(text: String) {
        #expect(throws: OptionMistake.self) { try Template(optionText: text) }
    }
}

@Suite struct ConfigNodeTests {
    @Test func `JSON follows the core schema of YAML 1.2`() {
        func json(_ text: String) -> String { ConfigNode(.scalar(text, isQuoted: false)).json }
        for text in ["1", "-1", "0.5", "1e9", "true", "false", "null"] { #expect(json(text) == text) }
        for text in ["yes", "01", ".5", "1.", "0x1", "+1", "1_0", "nan", "-"] { #expect(json(text) == "\"\(text)\"") }
        #expect(json("~") == "null" && json("") == "null")
        let node: ConfigNode = ["a": ["1", 1, true], "b\"": "\u{1}\n"]
        #expect(node.json == #"{"a":["1",1,true],"b\"":"\u0001\n"}"#)
    }
}
