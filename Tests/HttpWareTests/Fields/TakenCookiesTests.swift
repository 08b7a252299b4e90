import Testing

@testable import HttpWare

@Suite struct TakenCookiesTests {
    private func fields(_ lines: [String]) throws -> HttpFields {
        var fields = HttpFields()
        for line in lines { try fields.append(.cookie, line) }
        fields.receivedCount = fields.lines.count
        return fields
    }

    @Test(arguments: [
        (["s=1"], [], ["s 1"]), (["s=1; t=x"], ["t=x"], ["s 1"]), (["t=x; s=1;u=y"], ["t=x; u=y"], ["s 1"]),
        (["t=x", "s=\"1\"; s.1 = 2", "s"], ["t=x", "s"], ["s 1", "s.1 2"]), (["ss=1; t=s=1"], ["ss=1; t=s=1"], []),
        (["s=; s=a=b; ;=;x"], ["=; x"], ["s ", "s a=b"]), ([""], [""], []),
    ])
    func `cookies that are taken are missing from the fields as received, and the others stay as they are`(
        lines: [String], left: [String], taken: [String]
    ) throws {
        var fields = try fields(lines)
        var found: [String] = []
        fields.takeCookies { name, value in
            let name = String(decoding: name, as: UTF8.self)
            guard name == "s" || name.hasPrefix("s.") else { return false }
            found.append("\(name) \(String(decoding: value, as: UTF8.self))")
            return true
        }
        #expect(found == taken)
        #expect(fields.values(of: .cookie) == left)
        #expect(fields.received.values(of: .cookie) == left)
    }
}
