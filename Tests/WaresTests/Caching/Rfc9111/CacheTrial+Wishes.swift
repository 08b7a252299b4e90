import HttpWare

extension CacheTrial {
    /// RFC 9111 §5.2.1, §5.4.
    static let wishes: [CacheTrial] = flat([ages, stale, validation, onlyStored])

    private static let fresh = [control("max-age=60"), "ETag: \"a\""]

    private static func asking(
        _ section: String, _ what: String, wait: Int, _ directives: String, _ outcome: Outcome
    ) -> CacheTrial { trial(section, what, fresh, wait: wait, then: [control(directives)], outcome) }

    private static let ages: [[CacheTrial]] = [
        [
            asking("§5.2.1.1", "max-age that is not exceeded", wait: 10, "max-age=10", .stored),
            asking("§5.2.1.1", "max-age that is exceeded", wait: 11, "max-age=10", .validated),
            asking("§5.2.1.1", "max-age=0", wait: 1, "max-age=0", .validated),
            asking("§5.2.1.1", "a max-age that is none asks for the freshest", wait: 1, "max-age=x", .validated),
            asking("§5.2.1.1", "a max-age in quotes", wait: 11, "max-age=\"10\"", .validated),
            asking("§5.2.1.1", "max-age makes nothing fresh", wait: 60, "max-age=1000", .validated),
            asking("§5.2.1.1", "max-age and max-stale together", wait: 70, "max-age=100, max-stale=20", .stored),
            asking("§5.2.1.1", "max-age holds beside max-stale", wait: 70, "max-age=60, max-stale=20", .validated),
            asking("§5.2.1.3", "min-fresh that is left", wait: 50, "min-fresh=10", .stored),
            asking("§5.2.1.3", "min-fresh that is not left", wait: 51, "min-fresh=10", .validated),
            asking("§5.2.1.3", "min-fresh takes nothing stale", wait: 60, "min-fresh=0", .validated),
            asking("§5.2.1.3", "min-fresh beyond all numbers", wait: 0, "min-fresh=99999999999999999999", .validated),
            asking("§5.2.1.3", "a min-fresh that is none is ignored", wait: 50, "min-fresh=x", .stored),
            asking("§5.2.1", "case means nothing", wait: 11, "MAX-AGE=10", .validated),
            asking("§5.2.3", "an unknown directive is ignored", wait: 10, "foo=bar", .stored),
        ]
    ]

    private static let stale: [[CacheTrial]] = [
        [
            asking("§5.2.1.2", "max-stale without a number", wait: 100_000, "max-stale", .stored),
            asking("§5.2.1.2", "max-stale that is not exceeded", wait: 70, "max-stale=10", .stored),
            asking("§5.2.1.2", "max-stale that is exceeded", wait: 71, "max-stale=10", .validated),
            asking("§5.2.1.2", "max-stale=0", wait: 61, "max-stale=0", .validated),
            asking("§5.2.1.2", "a max-stale that is none", wait: 61, "max-stale=x", .validated),
            asking(
                "§5.2.1.2", "max-stale beyond all numbers", wait: 100_000, "max-stale=99999999999999999999", .stored),
            asking("§5.2.1.2", "max-stale changes nothing for what is fresh", wait: 10, "max-stale=0", .stored),
            trial(
                "§5.2.1.2", "max-stale does not excuse no-cache", [control("no-cache, max-age=60"), "ETag: \"a\""],
                then: [control("max-stale")], .validated),
            trial(
                "§5.2.1.2", "max-stale does not excuse must-revalidate",
                [control("must-revalidate, max-age=60"), "ETag: \"a\""], wait: 61, then: [control("max-stale")],
                .validated),
        ]
    ]

    private static let validation: [[CacheTrial]] = [
        [
            asking("§5.2.1.4", "no-cache", wait: 0, "no-cache", .validated),
            asking("§5.2.1.4", "no-cache with an argument", wait: 0, "no-cache=\"a\"", .validated),
            asking("§5.2.1.4", "no-cache inside a quoted string is none", wait: 0, "x=\"no-cache\"", .stored),
            asking("§5.2.1.5", "no-store does not forbid what is stored", wait: 0, "no-store", .stored),
            asking("§5.2.1.6", "no-transform", wait: 0, "no-transform", .stored),
            trial("§5.4", "Pragma: no-cache", fresh, then: ["Pragma: no-cache"], .validated),
            trial("§5.4", "Pragma with others", fresh, then: ["Pragma: foo, No-Cache"], .validated),
            trial("§5.4", "Pragma that is another", fresh, then: ["Pragma: foo"], .stored),
            trial(
                "§5.4", "Pragma means nothing beside Cache-Control", fresh,
                then: ["Pragma: no-cache", control("max-age=60")],
                .stored),
            trial("§5.4", "Pragma in a response means nothing", fresh + ["Pragma: no-cache"], .stored),
            trial(
                "§4.3.1", "without a validator it is asked for anew", [control("max-age=60")],
                then: [control("no-cache")],
                .asked),
        ]
    ]

    private static let onlyStored: [[CacheTrial]] = [
        [
            asking("§5.2.1.7", "only-if-cached of what is fresh", wait: 59, "only-if-cached", .stored),
            asking("§5.2.1.7", "only-if-cached of what is stale", wait: 60, "only-if-cached", .refused(504)),
            asking("§5.2.1.7", "only-if-cached and max-stale", wait: 70, "only-if-cached, max-stale=10", .stored),
            asking("§5.2.1.7", "only-if-cached and no-cache", wait: 0, "only-if-cached, no-cache", .refused(504)),
            trial(
                "§5.2.1.7", "only-if-cached of another", fresh, thenPath: "/other", then: [control("only-if-cached")],
                .refused(504)),
        ]
    ]
}
