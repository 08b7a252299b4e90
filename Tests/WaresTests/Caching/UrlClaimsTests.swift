import HttpCaching
import HttpWareTesting
import Testing

@testable import HttpWare
@testable import Wares

/// Clients that claim another URL than the one they ask for, in fields that origin servers may believe.
@Suite(.timeLimit(.minutes(5))) struct UrlClaimsTests {
    private func get(_ lines: [String] = []) throws -> HttpRequest {
        .get("http://app.test/page", fields: try CacheStage.fields(lines))
    }

    private func exchange(_ before: [any Ware] = [], trusted: Bool = false) throws -> TestExchange {
        var setting = TestExchange.Setting()
        if trusted { setting.trustedProxies = [try IPNetwork(optionText: "0.0.0.0/0")] }
        return try TestExchange(before + [HttpCache(store: MemoryStore(limit: .mebibytes(8)))], setting: setting)
    }

    private func respond(_ exchange: TestExchange, _ text: String) throws {
        exchange.upstream.respond(
            with: HttpResponse(.ok, fields: try CacheStage.fields(["Cache-Control: max-age=60"]), content: .text(text)))
    }

    private func text(_ exchange: TestExchange, _ request: HttpRequest) async throws -> String? {
        try await exchange.send(request).content.text
    }

    @Test(arguments: [
        "X-Forwarded-Host: evil.test", "x-forwarded-host: evil.test", "X_Forwarded_Host: evil.test",
        "X-Forwarded-Proto: gopher",
        "X-Forwarded-Port: 1", "X-Forwarded-Prefix: /evil", "X-Original-URL: /evil", "X-Rewrite-URL: /evil",
        "X-Host: evil.test",
        "X-Forwarded-Scheme: http", "Forwarded: host=evil.test", "Forwarded: for=1.2.3.4;host=evil.test",
        "Forwarded: for=1.2.3.4, for=\"a;host=evil.test\"",
    ])
    func `a page that was made from a claim is stored for requests with the same claim only`(line: String) async throws
    {
        let exchange = try exchange()
        try respond(exchange, "of evil.test")
        try respond(exchange, "of app.test")
        #expect(try await text(exchange, get([line])) == "of evil.test")
        #expect(try await text(exchange, get()) == "of app.test")
        #expect(try await text(exchange, get()) == "of app.test")
        #expect(try await text(exchange, get([line])) == "of evil.test")
        #expect(exchange.upstream.requests.count == 2)
    }

    @Test(arguments: [
        "X-Forwarded-Host: app.test", "X-Forwarded-Host: APP.test", "Forwarded: for=192.0.2.1",
        "Forwarded: for=192.0.2.1;by=_x",
        "X-Forwarded-For: 192.0.2.1", "X-Real-IP: 192.0.2.1", "X_User: a",
    ])
    func `the own host and addresses are not claims`(line: String) async throws {
        let exchange = try exchange()
        try respond(exchange, "of app.test")
        for lines in [[line], [], [line]] { #expect(try await text(exchange, get(lines)) == "of app.test") }
        #expect(exchange.upstream.requests.count == 1)
    }

    private static let names: [FieldName] =
        UrlClaims.places + [
            "X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-Method", "X-Forwarded-Method",
        ]

    @Test(arguments: names)
    func `each field that frameworks believe is a part of the key, in any spelling`(name: FieldName) async throws {
        let exchange = try exchange()
        try respond(exchange, "made from the claim")
        try respond(exchange, "of app.test")
        try respond(exchange, "made from another claim")
        #expect(try await text(exchange, get(["\(name): 1"])) == "made from the claim")
        #expect(try await text(exchange, get()) == "of app.test")
        for line in ["\(name.text.lowercased()): 1", "\(name.text.replacing("-", with: "_")): 1"] {
            #expect(try await text(exchange, get(["DNT: 1", line])) == "made from the claim")
        }
        #expect(try await text(exchange, get(["\(name): 2"])) == "made from another claim")
        #expect(try await text(exchange, get(["DNT: 1", "Sec-Fetch-Site: none"])) == "of app.test")
    }

    @Test(arguments: UrlClaims.places)
    func `behind forwarded, a place that a client names is removed, and all get one page`(name: FieldName) async throws
    {
        let exchange = try exchange([Forwarded()])
        try respond(exchange, "of app.test")
        for lines in [["\(name): 1"], [], ["\(name.text.replacing("-", with: "_")): 1"]] {
            #expect(try await text(exchange, get(lines)) == "of app.test")
        }
        #expect(exchange.upstream.requests.count == 1)
    }

    @Test func `behind forwarded, the method that a client names reaches the origin server`() async throws {
        let exchange = try exchange([Forwarded()])
        try respond(exchange, "of app.test")
        _ = try await text(exchange, get(["X-HTTP-Method-Override: PATCH"]))
        #expect(exchange.upstream.requests.first?.fields["X-HTTP-Method-Override"] == "PATCH")
    }

    @Test func `the names in a usual browser's request leave the key as it is, whatever their number`() throws {
        // These are counted by their traces, which few other names share.
        let names = [
            "sec-ch-ua", "sec-ch-ua-mobile", "sec-ch-ua-platform", "Upgrade-Insecure-Requests", "Sec-Fetch-Site",
            "Sec-Fetch-User", "Sec-Fetch-Dest", "Priority", "DNT",
        ]
        var fields = HttpFields()
        for name in names { try fields.append(#require(FieldName(name)), "1") }
        let set = FieldNameSet([.forwarded] + UrlClaims.places)
        #expect(fields.candidates(of: set).count < set.names.count / 4)
        try fields.append("X-Url-Scheme", "x")
        #expect(fields.candidates(of: set).contains("X-Url-Scheme"))
    }

    @Test func `behind forwarded, a client's claims are removed, and all get one page`() async throws {
        let exchange = try exchange([Forwarded(style: .both)])
        try respond(exchange, "of app.test")
        for lines in [["X-Forwarded-Host: evil.test", "X-Original-URL: /evil"], [], ["Forwarded: host=evil.test"]] {
            #expect(try await text(exchange, get(lines)) == "of app.test")
        }
        #expect(exchange.upstream.requests.count == 1)
    }

    @Test func `an unsafe request with a claim invalidates the page for all`() async throws {
        let exchange = try exchange()
        try respond(exchange, "first")
        #expect(try await text(exchange, get()) == "first")
        exchange.upstream.respond(with: HttpResponse(.noContent))
        _ = try await exchange.send(
            try HttpRequest(
                .put, "http://app.test/page", fields: try CacheStage.fields(["X-Forwarded-Host: evil.test"])))
        try respond(exchange, "second")
        #expect(try await text(exchange, get()) == "second")
    }

    @Test func `requests with different claims do not wait for each other`() async throws {
        let exchange = try TestExchange([Coalesce()])
        for text in ["of evil.test", "of app.test"] {
            exchange.upstream.respond(with: HttpResponse(.ok, content: .text(text)), after: .seconds(1))
        }
        let evil = await exchange.start(try get(["X-Forwarded-Host: evil.test"]))
        let good = await exchange.start(try get())
        while exchange.upstream.requests.count < 2 { await Task.yield() }
        await exchange.advance(by: .seconds(1))
        #expect(try await evil.response().content.text == "of evil.test")
        #expect(try await good.response().content.text == "of app.test")
    }

    @Test func `words of a trusted proxy are not a claim of the client`() async throws {
        let exchange = try exchange(trusted: true)
        try respond(exchange, "of app.test")
        for lines in [["X-Forwarded-Host: www.test"], []] {
            #expect(try await text(exchange, get(lines)) == "of app.test")
        }
    }
}
