import Testing

@testable import HttpWare

@Suite struct OriginReferencesTests {
    private let origin = OriginReferences.Place(
        authorities: ["app.test:3000", "[2001:db8::1]", "shop.test"], isSecure: false, basePath: "/app")
    private let client = "https://www.test:8443"

    @Test(arguments: [
        ("http://app.test:3000/app/login?a=b#c", "https://www.test:8443/login?a=b#c"),
        ("HTTP://APP.test:3000", "https://www.test:8443"), ("http://app.test:3000/app", "https://www.test:8443/"),
        ("http://app.test:3000/app?x", "https://www.test:8443/?x"),
        ("http://app.test:3000/apple", "https://www.test:8443/apple"),
        ("http://shop.test:80/x", "https://www.test:8443/x"), ("//shop.test/x", "https://www.test:8443/x"),
        ("http://[2001:0DB8::1]/", "https://www.test:8443/"), ("/app/x", "/x"), ("/app", "/"),
        ("http://app.test:3000?a", "https://www.test:8443?a"),
    ])
    func `a reference to the origin server gets the client's authority and loses the base path`(
        text: String, expected: String
    ) {
        #expect(OriginReferences.reference(text[...], from: origin, for: client) == expected)
    }

    @Test(arguments: [
        "http://other.test/app/x", "https://shop.test/", "http://app.test/", "http://app.test:3001/", "login", "../x",
        "",
        "/apple", "/x", "/app//evil.test", "ftp://app.test:3000/", "mailto:a@app.test", "http:/app/x", "http:app",
        "http://user@app.test:3000/", "http://app.test:3000\\@evil.test/", "http://app.test:3000/\\evil.test", "?a",
        "#a",
        "http://", "//", "http://app.test:99999/", "javascript:alert(1)",
    ])
    func `any other reference stays`(text: String) {
        #expect(OriginReferences.reference(text[...], from: origin, for: client) == nil)
    }

    @Test(arguments: [
        ("/login", "/shop/login"), ("/app/login", "/shop/login"), ("/shop/x", "/shop/x"),
        ("http://app.test:3000/app/a?b", "https://www.test:8443/shop/a?b"),
        ("http://app.test:3000", "https://www.test:8443/shop/"),
        ("http://app.test:3000/shop/x", "https://www.test:8443/shop/x"),
    ])
    func `if a ware removed the front of the path, a reference is put back under it`(text: String, expected: String) {
        let prefix = StrippedPrefix("/shop")
        #expect(OriginReferences.reference(text[...], from: origin, for: client, under: prefix) == expected)
    }

    @Test(arguments: ["http://other.test/x", "x", "../x", "?a", "/\\evil.test", "mailto:a@b"])
    func `a reference that does not lead out of the prefix, or elsewhere, stays`(text: String) {
        let prefix = StrippedPrefix("/shop")
        #expect(OriginReferences.reference(text[...], from: origin, for: client, under: prefix) == nil)
    }

    @Test(arguments: [
        ("a=b; Path=/admin; HttpOnly", "a=b; Path=/shop/admin; HttpOnly"), ("a=b; path = /x", "a=b; Path=/shop/x"),
        ("a=b; Path=/", "a=b; Path=/"), ("a=b; Path=/shop", "a=b; Path=/shop"), ("a=b", "a=b"),
        ("a=b; Path=x", "a=b; Path=x"), ("a=b; Path", "a=b; Path"),
    ])
    func `the path of a cookie is put back under the prefix too`(value: String, expected: String) throws {
        var references = OriginReferences()
        references.rewritesRedirects = true
        var fields = HttpFields()
        try fields.append(.setCookie, value)
        references.rewrite(&fields, from: origin, for: client, under: StrippedPrefix("/shop"))
        #expect(fields[.setCookie] == expected)
        references.rewritesRedirects = false
        fields = HttpFields()
        try fields.append(.setCookie, value)
        references.rewrite(&fields, from: origin, for: client, under: StrippedPrefix("/shop"))
        #expect(fields[.setCookie] == value)
    }

    @Test func `to a client that named no host only the path is sent`() {
        #expect(OriginReferences.reference("http://shop.test/app/x", from: origin, for: nil) == "/x")
        #expect(OriginReferences.reference("http://shop.test", from: origin, for: nil) == "/")
        #expect(OriginReferences.reference("http://shop.test?a", from: origin, for: nil) == "/?a")
    }

    @Test(arguments: [
        ("0; url=http://shop.test/x", "0; url=https://www.test:8443/x"),
        ("5;URL = 'http://shop.test/app/'; a", "5;URL = 'https://www.test:8443/'; a"),
        ("1, url=\"http://shop.test/x", "1, url=\"https://www.test:8443/x"), ("5", nil), ("5; http://shop.test/", nil),
        ("5; url http://shop.test/", nil), ("5; url=", nil),
    ])
    func `the URL in Refresh is rewritten as browsers read it`(text: String, expected: String?) {
        #expect(OriginReferences.refresh(text, from: origin, for: client) == expected)
    }

    private func edited(_ value: String, _ change: (inout OriginReferences.CookieEdits) -> Void) -> String {
        var edits = OriginReferences.CookieEdits()
        change(&edits)
        return String(decoding: edits.edited(Array(value.utf8)), as: UTF8.self)
    }

    @Test func `attributes of cookies are replaced or removed, RFC 6265 §5_2`() {
        let cookie = "a=b; DOMAIN = shop.test; Path=/app;secure; SameSite=Lax; x"
        #expect(edited(cookie) { _ in } == cookie)
        #expect(edited(cookie) { $0.domain = "www.test" } == "a=b; Domain=www.test; Path=/app;secure; SameSite=Lax; x")
        #expect(edited(cookie) { $0.domain = "" } == "a=b; Path=/app;secure; SameSite=Lax; x")
        #expect(edited(cookie) { $0.path = "/" } == "a=b; DOMAIN = shop.test; Path=/;secure; SameSite=Lax; x")
        #expect(edited(cookie) { $0.isSecure = false } == "a=b; DOMAIN = shop.test; Path=/app; SameSite=Lax; x")
        #expect(edited(cookie) { $0.isSecure = true } == cookie)
        #expect(
            edited("domain=path; x") { ($0.domain, $0.path, $0.isSecure) = ("d", "/p", true) }
                == "domain=path; x; Secure")
        #expect(edited("") { $0.isSecure = true } == "; Secure")
    }

    @Test func `fields with several lines or without references stay as they are`() throws {
        var references = OriginReferences()
        references.rewritesRedirects = true
        references.cookies.path = "/"
        var fields: HttpFields = ["Location": "http://shop.test/a", "Set-Cookie": "a=b; Path=/x"]
        try fields.append(.setCookie, "c=d")
        references.rewrite(&fields, from: origin, for: client)
        #expect(
            fields[.location] == "https://www.test:8443/a" && fields.values(of: .setCookie) == ["a=b; Path=/", "c=d"])
        try fields.append(.location, "http://shop.test/b")
        references.rewrite(&fields, from: origin, for: "http://other.test")
        #expect(fields.values(of: .location).first == "https://www.test:8443/a")
        #expect(!references.concern(["Server": "x"]) && references.concern(["Refresh": "1"]))
    }
}
