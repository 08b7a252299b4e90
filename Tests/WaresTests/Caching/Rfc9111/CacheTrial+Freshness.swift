import HttpWare

extension CacheTrial {
    /// RFC 9111 §4.2, §5.1, §5.2.2, §5.3.
    static let freshness: [CacheTrial] = flat([lifetimes, expiry, ages, heuristics, rules])

    /// Fresh in the last second of the lifetime, stale at its end.
    private static func both(
        _ section: String, _ what: String, _ answer: [String], seconds: Int, then outcome: Outcome = .asked
    ) -> [CacheTrial] {
        [
            trial(section, "\(what): fresh for \(seconds)s", answer, wait: seconds - 1, .stored),
            trial(section, "\(what): stale after \(seconds)s", answer, wait: seconds, outcome),
        ]
    }

    private static let lifetimes: [[CacheTrial]] = [
        both("§4.2.1", "max-age", [control("max-age=60")], seconds: 60),
        both("§4.2.1", "s-maxage wins over max-age", [control("max-age=5, s-maxage=60")], seconds: 60),
        both("§4.2.1", "s-maxage wins where it is shorter", [control("max-age=60, s-maxage=5")], seconds: 5),
        both("§4.2.1", "max-age wins over Expires", [control("max-age=60"), dated("Expires", 5)], seconds: 60),
        both("§4.2.1", "of several max-age the first counts", [control("max-age=60, max-age=5")], seconds: 60),
        both("§4.2.1", "on lines of their own, too", [control("max-age=60"), control("max-age=5")], seconds: 60),
        both("§5.2", "case means nothing", [control("MaX-aGe=60")], seconds: 60),
        both("§5.2", "quotes mean nothing", [control("max-age=\"60\"")], seconds: 60),
        both("§5.2", "empty members mean nothing", [control(", ,max-age=60,")], seconds: 60),
        both("§5.2", "white space means nothing", [control("no-transform \t,\t max-age=60")], seconds: 60),
        both("§1.2.2", "leading zeros mean nothing", [control("max-age=0060")], seconds: 60),
        [
            trial(
                "§5.2.2.10", "s-maxage means nothing to a private cache", [control("max-age=60, s-maxage=5")], wait: 30,
                isPrivate: true, .stored),
            trial(
                "§1.2.2", "2^31 is the most that counts", [control("max-age=99999999999999999999")],
                wait: 2_147_483_647,
                .stored),
            trial(
                "§1.2.2", "and it ends", [control("max-age=99999999999999999999")], wait: 2_147_483_648, .asked),
        ],
        ["-1", "1.5", "x", "", "'60'", "0x60", " 60", "60 s"].map {
            trial("§4.2.1", "max-age=\($0) is stale", [control("max-age=\($0)"), dated("Expires", 60)], .asked)
        },
        ["x=\"max-age=60\"", "max_age=60", "xmax-age=60", "max-agex=60", "x=\"a, max-age=60\""].map {
            trial("§5.2", "\($0) is no max-age", [control($0)], .asked)
        },
    ]

    private static let expiry: [[CacheTrial]] = [
        both("§5.3", "Expires", [dated("Date", 0), dated("Expires", 60)], seconds: 60),
        both("§4.2.1", "Expires without Date", [dated("Expires", 60)], seconds: 60),
        [
            trial(
                "§4.2.1", "Expires counts from Date, not from now",
                [dated("Date", 1000), dated("Expires", 1060)], wait: 59, .stored),
            trial("§5.3", "Expires that is Date", [dated("Date", 0), dated("Expires", 0)], .asked),
            trial("§5.3", "Expires before Date", [dated("Date", 0), dated("Expires", -60)], .asked),
            trial(
                "RFC 9110 §5.6.7", "Expires as RFC 850 has it", ["Expires: Thursday, 01-Jan-26 00:01:00 GMT"], wait: 59,
                .stored),
            trial(
                "RFC 9110 §5.6.7", "Expires as asctime has it", ["Expires: Thu Jan  1 00:01:00 2026"], wait: 59, .stored
            ),
        ],
        [
            "0", "-1", "60", "tomorrow", "Thu, 01 Jan 2026 00:10:00 PST", "Thu, 01 Jan 2026 00:10:00",
            "Thu, 01 Jan 2026 00:10:00 UTC", "2026-01-01T00:10:00Z", "Thu, 1 Jan 2026 00:10:00 GMT",
            "Thu, 01-Jan-2026 00:10:00 GMT", "Thu, 01 Jan 26 00:10:00 GMT", "01 Jan 2026 00:10:00 GMT",
            "\"Thu, 01 Jan 2026 00:10:00 GMT\"", "Thu, 32 Jan 2026 00:10:00 GMT",
        ].map { trial("§5.3", "Expires: \($0) is in the past", ["Expires: \($0)"], .asked) },
    ]

