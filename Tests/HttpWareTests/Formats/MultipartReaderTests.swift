import HttpWare
import Testing

@Suite struct MultipartReaderTests {
    private func parts(_ text: String, _ boundary: String = "b") -> [String] {
        let bytes = Array(text.utf8)
        var reader = MultipartReader(bytes, boundary: Array(boundary.utf8))
        var parts: [String] = []
        while let part = reader.next() {
            let content = String(decoding: bytes[part.content], as: UTF8.self)
            parts.append("\(part.names.joined(separator: "+"))\(part.type.map { "(\($0))" } ?? "")=\(content)")
        }
        #expect(reader.next() == nil)
        return parts
    }

    @Test(arguments: [
        ("--b\n\nx\n--b--", ["=x"]),
        ("--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n--b--\r\n", ["a=x"]),
        (
            "--b\nContent-Disposition: form-data; name=a\n\n1\n--b\nContent-disposition:x;name=c\nCONTENT-TYPE: t\n\n2\n3\n--b--",
            ["a=1", "c( t)=2\n3"]
        ),
        // A preamble, a longer and a shorter boundary, spaces after a boundary.
        ("before\n--b  \n\nx\n--bb\n--\n--b--", ["=x\n--bb\n--"]),
        // No content, and no head section's end.
        ("--b\n\n--b\nA: b\n--b\n\n\n--b--", []),
        // Cut off in the content, in the head section and in the boundary.
        ("--b\n\nx", ["=x"]), ("--b\nA: b", []), ("--b\n\nx\n--", ["=x\n--"]), ("--b\n\nx\n--b", ["=x"]), ("--b", []),
        ("", []),
        // Text after the last boundary counts.
        ("--b\n\nx\n--b--\n\ny", ["=x", "=y"]),
        // A folded field line.
        ("--b\nContent-Disposition: form-data;\n x; name=a\n\nx", ["a=x"]),
    ])
    func `parts are read as lenient servers read them`(text: String, expected: [String]) {
        #expect(parts(text) == expected)
    }

    @Test(arguments: [
        ("--b\nA: b\n\nx", "b"), ("--b \r\nA:b\r\n\r\nx", "b"), ("preamble\n--b\nA: b\n\nx", "b"),
        ("--\nA: b\n\n", nil),
        ("--b\nno field\n\n", nil), ("--b", nil), ("--b\n", nil), ("", nil), ("-- b\nA: b\n\n", " b"),
        ("- b\nA: b\n\n", nil),
    ])
    func `a boundary is known by the field line behind it`(text: String, expected: String?) {
        #expect(MultipartReader.boundary(in: Array(text.utf8)).map { String(decoding: $0, as: UTF8.self) } == expected)
    }

    @Test func `reading takes linear time`() {
        let start = ContinuousClock.now
        #expect(parts(String(repeating: "--b\n", count: 200_000)).isEmpty)
        #expect(parts(String(repeating: "--b\n\nx\n", count: 50_000)).count == 50_000)
        #expect(ContinuousClock.now - start < .seconds(60))
    }

    @Test(arguments: [
        ("a; name=b", "b"), ("a; NAME = \"b\\\"c\"; x", "b\"c"), ("a; name*=utf-8''b", "utf-8''b"), ("a; xname=b", nil),
        ("a; x=\"; name=b\"; name=c", "c"), ("name=b", nil), ("a; name", nil), ("a; name=", ""), ("a; name=\"b", "b"),
    ])
    func `the parameters of a field are read`(line: String, expected: String?) {
        let value = FieldParameters.value(of: "name", in: Array(line.utf8)[...])
        #expect(value.map { String(decoding: $0, as: UTF8.self) } == expected)
    }
}
