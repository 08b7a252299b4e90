import Testing

@testable import HttpWare

@Suite struct WrittenUriTests {
    private func request(_ target: String, host: String? = "A.test:80", isReverse: Bool = true) throws -> HttpRequest {
        var request = HttpRequest()
        let bytes = Array(target.utf8)
        try request.target.parse(bytes.span.bytes, isConnect: false, isOptions: true, isReverse: isReverse)
        if let host {
            let bytes = Array(host.utf8)
            _ = bytes.withUnsafeBufferPointer { request.target.setAuthority($0) }
        }
        return request
    }

    @Test(arguments: [
        "/a/../b", "/x/%7Ey", "/a//b/./c", "/q%2fR?x=%7e", "/?a=/../b", "/", "/a;p=1/../b", "/%C3%A9?%c3%a9",
    ])
    func `path and query are as the client wrote them`(target: String) throws {
        for isReverse in [true, false] {
            #expect(try request(target, isReverse: isReverse).writtenUri == "http://a.test" + target)
            let absolute = try request("HTTP://B.test:8080" + target, host: nil, isReverse: isReverse)
            #expect(absolute.writtenUri == "http://b.test:8080" + target)
        }
    }

    @Test(arguments: [
        ("https://b.test", "https://b.test/"), ("http://b.test?x=/y", "http://b.test/?x=/y"),
        ("https://b.test:443/a/./b", "https://b.test/a/./b"),
    ])
    func `an absolute target without a path has one`(target: String, expected: String) throws {
        var request = HttpRequest()
        let bytes = Array(target.utf8)
        try request.target.parse(bytes.span.bytes, isConnect: false, isReverse: false)
        #expect(request.writtenUri == expected)
    }

    @Test func `a target that a ware changed is as it goes upstream`() throws {
        var request = try request("/a/../b?x")
        try request.setQuery("y=1")
        #expect(request.writtenUri == "http://a.test/b?y=1")
        var other = try self.request("/x/%7Ey")
        other.setAuthority(try #require(Authority("c.test:81")))
        #expect(other.writtenUri == "http://c.test:81/x/%7Ey")
    }

    @Test func `CONNECT and OPTIONS for the server have no path, and a missing host is taken from elsewhere`() throws {
        #expect(try HttpRequest(.connect, "a.test:8443").writtenUri == "http://a.test:8443")
        #expect(try request("*").writtenUri == "http://a.test")
        let unread = HttpRequest()
        #expect(unread.writtenUri == "http://")
        let tunnel = Authority("b.test:443")
        #expect(unread.writtenUri(otherwise: tunnel, isSecure: true) == "https://b.test")
        #expect(
            try request("/a/../b", host: nil).writtenUri(otherwise: tunnel, isSecure: true) == "https://b.test/a/../b")
        #expect(
            try request("/a", host: nil).writtenUri(otherwise: Authority("b.test:8080"), isSecure: false)
                == "http://b.test:8080/a")
    }

    @Test(arguments: [
        "*", "foo", "-x", "%zz", "[::1", ".evil.test/", "@evil.test/", ":1@evil.test", "x://b.test/a", "http:",
        "http:/",
        "http://[::1", "http://u@/a", "http://b.test:99999/x", "?x", "\\x",
    ])
    func `a target that was refused never continues the name of the host`(target: String) throws {
        var request = HttpRequest()
        let bytes = Array(target.utf8)
        _ = try? request.target.parse(bytes.span.bytes, isConnect: false, isReverse: true)
        #expect(request.writtenUri(otherwise: Authority("a.test:8443"), isSecure: true) == "https://a.test:8443/")
        #expect(request.writtenUri == "http:///")
    }

    @Test(arguments: [("/a/%2e%2e/b", "/a/%2e%2e/b"), ("/%zz", "/%zz"), ("http://b.test/%zz?x", "/%zz?x")])
    func `the path of a refused request is shown as the client wrote it`(target: String, path: String) throws {
        var request = HttpRequest()
        let bytes = Array(target.utf8)
        #expect(throws: GatewayError.self) {
            try request.target.parse(bytes.span.bytes, isConnect: false, isReverse: true)
        }
        #expect(request.writtenUri(otherwise: Authority("b.test")) == "http://b.test" + path)
    }

    @Test func `a path of HTTP/2 to a proxy is whole`() throws {
        var request = HttpRequest()
        let bytes = Array("/a/../b/c?d=/e".utf8)
        try request.target.parse(bytes.span.bytes, isConnect: false, isReverse: false, isPassed: true)
        request.target.form = .absolute
        let host = Array("a.test".utf8)
        _ = host.withUnsafeBufferPointer { request.target.setAuthority($0) }
        #expect(request.writtenUri == "http://a.test/a/../b/c?d=/e")
        #expect(
            request.receivedParts.path == Array("/a/../b/c".utf8) && request.receivedParts.query == Array("d=/e".utf8))
    }

    @Test func `texts of a target have percent-encodings in place of bytes that are not UTF-8`() throws {
        let target: [UInt8] = Array("/caf".utf8) + [0xe9] + Array("?q=".utf8) + [0xe9]
        let request = try HttpRequest(.get, received: target)
        #expect(request.path == "/caf%E9" && request.query == "q=%E9" && request.receivedTarget == "/caf%E9?q=%E9")
        #expect(request.upstreamTarget == "/caf%E9?q=%E9" && request.upstreamTargetBytes == target)
        let plain = try HttpRequest(.get, received: Array("/caf\u{e9}".utf8))
        #expect(plain.path == "/caf\u{e9}")
        var trail = WareTrail()
        let text = trail.add(target)
        #expect(trail.target(text) == "/caf%E9?q=%E9")
    }

    @Test func `bytes that are not UTF-8 are percent-encoded in a target, and ISO 8859-1 in a field`() {
        #expect(ReceivedText.target(Array("/a b\u{e9}\u{7f}".utf8)) == "/a%20b\u{e9}%7F")
        #expect(ReceivedText.target([0x2f, 0xe9, 0x41]) == "/%E9A")
        #expect(ReceivedText.text([0x74, 0xe9]) == "t\u{e9}" && ReceivedText.text(Array("t\u{e9}".utf8)) == "t\u{e9}")
    }
}
