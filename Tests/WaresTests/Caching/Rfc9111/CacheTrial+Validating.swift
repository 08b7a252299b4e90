import HttpWare

extension CacheTrial {
    /// RFC 9111 §4.3, RFC 9110 §13, §14.
    static let validating: [CacheTrial] = flat([asking, conditional, ranges])

    private static let modified = dated("Last-Modified", -1000)

    private static func stale(_ what: String, _ answer: [String], _ outcome: Outcome) -> CacheTrial {
        trial("§4.3.1", what, [control("max-age=60")] + answer, wait: 60, outcome)
    }

    private static let asking: [[CacheTrial]] = [
        [
            stale("a tag is asked about", ["ETag: \"a\""], .validated),
            stale("a weak tag is asked about", ["ETag: W/\"a\""], .validated),
            stale("an empty tag is asked about", ["ETag: \"\""], .validated),
            stale("a date is asked about", [modified], .validated),
            stale("both are asked about", ["ETag: \"a\"", modified], .validated),
            stale("a tag without quotes is none", ["ETag: a"], .asked),
            stale("a tag in single quotes is none", ["ETag: 'a'"], .asked),
            stale("a date that is none is not asked about", ["Last-Modified: yesterday"], .asked),
            stale("nothing to ask about", [], .asked),
        ]
    ]

    private static func condition(_ section: String, _ what: String, _ lines: [String], _ status: Int) -> CacheTrial {
        condition(section, what, ["ETag: \"a\"", modified], lines, status)
    }

    private static func condition(
        _ section: String, _ what: String, _ answer: [String], _ lines: [String], _ status: Int
    ) -> CacheTrial {
        trial(
            section, "\(what): \(status)", [control("max-age=60"), dated("Date", 0)] + answer, then: lines, .stored,
            thenStatus: status)
    }

    private static let tags: [(String, Int)] = [
        ("\"a\"", 304), ("W/\"a\"", 304), ("\"b\"", 200), ("\"b\", \"a\"", 304), ("*", 304), ("a", 200), ("'a'", 200),
        ("\"A\"", 200), ("w/\"a\"", 200), ("\"b\",\"c\"", 200), ("\"a", 200), ("\"b,\"a\"", 200),
    ]

    private static let conditional: [[CacheTrial]] = [
        tags.map { condition("RFC 9110 §13.1.2", "If-None-Match: \($0.0)", ["If-None-Match: \($0.0)"], $0.1) },
        [
            condition(
                "RFC 9110 §8.8.3.2", "a weak tag compares weakly", ["ETag: W/\"a\""], ["If-None-Match: \"a\""], 304),
            condition(
                "RFC 9110 §8.8.3", "a tag with a comma", ["ETag: \"a,b\""], ["If-None-Match: \"x\", \"a,b\""], 304),
            condition("RFC 9110 §13.1.2", "a tag of what has none", [modified], ["If-None-Match: \"a\""], 200),
            condition("RFC 9110 §13.1.3", "modified at that time", [dated("If-Modified-Since", -1000)], 304),
            condition("RFC 9110 §13.1.3", "modified before it", [dated("If-Modified-Since", -999)], 304),
            condition("RFC 9110 §13.1.3", "modified after it", [dated("If-Modified-Since", -1001)], 200),
            condition("RFC 9110 §13.1.3", "a date that is none", ["If-Modified-Since: now"], 200),
            condition(
                "RFC 9110 §13.1.3", "two dates", [dated("If-Modified-Since", 0), dated("If-Modified-Since", 0)], 200),
            condition(
                "§4.3.2", "Date stands in for Last-Modified", ["ETag: \"a\""], [dated("If-Modified-Since", 0)], 304),
            condition("§4.3.2", "and is compared", ["ETag: \"a\""], [dated("If-Modified-Since", -1)], 200),
            condition("§4.3.2", "without any validator, too", [], [dated("If-Modified-Since", 0)], 304),
            condition("§4.3.2", "and compared", [], [dated("If-Modified-Since", -1)], 200),
            condition(
                "RFC 9110 §13.2.2", "a tag wins over a date that would do",
                ["If-None-Match: \"b\"", dated("If-Modified-Since", 0)], 200),
            condition(
                "RFC 9110 §13.2.2", "a tag wins over a date that would not",
                ["If-None-Match: \"a\"", dated("If-Modified-Since", -9999)], 304),
            trial(
                "§4.3.2", "a status that is not 200 is sent whole", status: 404,
                [control("max-age=60"), "ETag: \"a\""],
                then: ["If-None-Match: \"a\""], .stored, thenStatus: 404),
            trial(
                "§4.3.2", "If-Match is the origin server's", [control("max-age=60"), "ETag: \"a\""],
                then: ["If-Match: \"a\""], .asked),
            trial(
                "§4.3.2", "If-Unmodified-Since is the origin server's", [control("max-age=60"), "ETag: \"a\""],
                then: [dated("If-Unmodified-Since", 0)], .asked),
            trial(
                "RFC 9110 §15.4.5", "304 has the fields that it must, and none about content",
                [
                    control("max-age=60"), "ETag: \"a\"", "Vary: A", "Content-Location: /", "Content-Type: a/b",
                    dated("Date", -3),
                ],
                then: ["If-None-Match: \"a\""], .stored, thenStatus: 304,
                has: [
                    "ETag: \"a\"", "Vary: A", "Content-Location: /", control("max-age=60"), dated("Date", -3),
                    "Content-Type:", "Content-Length:",
                ]),
        ],
    ]