    private static let ages: [[CacheTrial]] = [
        both("§4.2.3", "an Age counts", [control("max-age=60"), "Age: 50"], seconds: 10),
        both("§4.2.3", "an old Date counts", [control("max-age=60"), dated("Date", -50)], seconds: 10),
        both(
            "§4.2.3", "of Age and Date the greater counts", [control("max-age=60"), "Age: 20", dated("Date", -50)],
            seconds: 10),
        both("§4.2.3", "a Date to come counts nothing", [control("max-age=60"), dated("Date", 50)], seconds: 60),
        both("§5.1", "of several ages the first counts", [control("max-age=60"), "Age: 50, 1"], seconds: 10),
        [
            trial("§5.1", "an Age of the whole lifetime", [control("max-age=60"), "Age: 60"], .asked),
            trial("§5.1", "an Age beyond all numbers", [control("max-age=60"), "Age: 99999999999999999999"], .asked),
            trial(
                "§5.1", "Age is sent, counted on", [control("max-age=60"), "Age: 50"], wait: 5, .stored,
                has: ["Age: 55"]),
            trial(
                "§5.1", "Age is sent where there was none", [control("max-age=60")], wait: 5, .stored, has: ["Age: 5"]),
            trial(
                "§4.2.3", "a Date that is none counts nothing", [control("max-age=60"), "Date: yesterday"], wait: 59,
                .stored),
            trial(
                "RFC 9110 §6.6.1", "Date is not changed", [control("max-age=60"), dated("Date", -7)], wait: 5, .stored,
                has: [dated("Date", -7)]),
        ],
        ["-5", "5.5", "x", "5s", "", "\"5\""].map {
            trial("§5.1", "Age: \($0) is ignored", [control("max-age=60"), "Age: \($0)"], wait: 59, .stored)
        },
    ]

    private static let heuristics: [[CacheTrial]] = [
        both(
            "§4.2.2", "a tenth of the time since Last-Modified", [dated("Last-Modified", -1000)], seconds: 100,
            then: .validated),
        [
            trial("§4.2.2", "at most a day", [dated("Last-Modified", -864_000_000)], wait: 86_399, .stored),
            trial("§4.2.2", "and no more", [dated("Last-Modified", -864_000_000)], wait: 86_400, .validated),
            trial(
                "§4.2.2", "none where there is an explicit lifetime",
                [control("max-age=1"), dated("Last-Modified", -1000)], wait: 1, .validated),
            trial(
                "§4.2.2", "none where Expires is in the past", ["Expires: 0", dated("Last-Modified", -1000)], .validated
            ),
            trial("§4.2.2", "none from a Last-Modified to come", [dated("Last-Modified", 1000)], .validated),
            trial("§4.2.2", "none from a Last-Modified that is no date", ["Last-Modified: long ago"], .asked),
            trial("§4.2.2", "none without Last-Modified", ["ETag: \"a\""], .validated),
        ],
    ]

    private static let rules: [[CacheTrial]] = [
        [
            "no-cache", "no-cache, max-age=60", "NO-CACHE, max-age=60", "no-cache=\"\", max-age=60",
            "no-cache=x y, max-age=60",
        ].map {
            trial("§5.2.2.4", "\($0) is validated each time", [control($0), "ETag: \"a\""], .validated)
        },
        ["must-revalidate", "proxy-revalidate", "s-maxage=60"].flatMap { directive in
            [
                trial(
                    "§4.2.4", "\(directive) allows no stale response",
                    [control("max-age=60, \(directive)"), "ETag: \"a\""],
                    wait: 61, then: [control("max-stale")], .validated),
                trial(
                    "§4.2.4", "\(directive) allows a fresh one", [control("max-age=60, \(directive)")], wait: 59,
                    .stored),
            ]
        },
        [
            trial(
                "§5.2.2.8", "proxy-revalidate means nothing to a private cache",
                [control("max-age=60, proxy-revalidate")], wait: 61, then: [control("max-stale")], isPrivate: true,
                .stored),
            trial(
                "§4.2.4", "what is stale is not used without a word for it", [control("max-age=60")], wait: 61, .asked),
            trial(
                "§5.5", "Warning is nothing that is made", [control("max-age=60")], wait: 61,
                then: [control("max-stale")], .stored, has: ["Warning:"]),
            trial("RFC 8246 §2", "immutable is no lifetime", [control("immutable"), "ETag: \"a\""], .validated),
            trial(
                "§5.2.2.6", "no-transform changes nothing in storing", [control("no-transform, max-age=60")], .stored),
            trial("§5.2.2.9", "public is no lifetime", [control("public"), "ETag: \"a\""], .validated),
        ],
    ]
}
