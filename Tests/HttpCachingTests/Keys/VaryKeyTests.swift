import HttpCaching
import HttpWare
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
        ("Accept-Encoding", "gzip;q=2", "gzip", false), ("Accept-Encoding", "gzip", "gzip, br", false),
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
    func `a star, or what is no name, matches nothing, RFC 9111 §4.1`(vary: String) {
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

    @Test func `a Vary of ten thousand names is not compared`() {
        let names = (0..<10_000).map { "X-\($0)" }.joined(separator: ",")
        #expect(VaryKey(fields(["Vary: \(names)"]), request: lookUp([])) == nil)
    }
}
