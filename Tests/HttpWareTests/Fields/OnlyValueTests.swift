import Testing

@testable import HttpWare

@Suite struct OnlyValueTests {
    private func text(_ value: OnlyValue<String>) -> String {
        switch value {
        case .absent: "absent"
        case .several: "several"
        case .one(let text): text
        }
    }

    private func decode(_ bytes: UnsafeRawBufferPointer) -> String { String(decoding: bytes, as: UTF8.self) }

    @Test func `a field that stands twice has no one value`() throws {
        var fields: HttpFields = ["X-A": "1", "Authorization": "x"]
        #expect(text(fields.withOnlyValue(of: "x-a", decode)) == "1")
        #expect(text(fields.withOnlyValue(of: .authorization, decode)) == "x")
        #expect(text(fields.withOnlyValue(of: "X-B", decode)) == "absent")
        try fields.append("X-A", "2")
        try fields.append(.authorization, "y")
        #expect(text(fields.withOnlyValue(of: "X-A", decode)) == "several")
        #expect(text(fields.withOnlyValue(of: .authorization, decode)) == "several")
        fields.remove("X-A" as FieldName)
        #expect(text(fields.withOnlyValue(of: "X-A", decode)) == "absent")
    }

    @Test(arguments: [
        (["a=1; k=v; b=2"], "v", ["a=1; b=2"]), (["k=v"], "v", []), (["k=\"v\";a=1"], "v", ["a=1"]),
        (["a=1;k = v"], "v", ["a=1"]),
        (["k=v; k=w"], "several", []), (["k=v", "k=w; a=1"], "several", ["a=1"]),
        (["ak=1; kk=2"], "absent", ["ak=1; kk=2"]),
        (["K=v"], "absent", ["K=v"]), (["k"], "absent", ["k"]), (["k=; a=é"], "", ["a=é"]),
        ([";;", "k=a=b"], "a=b", []), ([], "absent", []),
    ])
    func `RFC 6265 §4.2.1, a cookie is found and taken out, others stay`(lines: [String], value: String, rest: [String])
        throws
    {
        var fields = HttpFields()
        for line in lines { try fields.append(.cookie, line) }
        #expect(text(fields.withOnlyCookie("k", decode)) == value)
        #expect(fields.removeCookie("k") == (value != "absent"))
        #expect(fields.values(of: .cookie) == rest)
    }

    @Test(arguments: [
        ("/p?key=v", "v", nil), ("/p?a=1&key=v&b=2", "v", "a=1&b=2"), ("/p?key=v&b=%2f", "v", "b=%2f"),
        ("/p?b=+&key=v", "v", "b=+"),
        ("/p?k%65y=a%20b", "a b", nil), ("/p?key=a&x&key=b", "several", "x"), ("/p?keys=1", "absent", "keys=1"),
        ("/p?key", "", nil),
        ("/p?a=1&&key=v&&b", "v", "a=1&&&b"), ("/p?", "absent", ""), ("/p", "absent", nil),
        ("/p?a=é&key=1", "1", "a=é"),
    ])
    func `a query parameter is found decoded and taken out, other bytes stay`(
        target: String, value: String, rest: String?
    ) throws {
        var request = try HttpRequest(.get, target)
        #expect(text(request.withOnlyParameter("key", decode)) == value)
        #expect(request.removeParameter("key") == (value != "absent"))
        #expect(request.query == rest)
        #expect(request.receivedTarget == target)
    }

    @Test func `bytes that are not UTF-8 stay as they are`() throws {
        var request = HttpRequest()
        let target: [UInt8] = Array("/p?a=".utf8) + [0xff] + Array("&key=1".utf8)
        try request.target.parse(target.span.bytes, isConnect: false, isReverse: true)
        request.removeParameter("key")
        #expect(Array(request.target.bytes[request.target.query.range]) == [0x61, 0x3d, 0xff])
    }
}