    private static func range(
        _ section: String, _ value: String, _ status: Int, _ field: String? = nil, _ more: [String] = []
    ) -> CacheTrial {
        trial(
            section, "Range: \(value)\(more.isEmpty ? "" : ", \(more[0])"): \(status)",
            [control("max-age=60"), "ETag: \"a\"", modified, dated("Date", 0)], then: ["Range: \(value)"] + more,
            .stored,
            thenStatus: status, has: [field.map { "Content-Range: \($0)" } ?? "Content-Range:"])
    }

    /// Of the five bytes of `first`.
    private static let ranges: [[CacheTrial]] = [
        [
            range("RFC 9110 §14.2", "bytes=0-1", 206, "bytes 0-1/5"),
            range("RFC 9110 §14.2", "bytes=0-0", 206, "bytes 0-0/5"),
            range("RFC 9110 §14.2", "bytes=3-", 206, "bytes 3-4/5"),
            range("RFC 9110 §14.1.2", "bytes=-2", 206, "bytes 3-4/5"),
            range("RFC 9110 §14.1.2", "bytes=-9", 206, "bytes 0-4/5"),
            range("RFC 9110 §14.1.2", "bytes=1-99", 206, "bytes 1-4/5"),
            range("RFC 9110 §14.1", "BYTES=0-1", 206, "bytes 0-1/5"),
            range("RFC 9110 §15.5.17", "bytes=5-", 416, "bytes */5"),
            range("RFC 9110 §15.5.17", "bytes=-0", 416, "bytes */5"),
            range("RFC 9110 §14.2", "bytes=2-1", 200),
            range("RFC 9110 §14.2", "bytes=x", 200),
            range("RFC 9110 §14.2", "lines=0-1", 200),
            range("RFC 9110 §14.2", "bytes=0-2,1-3", 206, "bytes 0-3/5"),
            range("RFC 9110 §14.2", "bytes=0-0,9-", 206, "bytes 0-0/5"),
            range("RFC 9110 §13.1.5", "bytes=0-1", 206, "bytes 0-1/5", ["If-Range: \"a\""]),
            range("RFC 9110 §13.1.5", "bytes=0-1", 200, nil, ["If-Range: W/\"a\""]),
            range("RFC 9110 §13.1.5", "bytes=0-1", 200, nil, ["If-Range: \"b\""]),
            range("RFC 9110 §13.1.5", "bytes=0-1", 206, "bytes 0-1/5", [dated("If-Range", -1000)]),
            range("RFC 9110 §13.1.5", "bytes=0-1", 200, nil, [dated("If-Range", -999)]),
            range("RFC 9110 §13.2.2", "bytes=0-1", 304, nil, ["If-None-Match: \"a\""]),
            range("RFC 9110 §13.2.2", "bytes=0-1", 206, "bytes 0-1/5", ["If-None-Match: \"b\""]),
            trial(
                "RFC 9110 §14.2", "HEAD knows no ranges", [control("max-age=60")], thenMethod: .head,
                then: ["Range: bytes=0-1"], .stored, thenStatus: 200),
            trial(
                "RFC 9110 §14.2", "only 200 has parts", status: 404, [control("max-age=60")],
                then: ["Range: bytes=0-1"],
                .stored, thenStatus: 404),
        ]
    ]
}
