import HttpWare

extension CacheTrial {
    /// RFC 9111 §2, §4, §4.1.
    static let varying: [CacheTrial] = flat([keys, names, values])

    private static let fresh = control("max-age=60")

    private static func target(_ what: String, _ path: String, _ other: String, _ outcome: Outcome) -> CacheTrial {
        trial("§2", what, at: path, [fresh], thenPath: other, outcome)
    }

    private static let keys: [[CacheTrial]] = [
        [
            target("one path", "/a/b", "/a/b", .stored),
            target("an encoded letter", "/%61", "/a", .stored),
            target("case of an encoding", "/%e4", "/%E4", .stored),
            target("dot segments", "/a/../b", "/b", .stored),
            target("another path", "/a", "/b", .asked),
            target("case of a path", "/a", "/A", .asked),
            target("a slash more", "/a", "/a/", .asked),
            target("an encoded slash", "/a%2Fb", "/a/b", .asked),
            target("one query", "/?a=1&b=2", "/?a=1&b=2", .stored),
            target("another query", "/?a=1", "/?a=2", .asked),
            target("an order of the query", "/?a=1&b=2", "/?b=2&a=1", .asked),
            target("an empty query", "/", "/?", .asked),
        ]
    ]

    private static func vary(
        _ what: String, _ vary: String, _ first: [String], _ second: [String], _ outcome: Outcome
    ) -> CacheTrial {
        trial("§4.1", "\(what) (Vary: \(vary))", asks: first, [fresh, "Vary: \(vary)"], then: second, outcome)
    }

    private static let names: [[CacheTrial]] = [
        [
            vary("one value", "A", ["A: 1"], ["A: 1"], .stored),
            vary("another value", "A", ["A: 1"], ["A: 2"], .asked),
            vary("case of the name", "a", ["A: 1"], ["A: 1"], .stored),
            vary("a value that is not there any more", "A", ["A: 1"], [], .asked),
            vary("a value that was not there", "A", [], ["A: 1"], .asked),
            vary("none in both", "A", [], [], .stored),
            vary("an empty value is not none", "A", [], ["A: "], .asked),
            vary("others do not count", "A", ["A: 1", "B: 1"], ["A: 1", "B: 2"], .stored),
            vary("two names", "A, B", ["A: 1", "B: 1"], ["A: 1", "B: 1"], .stored),
            vary("one of two", "A, B", ["A: 1", "B: 1"], ["A: 1", "B: 2"], .asked),
            vary("a name twice", "A, a", ["A: 1"], ["A: 1"], .stored),
            vary("empty members", ",A,,", ["A: 1"], ["A: 1"], .stored),
            vary("a star", "*", [], [], .asked),
            vary("a star among names", "A, *", ["A: 1"], ["A: 1"], .asked),
            vary("what is no name", "a b", [], [], .asked),
            trial(
                "§4.1", "over two lines", asks: ["A: 1", "B: 1"], [fresh, "Vary: A", "Vary: B"],
                then: ["A: 1", "B: 2"], .asked),
            trial("§4.1", "a star on its own line", [fresh, "Vary: A", "Vary: *"], .asked),
        ]
    ]

    private static let values: [[CacheTrial]] = [
        [
            vary("white space at a comma", "A", ["A: 1, 2"], ["A: 1,2"], .stored),
            vary("lines joined", "A", ["A: 1", "A: 2"], ["A: 1, 2"], .stored),
            vary("order of lines", "A", ["A: 1", "A: 2"], ["A: 2", "A: 1"], .asked),
            vary("order of a list", "A", ["A: 1, 2"], ["A: 2, 1"], .asked),
            vary("case of a value", "A", ["A: x"], ["A: X"], .asked),
            vary("white space in a quoted string", "A", ["A: \"1, 2\""], ["A: \"1,2\""], .asked),
            vary(
                "languages in another order", "Accept-Language", ["Accept-Language: de, en"],
                ["Accept-Language: en, de"], .stored),
            vary(
                "languages in another case", "Accept-Language", ["Accept-Language: de"], ["Accept-Language: DE"],
                .stored),
            vary("a language more", "Accept-Language", ["Accept-Language: de"], ["Accept-Language: de, en"], .asked),
            vary(
                "weights of languages", "Accept-Language", ["Accept-Language: de;q=0.5"],
                ["Accept-Language: de;q=0.500"], .stored),
            vary(
                "another weight", "Accept-Language", ["Accept-Language: de;q=0.5"], ["Accept-Language: de;q=0.6"],
                .asked),
            vary(
                "codings in another order", "Accept-Encoding", ["Accept-Encoding: gzip, br"],
                ["Accept-Encoding: br,gzip"], .stored),
            vary(
                "a coding that is refused", "Accept-Encoding", ["Accept-Encoding: gzip;q=0"], ["Accept-Encoding: gzip"],
                .asked),
            vary("a weight of 1", "Accept-Encoding", ["Accept-Encoding: gzip;q=1"], ["Accept-Encoding: gzip"], .stored),
            trial(
                "RFC 9110 §12.5.4", "the language that is preferred to all others",
                asks: ["Accept-Language: en, de"], [fresh, "Vary: Accept-Language", "Content-Language: de"],
                then: ["Accept-Language: fr;q=0.5, de;q=1.0"], .stored),
            trial(
                "RFC 9110 §12.5.4", "one of two that are preferred", asks: ["Accept-Language: en"],
                [fresh, "Vary: Accept-Language", "Content-Language: de"], then: ["Accept-Language: de, en"], .asked),
            trial(
                "RFC 9110 §12.5.4", "a language, but another value of another field",
                asks: ["Accept-Language: en", "A: 1"], [fresh, "Vary: Accept-Language, A", "Content-Language: de"],
                then: ["Accept-Language: de", "A: 2"], .asked),
            trial(
                "RFC 9110 §12.5.4", "a language of what does not vary by it", asks: ["A: 1"],
                [fresh, "Vary: A", "Content-Language: de"], then: ["Accept-Language: de", "A: 2"], .asked),
            vary("other lists keep their order", "Accept", ["Accept: a/b, c/d"], ["Accept: c/d, a/b"], .asked),
        ]
    ]
}
