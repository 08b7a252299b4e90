import Testing

@testable import HttpWareCommand

@Suite struct AdminQueryTests {
    @Test func `parameters that have a value are joined, and their values encoded - RFC 3986 §2.1`() {
        #expect(AdminQuery([]).text == "")
        #expect(AdminQuery([("a", nil), ("b", nil)]).text == "")
        #expect(AdminQuery([("prefix", ""), ("tag", nil)]).text == "?prefix=")
        #expect(
            AdminQuery([("key", "http://a/x?y=1&z=+ %2F"), ("n", "ä\n~")]).text
                == "?key=http%3A%2F%2Fa%2Fx%3Fy%3D1%26z%3D%2B%20%252F&n=%C3%A4%0A~")
    }
}
