import HttpWare
import Testing

@Suite struct CookieReaderTests {
    private func pieces(_ text: String) -> [String] {
        CookieReader.pairs(text).map { name, value in value.map { "\(name)=\($0)" } ?? name }
    }

    @Test(arguments: [
        ("a=b", ["a=b"]), ("a=b; c=d", ["a=b", "c=d"]), (" a\t=\tb ;c = d", ["a=b", "c=d"]), ("a=b=c", ["a=b=c"]),
        ("a", ["a"]), ("=", ["="]), ("=b", ["=b"]), ("a=", ["a="]), ("", [""]), (";", ["", ""]), ("a=b;", ["a=b", ""]),
        ("a=\"b;c\"", ["a=\"b", "c\""]), ("a b=c d", ["a b=c d"]), ("é=ü", ["é=ü"]),
    ])
    func `a line is split at semicolons, and a piece at its first equals sign`(text: String, expected: [String]) {
        #expect(pieces(text) == expected)
    }

    @Test func `the pieces and semicolons are all bytes of the range`() {
        let bytes = Array("xx a=b;; c = d ;e;yy".utf8)
        bytes.withUnsafeBytes { bytes in
            var reader = CookieReader(bytes, 2..<18)
            var whole: [UInt8] = []
            while let piece = reader.next() {
                whole += Array(bytes[piece.whole]) + [0x3b]
                #expect(piece.text.isEmpty || piece.whole.contains(piece.text.lowerBound))
                #expect(
                    piece.name.lowerBound >= piece.text.lowerBound && piece.name.upperBound <= piece.text.upperBound)
            }
            #expect(String(decoding: whole, as: UTF8.self) == " a=b;; c = d ;e;;")
        }
    }

    @Test(arguments: [
        ("\"b\"", "b"), ("b", "b"), ("\"", "\""), ("\"\"", ""), ("\"b", "\"b"), ("b\"", "b\""), ("", ""),
    ])
    func `quotes around a value are removed only in pairs`(text: String, expected: String) throws {
        var fields = HttpFields()
        try fields.append("Cookie", "n=\(text)")
        let found = fields.withOnlyCookie("n") { String(decoding: $0, as: UTF8.self) }
        guard case .one(let value) = found else {
            Issue.record("\(found)")
            return
        }
        #expect(value == expected)
    }
}
