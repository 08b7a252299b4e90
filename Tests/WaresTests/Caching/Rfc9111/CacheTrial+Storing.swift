import HttpWare

extension CacheTrial {
    /// RFC 9111 §3.
    static let storing: [CacheTrial] = flat([methods, statuses, refusals, authorized, parts])

    private static let fresh = control("max-age=60")
    private static let tag = "ETag: \"a\""

    private static let methods: [[CacheTrial]] = [
        [
            trial("§3", "a GET's response is stored", [fresh], .stored),
            trial("§3", "a HEAD's response is none for GET", method: .head, [fresh], .asked),
            trial("§3", "a PUT's response is not stored", method: .put, [fresh], .asked),
            trial("§3", "a DELETE's response is not stored", method: .delete, [fresh], .asked),
            trial("§3", "an OPTIONS' response is not stored", method: .options, [fresh], .asked),
            trial(
                "RFC 9110 §9.3.3", "a POST's response is not stored without Content-Location", method: .post, [fresh],
                .asked),
            trial(
                "RFC 9110 §9.3.3", "a POST's response with its own Content-Location answers GET", method: .post,
                [fresh, "Content-Location: /"], .stored),
            trial(
                "RFC 9110 §9.3.3", "a POST's response about another resource does not", method: .post,
                [fresh, "Content-Location: /other"], .asked),
            trial(
                "RFC 9110 §9.3.3", "a POST's response without explicit freshness does not", method: .post,
                ["Content-Location: /", dated("Last-Modified", -1000)], .asked),
            trial("§4", "a POST is never answered from the store", [fresh], thenMethod: .post, .asked),
            trial("§4", "nor is a PUT", [fresh], thenMethod: .put, .asked),
            trial("§4", "nor is an OPTIONS", [fresh], thenMethod: .options, .asked),
            trial("§4", "a HEAD is answered from what is stored for GET", [fresh], thenMethod: .head, .stored),
        ]
    ]

    private static let statuses: [[CacheTrial]] = [
        [200, 201, 202, 203, 204, 299, 300, 301, 302, 303, 307, 308, 400, 403, 404, 405, 410, 414, 418, 451, 499]
            .map { trial("§3", "a final status \($0) with a lifetime is stored", status: $0, [fresh], .stored) },
        [203, 300, 301, 308, 404, 405, 410, 414, 501].map {
            trial(
                "§4.2.2", "\($0) is heuristically cacheable", status: $0, [dated("Last-Modified", -1000)], wait: 99,
                .stored)
        },
        [201, 202, 302, 303, 307, 400, 403, 418].map {
            trial("§4.2.2", "\($0) is not", status: $0, [dated("Last-Modified", -1000)], .asked)
        },
        [
            trial(
                "§4.2.2", "public makes a status cacheable that is not by default", status: 302,
                [control("public"), dated("Last-Modified", -1000)], wait: 99, .stored),
            trial(
                "§5.2.2.3", "must-understand without no-store: a status that is not understood is not stored",
                status: 299, [control("must-understand, max-age=60")], .asked),
            trial(
                "§5.2.2.3", "must-understand overrides no-store for a status that is understood",
                [control("must-understand, no-store, max-age=60")], .stored),
            trial(
                "§5.2.2.3", "must-understand and no-store: a status that is not understood is not stored", status: 299,
                [control("must-understand, no-store, max-age=60")], .asked),
        ],
    ]

