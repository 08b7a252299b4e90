import HttpCaching
import HttpWare
import StoreRig
import Testing

@Suite struct VaryKeyTests {
    private func lookUp(_ lines: [String]) -> (FieldName) -> [String] {
        let all = fields(lines)
        return { all.values(of: $0) }
    }

    /// A `Vary`, the lines of the request that had the response, those of another, and whether that one matches.
    @Test(arguments: [
        ("", ["A: 1"], ["A: 2"], true), ("A", ["A: 1"], ["A: 1"], true), ("A", ["A: 1"], ["A: 2"], false),
        ("a", ["A: 1"], ["A: 1", "B: 2"], true), ("A", [], [], true), ("A", [], ["A: 1"], false),
        ("A", ["A: 1"], [], false), ("A", [], ["A:"], false), ("A, B", ["A: 1", "B: 2"], ["A: 1", "B: 2"], true),
        ("A, B", ["A: 1", "B: 2"], ["A: 1", "B: 3"], false), ("A,,B,", ["A: 1"], ["A: 1", "B: 3"], false),
        ("A", ["A: x, y"], ["A: x,y"], true), ("A", ["A: x, y"], ["A: x", "A: y"], true),
        ("A", ["A: x, y"], ["A: y, x"], false), ("A", ["A: x"], ["A: X"], false), ("A", ["A: x  y"], ["A: x y"], false),
        ("A", ["A: \"x, y\""], ["A: \"x,y\""], false), ("A", ["A: a b"], ["A:  a b\t"], true),
    ])
    func `a response matches requests with the same values, RFC 9111 §4.1`(
        vary: String, first: [String], second: [String], matches: Bool
    ) throws {
        let response = fields(vary.isEmpty ? [] : ["Vary: \(vary)"])
        let key = try #require(VaryKey(response, request: lookUp(first)))
        #expect(key.matches(lookUp(second)) == matches)
    }

    @Test(arguments: [
        ("Accept-Encoding", "gzip, br", "br, gzip", true), ("Accept-Encoding", "GZIP", "gzip", true),
        ("Accept-Encoding", "gzip;q=1.0", "gzip", true), ("Accept-Encoding", "gzip;q=1", "gzip ; q=1.000", true),
        ("Accept-Encoding", "gzip;q=0.5", "gzip;q=0.50", true), ("Accept-Encoding", "gzip;q=0.5", "gzip", false),
        ("Accept-Encoding", "gzip;q=0", "gzip", false), ("Accept-Encoding", "gzip;q=x", "gzip", false),
        ("Accept-Encoding", "gzip;q=2", "gzip", false),
        ("Accept-Encoding", "gzip;q=0.5", "gzip;q=500", false), ("Accept-Encoding", "gzip", "gzip, br", false),
        ("Accept-Language", "de, en;q=0.8", "en;q=0.8,de", true), ("Accept-Language", "de, en", "en-GB, de", false),
        ("Accept-Language", "DE", "de", true), ("Accept", "a/b, c/d", "c/d, a/b", false),
    ])
    func `languages and codings are sets with weights`(name: String, first: String, second: String, matches: Bool)
        throws
    {
        let key = try #require(VaryKey(fields(["Vary: \(name)"]), request: lookUp(["\(name): \(first)"])))
        #expect(key.matches(lookUp(["\(name): \(second)"])) == matches)
    }

    @Test(arguments: ["*", "A, *", "a b", "\"A\""])
    func `a star, or text that is not a field name, matches nothing, RFC 9111 §4.1`(vary: String) {
        #expect(VaryKey(fields(["Vary: \(vary)"]), request: lookUp([])) == nil)
    }

    @Test func `a request's value is read once for many variants, and compared with each`() throws {
        var read = 0
        var known = VaryKey.Known()
        var matching: [Int] = []
        for number in 0..<128 {
            let key = try #require(VaryKey(fields(["Vary: A, B"]), request: lookUp(["A: \(number)"])))
            let matches = key.matches(
                { name in
                    read += 1
                    return name == "A" ? ["77"] : []
                }, &known)
            if matches { matching.append(number) }
        }
        #expect(matching == [77])
        #expect(read == 2)
    }

    /// The value of `A` in two requests, as bytes.
    @Test(
        arguments: [
            ([0x4d, 0xfc], [0x4d, 0xfc], true), ([0x4d, 0xfc], [0x4d, 0xe4], false), ([0xff], [0xfe], false),
            ([0xef, 0xbf, 0xbd], [0xff], false), ([0xe4, 0x2c, 0x20, 0xfc], [0xe4, 0x2c, 0xfc], true),
            (Array("a, b".utf8), Array("a,b".utf8), true),
        ] as [([UInt8], [UInt8], Bool)])
    func `values that are not UTF-8 are equal only where their bytes are, RFC 9111 §4.1`(
        first: [UInt8], second: [UInt8], matches: Bool
    ) throws {
        var (one, other) = (HttpFields(), HttpFields())
        try one.append("A", raw: first)
        try other.append("A", raw: second)
        for names in ["A", "A, Accept-Language"] {
            let key = try #require(VaryKey(fields(["Vary: \(names)"]), of: one))
            #expect(key.matches(other) == matches)
            #expect(key.matches(one))
        }
    }

    @Test(arguments: [
        (["\"a", "b\""], ["\"a,b\""]), (["\"a", "x\" , b"], ["\"a,x\" , b"]), (["\"a, b"], ["\"a,b"]),
    ])
    func `a quoted string without an end is not joined with the next line, RFC 9110 §5.3`(
        first: [String], second: [String]
    ) throws {
        let (one, other) = (fields(first.map { "A: \($0)" }), fields(second.map { "A: \($0)" }))
        let key = try #require(VaryKey(fields(["Vary: A"]), of: one))
        #expect(key.matches(one) && !key.matches(other))
    }

    @Test(arguments: [
        ("fr;q=0.5, de;q=1.0", "de", true), ("DE", "de", true), ("de", "DE", true), ("en, de", "de", false),
        ("fr, de;q=0.9", "de", false), ("de-AT", "de", false), ("de", "de-AT", false), ("de", "de, en", false),
        ("*", "*", false), ("de;q=0", "de", false), ("de;q=x", "de", false), ("de", "", false), ("", "de", false),
        ("de;q=0.1", "de", true), ("de, de", "de", true), ("de;x=1", "de", false),
    ])
    func `a response is selected by the language that a request prefers to all others, RFC 9110 §12.5.4`(
        accepted: String, language: String, isSelected: Bool
    ) throws {
        let asked = fields(["Accept-Language: en, de", "A: 1"])
        let lines = ["Vary: Accept-Language, A"] + (language.isEmpty ? [] : ["Content-Language: \(language)"])
        let judged = Judged(["Cache-Control: max-age=60"] + lines)
        let head = StoredHead(
            status: .ok, fields: fields(lines), times: judged.times, directives: judged.directives,
            lifetime: judged.lifetime, vary: try #require(VaryKey(fields(lines), of: asked)), mode: .shared)
        let stored = StoredResponse(head, content: .bytes([]))
        for (more, isSame) in [("A: 1", true), ("A: 2", false)] {
            let request = fields((accepted.isEmpty ? [] : ["Accept-Language: \(accepted)"]) + [more])
            #expect((PreferredLanguage(request)?.selects(stored, for: request) ?? false) == (isSelected && isSame))
        }
    }

    @Test func `a Vary of ten thousand names is not compared`() {
        let names = (0..<10_000).map { "X-\($0)" }.joined(separator: ",")
        #expect(VaryKey(fields(["Vary: \(names)"]), request: lookUp([])) == nil)
    }
}
