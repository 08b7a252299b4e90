import HttpWare

extension CacheTrial {
    /// RFC 9213, RFC 5861, and what RFC 9111 §7 says about cookies.
    static let extending: [CacheTrial] = flat([targeted, windows, cookies])

    private static func cdn(
        _ what: String, _ targeted: String, _ general: String, wait: Int, _ outcome: Outcome
    ) -> CacheTrial {
        trial(
            "RFC 9213 §2.1", "\(what) (\(targeted))",
            ["CDN-Cache-Control: \(targeted)", control(general), "ETag: \"a\""],
            wait: wait, outcome)
    }

    private static let targeted: [[CacheTrial]] = [
        [
            cdn("it replaces Cache-Control", "max-age=60", "max-age=5", wait: 59, .stored),
            cdn("where it is shorter, too", "max-age=5", "max-age=60", wait: 5, .validated),
            cdn("no-store in it", "no-store", "max-age=60", wait: 0, .asked),
            cdn("no-store beside it is not for us", "max-age=60", "no-store", wait: 0, .stored),
            cdn("private beside it is not for us", "max-age=60", "private", wait: 0, .stored),
            cdn("no-cache in it", "no-cache", "max-age=60", wait: 0, .validated),
            cdn("without a lifetime none is borrowed", "no-transform", "max-age=60", wait: 0, .validated),
            cdn("parameters mean nothing", "max-age=60;a=b", "max-age=5", wait: 59, .stored),
            cdn("the last of two members counts", "max-age=5, max-age=60", "max-age=5", wait: 59, .stored),
            cdn("a string is no number", "max-age=\"60\"", "max-age=60", wait: 0, .validated),
            cdn("a token is no number", "max-age=a", "max-age=60", wait: 0, .validated),
            cdn("a decimal is no whole number", "max-age=6.5", "max-age=60", wait: 0, .validated),
            cdn("empty: as if it were not there", "", "max-age=60", wait: 59, .stored),
            cdn("invalid: as if it were not there", "max-age=60,", "max-age=5", wait: 5, .validated),
            cdn("in capitals: invalid", "MAX-AGE=60", "max-age=5", wait: 5, .validated),
            cdn("must-revalidate beside it is not for us", "max-age=60", "must-revalidate", wait: 59, .stored),
            trial(
                "RFC 9213 §2.1", "Expires beside it is not for us",
                ["CDN-Cache-Control: no-transform", dated("Expires", 60), "ETag: \"a\""], .validated),
            trial(
                "RFC 9213 §2.2", "a field for another cache means nothing",
                ["Other-Cache-Control: no-store", control("max-age=60")], .stored),
            trial(
                "RFC 9213 §2.1", "it is sent on", ["CDN-Cache-Control: max-age=60", control("max-age=5")], .stored,
                has: ["CDN-Cache-Control: max-age=60", control("max-age=5")]),
        ]
    ]

    private static let windows: [[CacheTrial]] = [
        [
            trial(
                "RFC 5861 §3", "no window behind must-revalidate",
                [control("max-age=60, stale-while-revalidate=30, must-revalidate"), "ETag: \"a\""], wait: 61, .validated
            ),
            trial(
                "RFC 5861 §3", "no window behind no-cache",
                [control("max-age=60, stale-while-revalidate=30, no-cache"), "ETag: \"a\""], wait: 61, .validated),
            trial(
                "RFC 5861 §3", "behind the window it is validated",
                [control("max-age=60, stale-while-revalidate=30"), "ETag: \"a\""], wait: 91, .validated),
            trial(
                "RFC 5861 §3", "a window that is none",
                [control("max-age=60, stale-while-revalidate=x"), "ETag: \"a\""],
                wait: 61, .validated),
            trial(
                "RFC 5861 §4", "without an error nothing stale is used",
                [control("max-age=60, stale-if-error=30"), "ETag: \"a\""], wait: 61, .validated),
        ]
    ]

    private static let cookies: [[CacheTrial]] = [
        [
            trial(
                "§7.3", "Set-Cookie does not forbid to store", [control("max-age=60"), "Set-Cookie: a=b"], .stored,
                has: ["Set-Cookie:"]),
            trial(
                "§4.2.2", "no lifetime is guessed for what sets a cookie",
                ["Set-Cookie: a=b", dated("Last-Modified", -1000), dated("Date", 0)], .asked),
            trial(
                "§7.3", "a request's Cookie does not either", asks: ["Cookie: a=b"], [control("max-age=60")],
                then: ["Cookie: a=c"], .stored),
            trial(
                "§7.3", "no-cache=\"Set-Cookie\" keeps it from others",
                [control("max-age=60, no-cache=\"Set-Cookie\""), "Set-Cookie: a=b"], .stored, has: ["Set-Cookie:"]),
        ]
    ]
}