    private static let refusals: [[CacheTrial]] = [
        [
            "no-store", "NO-STORE", "no-store, max-age=60", "max-age=60, no-store", "max-age=60,no-store",
            "no-store=\"x\", max-age=60",
        ].map { trial("§5.2.2.5", "\($0) is not stored", [control($0), tag], .asked) },
        ["private", "Private, max-age=60", "private=\"\", max-age=60", "max-age=60, private"].map {
            trial("§5.2.2.7", "\($0) is not stored in a shared cache", [control($0), tag], .asked)
        },
        [
            trial(
                "§5.2.2.7", "private is stored in a private cache", [control("private, max-age=60")], isPrivate: true,
                .stored),
            trial(
                "§5.2.2.7", "of private fields the others are stored",
                [control("private=\"X-A\", max-age=60"), "X-A: 1"],
                .stored, has: ["X-A:"]),
            trial(
                "§5.2.2.4", "of no-cache fields the others are used without asking",
                [control("no-cache=\"X-A, X-B\", max-age=60"), "X-A: 1", "X-B: 2", "X-C: 3"], .stored,
                has: ["X-A:", "X-B:", "X-C: 3"]),
            trial("§5.2.1.5", "a request's no-store", asks: [control("no-store")], [fresh], .asked),
            trial("§5.2.3", "an unknown directive changes nothing", [control("max-age=60, foo=\"no-store\"")], .stored),
            trial("§3", "a response without any word is not stored", [], .asked),
            trial(
                "§3.1", "Proxy-Authenticate is not stored", [fresh, "Proxy-Authenticate: Basic"], .stored,
                has: ["Proxy-Authenticate:"]),
            trial(
                "§3.1", "Proxy-Authentication-Info is not stored", [fresh, "Proxy-Authentication-Info: a=b"], .stored,
                has: ["Proxy-Authentication-Info:"]),
            trial("§3.1", "unknown fields are stored", [fresh, "X-Unknown: a, b"], .stored, has: ["X-Unknown: a, b"]),
            trial(
                "§3.1", "so is Content-Language", [fresh, "Content-Language: de"], .stored,
                has: ["Content-Language: de"]),
        ],
    ]

    private static let authorized: [[CacheTrial]] = [
        ["max-age=60", "private, max-age=60", "proxy-revalidate, max-age=60", "immutable, max-age=60"].map {
            trial(
                "§3.5", "\($0) does not allow to keep an authorized response", asks: ["Authorization: a"],
                [control($0)],
                then: ["Authorization: a"], .asked)
        },
        ["public, max-age=60", "s-maxage=60", "must-revalidate, max-age=60"].map {
            trial(
                "§3.5", "\($0) does", asks: ["Authorization: a"], [control($0)], then: ["Authorization: b"], .stored)
        },
        [
            trial(
                "§3.5", "a stored response answers an authorized request", [fresh], then: ["Authorization: a"], .stored),
            trial(
                "§3.5", "a private cache keeps it for the one who asked", asks: ["Authorization: a"], [fresh],
                then: ["Authorization: a"], isPrivate: true, .stored),
            trial(
                "§3.5", "and for no other", asks: ["Authorization: a"], [fresh], then: ["Authorization: b"],
                isPrivate: true, .asked),
        ],
    ]

    private static let part = [fresh, tag, "Content-Range: bytes 0-4/10"]

    private static let parts: [[CacheTrial]] = [
        [
            trial(
                "§3.3", "a part answers a request for it", asks: ["Range: bytes=0-4"], status: 206, part,
                then: ["Range: bytes=0-4"], .stored),
            trial("§3.3", "a part never answers for the whole", asks: ["Range: bytes=0-4"], status: 206, part, .asked),
            trial(
                "§3.3", "a part answers no request for more than it has", asks: ["Range: bytes=0-4"], status: 206, part,
                then: ["Range: bytes=0-5"], .asked),
            trial(
                "§3.3", "a part without Content-Range is not stored", asks: ["Range: bytes=0-4"], status: 206,
                [fresh, tag],
                then: ["Range: bytes=0-4"], .asked),
            trial(
                "§3.3", "a part that lies about its length is not stored", asks: ["Range: bytes=0-4"], status: 206,
                [fresh, tag, "Content-Range: bytes 0-5/10"], then: ["Range: bytes=0-4"], .asked),
            trial(
                "§3.3", "a part of another unit is not stored", asks: ["Range: lines=0-4"], status: 206,
                [fresh, tag, "Content-Range: lines 0-4/10"], then: ["Range: lines=0-4"], .asked),
        ]
    ]
}
