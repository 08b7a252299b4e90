import Testing

@testable import HttpWare

@Suite struct RedactionTests {
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
        ("*", "*"),
        ("", ""),
    ])
    func `credentials in a target are not shown`(target: String, shown: String) {
        #expect(Redaction.target(target) == shown)
    }
}
