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

    @Test func `bytes that are not UTF-8 are percent-encoded in a target, and ISO 8859-1 in a field`() {
        #expect(ReceivedText.target(Array("/a b\u{e9}\u{7f}".utf8)) == "/a%20b\u{e9}%7F")
        #expect(ReceivedText.target([0x2f, 0xe9, 0x41]) == "/%E9A")
        #expect(ReceivedText.text([0x74, 0xe9]) == "t\u{e9}" && ReceivedText.text(Array("t\u{e9}".utf8)) == "t\u{e9}")
    }
}
