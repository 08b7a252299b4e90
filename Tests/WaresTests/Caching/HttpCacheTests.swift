import HttpCaching
import HttpWareTesting
import Testing
import Wares

@testable import HttpWare

@Suite struct HttpCacheTests {
    private static let fresh = "Cache-Control: max-age=60"

    // MARK: Fresh responses

    @Test func `a fresh response is answered without asking, with its age, RFC 9111 §4 and §5.1`() async throws {
        let stage = try CacheStage()
        try stage.respond([HttpCacheTests.fresh], "one")
        let first = try await stage.send()
        #expect(first.text == "one" && first[.age] == nil)
        #expect(first.cacheStatus == "httpware; fwd=uri-miss; stored")
        await stage.advance(7)
        let second = try await stage.send()
        #expect(second.text == "one" && second[.age] == "7")
        #expect(second.cacheStatus == "httpware; hit; ttl=53")
        #expect(second[.date] == first[.date])
        #expect(stage.asked == 1)
        #expect(stage.exchange.outcomes.map(\.responder) == [.upstream, .cache])
    }

    @Test func `an age that the response came with goes on, RFC 9111 §4.2.3`() async throws {
        let stage = try CacheStage()
        try stage.respond([HttpCacheTests.fresh, "Age: 50"])
        _ = try await stage.send()
        await stage.advance(5)
        #expect(try await stage.send()[.age] == "55")
        await stage.advance(5)
        _ = try await stage.send()
        #expect(stage.asked == 2)
    }

    @Test(arguments: [
        ([], ["Cache-Control: no-store"]), ([], ["Cache-Control: private"]), ([], ["Vary: *", fresh]),
        (["Cache-Control: no-store"], [fresh]), (["Authorization: x"], [fresh]), ([], ["Cache-Control: max-age=0"]),
    ])
    func `a response that must not be stored is asked for each time, RFC 9111 §3`(request: [String], response: [String])
        async throws
    {
        let stage = try CacheStage()
        try stage.respond(response, always: true)
        for _ in 0..<2 { #expect(try await !stage.send(.get, "/", request).cacheStatus.contains("stored")) }
        #expect(stage.asked == 2)
        #expect(stage.store.census.responses == 0)
    }

    @Test(arguments: ["public, max-age=60", "s-maxage=60", "must-revalidate, max-age=60"])
    func `authorized requests share what says so, RFC 9111 §3.5`(directives: String) async throws {
        let stage = try CacheStage()
        try stage.respond(["Cache-Control: \(directives)"])
        _ = try await stage.send(.get, "/", ["Authorization: x"])
        #expect(try await stage.send(.get, "/", ["Authorization: y"]).isHit)
    }

    @Test(arguments: ["NTLM TlRM", "negotiate YII=", "Kerberos x"])
    func `nothing is stored of a client that authenticates its connection, RFC 9110 §3.3`(credentials: String)
        async throws
    {
        let stage = try CacheStage()
        try stage.respond(["Cache-Control: public, max-age=60"], always: true)
        for _ in 0..<2 { _ = try await stage.send(.get, "/", ["Authorization: \(credentials)"]) }
        #expect(stage.asked == 2 && stage.store.census.responses == 0)
        #expect(try await !stage.send().isHit)
        // Responses that other clients stored do not answer it either: the origin server decides what this user sees.
        #expect(try await !stage.send(.get, "/", ["Authorization: \(credentials)"]).isHit)
    }

    @Test func `a response that asks a client to authenticate its connection is not stored`() async throws {
        let stage = try CacheStage()
        try stage.respond(
            401, ["Cache-Control: public, max-age=60", "WWW-Authenticate: Basic realm=a, NTLM"], always: true)
        for _ in 0..<2 { #expect(try await !stage.send().isHit) }
        #expect(stage.store.census.responses == 0)
    }

    /// Two clients with certificates of these subjects, who share what is stored.
    private func certified(_ wares: [any Ware], _ subjects: [String]) throws -> [TestExchange] {
        try subjects.map { subject in
            var setting = TestExchange.Setting()
            setting.certificate = TlsClientIdentity(subject: subject)
            let exchange = try TestExchange(wares, setting: setting)
            exchange.upstream.always(
                respondWith: HttpResponse(.ok, fields: ["Cache-Control": "max-age=60"], content: .text(subject)))
            return exchange
        }
    }

    @Test(arguments: [CacheMode.shared, .private])
    func `RFC 9111 §3.5, what one certificate's holder got is not for another's`(mode: CacheMode) async throws {
        var cache = HttpCache(store: MemoryStore(limit: .mebibytes(1)))
        cache.policy.mode = mode
        let clients = try certified([cache], ["CN=anna", "CN=bert", "CN=anna"])
        var texts: [String?] = []
        for client in clients { texts.append(try await client.send(.get("/")).content.text) }
        #expect(texts == ["CN=anna", "CN=bert", "CN=anna"])
        // Clients with the same certificate have the same private cache; a shared one stores nothing.
        #expect(clients.map(\.upstream.requests.count) == [1, 1, mode == .private ? 0 : 1])
    }

    @Test(arguments: [CacheMode.shared, .private])
    func `RFC 9111 §3.5, notModified validates no response of another certificate`(mode: CacheMode) async throws {
        let clients = try certified([NotModified(mode: mode)], ["CN=anna", "CN=bert"])
        for (client, text) in zip(clients, ["anna's", "bert's"]) {
            client.upstream.always(
                respondWith: HttpResponse(.ok, fields: ["ETag": "\"a\""], content: .text(text)))
            #expect(try await client.send(.get("/")).content.text == text)
            #expect(client.upstream.requests.map { $0.fields[.ifNoneMatch] } == [nil])
        }
    }

    @Test(arguments: [CacheMode.shared, .private])
    func `RFC 9111 §3.5, an outage gives no client the response of another certificate`(mode: CacheMode) async throws {
        var cache = HttpCache(store: MemoryStore(limit: .mebibytes(1)))
        cache.policy.mode = mode
        let clients = try certified([Offline(), cache], ["CN=anna", "CN=bert"])
        #expect(try await clients[0].send(.get("/")).content.text == "CN=anna")
        clients[1].upstream.refuse()
        #expect(try await clients[1].send(.get("/")).status == .gatewayTimeout)
    }

    @Test(arguments: ["public, max-age=60", "s-maxage=60", "must-revalidate, max-age=60"])
    func `RFC 9111 §3.5, what may be stored though it was authorized may be so with a certificate`(control: String)
        async throws
    {
        let clients = try certified([HttpCache(store: MemoryStore(limit: .mebibytes(1)))], ["CN=anna", "CN=bert"])
        let response = HttpResponse(
            .ok, fields: try CacheStage.fields(["Cache-Control: \(control)"]), content: .text("both"))
        for client in clients { client.upstream.always(respondWith: response) }
        for client in clients { #expect(try await client.send(.get("/")).content.text == "both") }
        #expect(clients.map(\.upstream.requests.count) == [1, 0])
    }

    @Test(arguments: [
        (#""iss":"a""#, #""iss":"a","jti":"2""#), (#""sub":"ada""#, #""sub":"ada","jti":"2""#),
        (#""iss":"a","sub":"ada""#, #""iss":"b","sub":"ada""#), (#""iss":"a","sub":"ada""#, #""iss":"a","sub":"bert""#),
    ])
    func `a response to one person's token is not for another's, wherever the token is`(one: String, other: String)
        async throws
    {
        for isInQuery in [false, true] {
            let jwt = try SignedToken.ware(["from": isInQuery ? "query.token" : "header.X-Token"])
            let stage = try CacheStage(before: [jwt]) { $0.policy.mode = .private }
            var texts: [String] = []
            for claims in [one, other, one] {
                try stage.respond(["Cache-Control: max-age=60"], claims)
                let token = SignedToken.make(claims)
                let seen =
                    isInQuery
                    ? try await stage.send(.get, "/?token=\(token)")
                    : try await stage.send(.get, "/", ["X-Token: \(token)"])
                texts.append(seen.text)
            }
            #expect(texts == [one, other, one] && stage.asked == 2)
        }
    }

    @Test func `one person's tokens have one private cache, if they say who that is`() async throws {
        let stage = try CacheStage(before: [try SignedToken.ware(["from": "query.token"])]) {
            $0.policy.mode = .private
        }
        try stage.respond(["Cache-Control: max-age=60"], "ada's")
        for number in 1...2 {
            let token = SignedToken.make(#""iss":"a","sub":"ada","jti":"\#(number)""#)
            #expect(try await stage.send(.get, "/?token=\(token)").text == "ada's")
        }
        #expect(stage.asked == 1)
    }

    @Test func `an origin server that reads _ as - finds no condition that the cache does not know`() async throws {
        let stage = try CacheStage()
        _ = try await stage.send(.get, "/", ["If_None_Match: *", "If_Modified-Since: x", "If_Range: y"])
        #expect(!stage.last.contains("If_None_Match") && !stage.last.contains("If_Modified-Since"))
        #expect(!stage.last.contains("If_Range"))
    }

    @Test func `an identity that a ware took from the request still counts, RFC 9111 §3.5`() async throws {
        let stage = try CacheStage(before: [Removing(name: .authorization)])
        try stage.respond([HttpCacheTests.fresh], always: true)
        for _ in 0..<2 { _ = try await stage.send(.get, "/", ["Authorization: x"]) }
        #expect(stage.asked == 2)
    }

    @Test func `a client that a ware authenticated shares only responses that allow it, RFC 9111 §3.5`() async throws {
        let stage = try CacheStage(before: [Naming()])
        try stage.respond([HttpCacheTests.fresh], always: true)
        for _ in 0..<2 { _ = try await stage.send(.get, "/", ["X-User: a"]) }
        #expect(stage.asked == 2)
    }

    @Test func `a private cache keeps people apart, RFC 9111 §3`() async throws {
        let stage = try CacheStage { $0.policy.mode = .private }
        try stage.respond(["Cache-Control: private, max-age=60"], "a")
        try stage.respond(["Cache-Control: private, max-age=60"], "b")
        _ = try await stage.send(.get, "/", ["Authorization: a"])
        _ = try await stage.send(.get, "/", ["Authorization: b"])
        #expect(try await stage.send(.get, "/", ["Authorization: a"]).text == "a")
        #expect(try await stage.send(.get, "/", ["Authorization: b"]).text == "b")
        #expect(stage.asked == 2)
    }

    // MARK: Cookies

    /// The option `setCookie`, the mode, whether the client says who it is; then whether it is stored, and with its cookie.
    @Test(
        arguments: [
            (SetCookieRule.strip, CacheMode.shared, [], true, false), (.pass, .shared, [], false, false),
            (.store, .shared, [], true, true), (.strip, .private, [], true, false),
            (.strip, .private, ["Authorization: x"], true, true), (.strip, .private, ["Cookie: x=y"], true, true),
            (.pass, .private, ["Authorization: x"], false, false), (.store, .private, [], true, true),
        ] as [(SetCookieRule, CacheMode, [String], Bool, Bool)])
    func `setCookie says what becomes of a response that sets a cookie, RFC 9111 §7.3`(
        rule: SetCookieRule, mode: CacheMode, lines: [String], isStored: Bool, hasCookie: Bool
    ) async throws {
        let stage = try CacheStage {
            $0.policy.setCookie = rule
            $0.policy.mode = mode
        }
        try stage.respond([HttpCacheTests.fresh, "Set-Cookie: a=b", "X-A: 1"], always: true)
        #expect(try await stage.send(.get, "/", lines)["Set-Cookie"] == "a=b")
        let second = try await stage.send(.get, "/", lines)
        #expect(second.isHit == isStored && second["X-A"] == "1")
        #expect(second["Set-Cookie"] == (hasCookie || !isStored ? "a=b" : nil))
    }

    @Test func `a 304 that sets a cookie sets it for the client that asked alone, RFC 9111 §4.3.4`() async throws {
        let stage = try CacheStage()
        try stage.respond([HttpCacheTests.fresh, "ETag: \"a\""])
        _ = try await stage.send()
        await stage.advance(61)
        try stage.respond(304, [HttpCacheTests.fresh, "ETag: \"a\"", "Set-Cookie: a=b", "Set-Cookie: c=d"], "")
        let asking = try await stage.send()
        #expect(asking.status == 200 && asking.response.fields.values(of: .setCookie) == ["a=b", "c=d"])
        let other = try await stage.send()
        #expect(other.isHit && other["Set-Cookie"] == nil)
    }

    @Test(arguments: [[], ["Cache-Control: max-stale"], ["Cookie: a=c"]])
    func `no lifetime is guessed for a request with a cookie, RFC 9111 §4.2.2`(lines: [String]) async throws {
        let stage = try CacheStage {
            $0.policy.staleWhileRevalidate = 1000
            $0.policy.staleOnDisconnect = true
        }
        try stage.respond(["Last-Modified: Tue, 30 Dec 2025 00:00:00 GMT"], "mine")
        _ = try await stage.send(.get, "/", ["Cookie: a=b"])
        try stage.respond(["Last-Modified: Wed, 31 Dec 2025 00:00:00 GMT"], "theirs")
        #expect(try await stage.send(.get, "/", lines).text == "theirs")
        #expect(stage.last.contains(.ifModifiedSince))
    }

    @Test func `a cookie that a ware removed counts, and a 304 to a request with a cookie guesses nothing`()
        async throws
    {
        let stage = try CacheStage(before: [Removing(name: .cookie)])
        let modified = "Last-Modified: Tue, 30 Dec 2025 00:00:00 GMT"
        try stage.respond([modified])
        _ = try await stage.send(.get, "/", ["Cookie: a=b"])
        for lines in [["Cookie: a=b"], []] {
            try stage.respond(304, [modified], "")
            _ = try await stage.send(.get, "/", lines)
        }
        #expect(stage.asked == 3)
        #expect(try await stage.send().isHit)
    }

    @Test func `a guessed lifetime is not for a request with a cookie, an explicit one is, RFC 9111 §4.2.2`()
        async throws
    {
        let stage = try CacheStage()
        try stage.respond(["Last-Modified: Wed, 31 Dec 2025 00:00:00 GMT"])
        _ = try await stage.send()
        #expect(try await stage.send().isHit)
        try stage.respond([HttpCacheTests.fresh], "mine")
        #expect(try await stage.send(.get, "/", ["Cookie: a=b"]).text == "mine")
        #expect(try await stage.send(.get, "/", ["Cookie: a=b"]).isHit)
        let own = try CacheStage { $0.policy.mode = .private }
        try own.respond(["Last-Modified: Wed, 31 Dec 2025 00:00:00 GMT"])
        for _ in 0..<2 { _ = try await own.send(.get, "/", ["Cookie: a=b"]) }
        #expect(own.asked == 1)
    }

    // MARK: What is compared

    @Test(arguments: CacheStage.Kind.allCases)
    func `values that are not UTF-8 are told apart by Vary, RFC 9111 §4.1`(kind: CacheStage.Kind) async throws {
        let stage = try await CacheStage(kind: kind)
        for (byte, text) in [(0xfc, "u"), (0xe4, "a")] as [(UInt8, String)] {
            try stage.respond([HttpCacheTests.fresh, "Vary: X-Name"], text)
            var fields = HttpFields()
            try fields.append("X-Name", raw: [0x4d, byte])
            #expect(try await stage.exchange.send(.get("/", fields: fields)).content.text == text)
            stage.settle()
        }
        #expect(stage.asked == 2)
    }

    @Test func `a tag that is not UTF-8 is asked about by its bytes, RFC 9110 §8.8.3`() async throws {
        let stage = try CacheStage()
        var (own, other, update) = (HttpFields(), HttpFields(), HttpFields())
        try own.append(.etag, raw: [0x22, 0xfc, 0x22])
        try own.append(.cacheControl, "max-age=60")
        try other.append(.ifNoneMatch, raw: [0x22, 0xe4, 0x22])
        try update.append("X-New", raw: [0xe4])
        stage.exchange.upstream.respond(with: HttpResponse(.ok, fields: own, content: .text("x")))
        _ = try await stage.send()
        #expect(try await stage.exchange.send(.get("/", fields: other)).status == .ok)
        await stage.advance(61)
        stage.exchange.upstream.respond(with: HttpResponse(.notModified, fields: update))
        let validated = try await stage.exchange.send(.get("/"))
        #expect(stage.last.rawValues(of: .ifNoneMatch) == [[0x22, 0xfc, 0x22]])
        #expect(validated.content.text == "x" && validated.fields.rawValues(of: "X-New") == [[0xe4]])
    }

    // MARK: What goes upstream

    @Test func `a miss goes upstream as the key has it, RFC 3986 §6.2.2`() async throws {
        let stage = try CacheStage { $0.keyRule.ignoredQuery = ["u"] }
        try stage.respond(404, [HttpCacheTests.fresh], always: true)
        _ = try await stage.send(.get, "http://A.Example.:80/p%61ge%2f?u=1&a=%61&u=%32")
        let asked = try #require(stage.exchange.upstream.requests.last)
        #expect(asked.receivedTarget == "/page%2F?u=1&a=%61&u=%32")
        #expect(try await stage.send(.get, "http://a.example/page%2F?a=%61").isHit)
    }

    @Test func `a path that is part of the key as received goes upstream as received`() async throws {
        let stage = try CacheStage { $0.keyRule.path = .received }
        try stage.respond([HttpCacheTests.fresh], always: true)
        for path in ["/p%61ge", "/page", "/p%61ge"] {
            _ = try await stage.send(.get, path)
            #expect(stage.exchange.upstream.requests.last?.receivedTarget == (stage.asked == 1 ? "/p%61ge" : "/page"))
        }
        #expect(stage.asked == 2)
    }

    @Test(arguments: [HttpMethod.post, .options])
    func `requests that are not answered from the store go upstream as received`(method: HttpMethod) async throws {
        let stage = try CacheStage()
        _ = try await stage.send(method, "/p%61ge")
        #expect(stage.exchange.upstream.requests.last?.receivedTarget == "/p%61ge")
    }

    @Test func `a validation, also one in the background, goes upstream as the key has it`() async throws {
        let stage = try CacheStage { $0.policy.staleWhileRevalidate = 10 }
        try stage.respond([HttpCacheTests.fresh, "ETag: \"a\""])
        _ = try await stage.send(.get, "/page")
        for wait in [65, 100] {
            await stage.advance(wait)
            try stage.respond(304, ["ETag: \"a\"", HttpCacheTests.fresh], "")
            let asked = stage.asked
            _ = try await stage.send(.get, "/p%61ge")
            while stage.asked == asked { await Task.yield() }
            #expect(stage.exchange.upstream.requests.last?.receivedTarget == "/page")
        }
        #expect(stage.asked == 3)
    }

    @Test func `fields that no-cache names are not given again without asking, RFC 9111 §5.2.2.4`() async throws {
        let stage = try CacheStage()
        try stage.respond(["Cache-Control: max-age=60, no-cache=\"X-A\"", "X-A: 1", "X-B: 2"])
        #expect(try await stage.send()["X-A"] == "1")
        let second = try await stage.send()
        #expect(second.isHit && second["X-A"] == nil && second["X-B"] == "2")
    }

    @Test func `CDN-Cache-Control replaces Cache-Control here, RFC 9213 §2.1`() async throws {
        let stage = try CacheStage()
        try stage.respond(["Cache-Control: no-store", "CDN-Cache-Control: max-age=60"])
        _ = try await stage.send()
        #expect(try await stage.send().isHit)
    }

    @Test func `a response without a lifetime is fresh for a tenth of its time, RFC 9111 §4.2.2`() async throws {
        let stage = try CacheStage()
        try stage.respond(["Last-Modified: Wed, 31 Dec 2025 23:50:00 GMT"], always: true)
        _ = try await stage.send()
        await stage.advance(59)
        #expect(try await stage.send().isHit)
        await stage.advance(1)
        #expect(try await !stage.send().isHit)
    }

    @Test func `a response that is larger than maxObject is passed on and not stored`() async throws {
        let stage = try CacheStage { $0.maxObject = .bytes(10) }
        try stage.respond([HttpCacheTests.fresh], "12345678901", always: true)
        for _ in 0..<2 { #expect(try await stage.send().text == "12345678901") }
        #expect(stage.asked == 2)
    }

    @Test func `other methods pass, and say so in Cache-Status only where they change something`() async throws {
        let stage = try CacheStage()
        try stage.respond([HttpCacheTests.fresh], always: true)
        #expect(try await stage.send(.options, "/").cacheStatus == "")
        #expect(try await stage.send(.post, "/").cacheStatus == "")
        #expect(stage.store.census.responses == 0)
    }

    @Test func `conditions that only the origin server can decide are its, RFC 9111 §4.3.2`() async throws {
        let stage = try CacheStage()
        try stage.respond([HttpCacheTests.fresh, "ETag: \"a\""], always: true)
        _ = try await stage.send()
        _ = try await stage.send(.get, "/", ["If-Match: \"b\""])
        #expect(stage.asked == 2 && stage.last[.ifMatch] == "\"b\"")
    }

    // MARK: Requests' directives

    @Test func `only-if-cached is answered from the store, or 504, RFC 9111 §5.2.1.7`() async throws {
        let stage = try CacheStage()
        #expect(try await stage.send(.get, "/", ["Cache-Control: only-if-cached"]).status == 504)
        try stage.respond([HttpCacheTests.fresh])
        _ = try await stage.send()
        #expect(try await stage.send(.get, "/", ["Cache-Control: only-if-cached"]).status == 200)
        #expect(stage.asked == 1)
    }

    @Test(arguments: ["Cache-Control: no-cache", "Pragma: no-cache", "Cache-Control: max-age=0"])
    func `a request may ask for validation, RFC 9111 §5.2.1`(line: String) async throws {
        let stage = try CacheStage()
        try stage.respond([HttpCacheTests.fresh, "ETag: \"a\""])
        _ = try await stage.send()
        await stage.advance(1)
        try stage.respond(304, ["ETag: \"a\"", HttpCacheTests.fresh], "")
        let second = try await stage.send(.get, "/", [line])
        #expect(second.status == 200 && second.text == "x")
        #expect(stage.last[.ifNoneMatch] == "\"a\"")
        #expect(second.cacheStatus == "httpware; fwd=request; fwd-status=304; ttl=60")
    }

    @Test func `max-stale takes what is stale, RFC 9111 §5.2.1.2`() async throws {
        let stage = try CacheStage()
        try stage.respond([HttpCacheTests.fresh])
        _ = try await stage.send()
        await stage.advance(70)
        let second = try await stage.send(.get, "/", ["Cache-Control: max-stale=10"])
        #expect(second.cacheStatus == "httpware; hit; ttl=-10")
    }

    // MARK: Vary

    @Test func `variants are kept side by side, RFC 9111 §4.1`() async throws {
        let stage = try CacheStage()
        for text in ["de", "en"] {
            try stage.respond([HttpCacheTests.fresh, "Vary: Accept-Language"], text)
            #expect(try await stage.send(.get, "/", ["Accept-Language: \(text)"]).text == text)
        }
        #expect(try await stage.send(.get, "/", ["Accept-Language: DE"]).text == "de")
        #expect(try await stage.send(.get, "/", ["Accept-Language: en"]).text == "en")
        #expect(stage.asked == 2)
        try stage.respond([HttpCacheTests.fresh, "Vary: Accept-Language"], "fr")
        #expect(
            try await stage.send(.get, "/", ["Accept-Language: fr"]).cacheStatus == "httpware; fwd=vary-miss; stored")
    }

    @Test func `responses vary by the request as it came to the cache, not as it went on`() async throws {
        let stage = try CacheStage(behind: [Removing(name: "X-A")])
        try stage.respond([HttpCacheTests.fresh, "Vary: X-A"], always: true)
        for value in ["1", "2", "1"] { _ = try await stage.send(.get, "/", ["X-A: \(value)"]) }
        #expect(stage.asked == 2)
    }

    @Test func `a Vary of ten thousand fields is not stored`() async throws {
        let stage = try CacheStage()
        let names = (0..<1000).map { "f\($0)" }.joined(separator: ",")
        try stage.respond([HttpCacheTests.fresh, "Vary: \(names)"], always: true)
        for _ in 0..<2 { _ = try await stage.send() }
        #expect(stage.asked == 2)
    }

    @Test func `configured fields tell responses apart, and an unsafe request takes all of them away`() async throws {
        let stage = try CacheStage { $0.keyFields = ["X-Tenant"] }
        try stage.respond([HttpCacheTests.fresh], always: true)
        for tenant in ["a", "b", "a"] { _ = try await stage.send(.get, "/", ["X-Tenant: \(tenant)"]) }
        #expect(stage.asked == 2)
        _ = try await stage.send(.delete, "/")
        #expect(stage.store.census.responses == 0)
    }

    // MARK: Invalidation

    @Test(arguments: ["PUT", "POST", "DELETE", "PATCH", "PROPPATCH", "LOCK", "MADEUP"])
    func `unsafe and unknown methods take away what is stored for their target, RFC 9111 §4.4`(method: String)
        async throws
    {
        let stage = try CacheStage()
        try stage.respond([HttpCacheTests.fresh], always: true)
        _ = try await stage.send()
        _ = try await stage.send(try #require(HttpMethod(method)))
        #expect(try await !stage.send().isHit)
    }

    @Test(arguments: ["QUERY", "PROPFIND", "REPORT", "SEARCH", "OPTIONS", "TRACE"])
    func `safe methods take nothing away, RFC 9111 §4.4 and RFC 10008`(method: String) async throws {
        let stage = try CacheStage()
        try stage.respond([HttpCacheTests.fresh], always: true)
        _ = try await stage.send()
        _ = try await stage.send(try #require(HttpMethod(method)))
        #expect(try await stage.send().isHit)
    }

    @Test(arguments: [400, 404, 500, 503])
    func `an error takes nothing away, RFC 9111 §4.4`(status: Int) async throws {
        let stage = try CacheStage()
        try stage.respond([HttpCacheTests.fresh])
        _ = try await stage.send()
        try stage.respond(status, [])
        _ = try await stage.send(.put)
        #expect(try await stage.send().isHit)
    }

    @Test(arguments: ["Location", "Content-Location"])
    func `references of the response to the same origin are taken away, too, RFC 9111 §4.4`(field: String) async throws
    {
        let stage = try CacheStage()
        try stage.respond([HttpCacheTests.fresh], always: true)
        for path in ["/a", "/b"] { _ = try await stage.send(.get, path) }
        try stage.respond(201, ["\(field): /a"])
        _ = try await stage.send(.post, "/x")
        #expect(try await !stage.send(.get, "/a").isHit)
        try stage.respond(201, ["\(field): http://other.test/b"])
        _ = try await stage.send(.post, "/x")
        #expect(try await stage.send(.get, "/b").isHit)
    }

    @Test func `invalidation can be turned off`() async throws {
        let stage = try CacheStage { $0.invalidatesOnUnsafe = false }
        try stage.respond([HttpCacheTests.fresh], always: true)
        _ = try await stage.send()
        _ = try await stage.send(.put)
        #expect(try await stage.send().isHit)
    }

    @Test func `a POST's response answers GET where it says so, RFC 9110 §9.3.3`() async throws {
        let stage = try CacheStage()
        try stage.respond([HttpCacheTests.fresh, "Content-Location: /form"], "posted")
        _ = try await stage.send(.post, "/form")
        #expect(try await stage.send(.get, "/form").text == "posted")
        try stage.respond([HttpCacheTests.fresh], "other", always: true)
        _ = try await stage.send(.post, "/b")
        #expect(try await !stage.send(.get, "/b").isHit)
    }

    // MARK: Options

    @Test func `the defaults are those of the reference`() throws {
        let cache = try TestExchange.make(HttpCache.self)
        #expect(cache.maxObject == .mebibytes(8))
        #expect(cache.methods == [.get, .head])
        #expect(cache.policy == CachePolicy())
        #expect(cache.collapses && cache.emitsStatus && cache.invalidatesOnUnsafe)
        #expect(cache.store.census.limit == 256 << 20)
    }

    @Test func `defaultTtl is the lifetime of responses that state none, not of those with a cookie`() async throws {
        let stage = try CacheStage { $0.policy.defaultLifetime = 60 }
        try stage.respond([], "silent")
        _ = try await stage.send(.get, "/", ["Cookie: a=b"])
        #expect(try await stage.send(.get, "/", ["Cookie: c=d"]).isHit)
        await stage.advance(61)
        try stage.respond(["Cache-Control: no-cache"], "asked")
        #expect(try await stage.send().text == "asked")
        try stage.respond(["Cache-Control: max-age=5"], "stated")
        #expect(try await stage.send().text == "stated")
        await stage.advance(6)
        try stage.respond(["Set-Cookie: a=b"], "cookie")
        #expect(try await stage.send().text == "cookie")
        try stage.respond(500, [], "error")
        #expect(try await stage.send(.get, "/other").text == "error")
        try stage.respond([], "again")
        #expect(try await stage.send(.get, "/other").text == "again")
    }

    @Test func `requests of bypass are neither answered from the store nor stored`() async throws {
        var options = ConditionOptions()
        options.request.headers = [NamedMatch(name: "X-Preview", values: [.exactly("1")])]
        let stage = try CacheStage { $0.bypass = Condition(options) }
        try stage.respond(["Cache-Control: max-age=60"], "stored")
        _ = try await stage.send()
        try stage.respond(["Cache-Control: max-age=60"], "preview")
        #expect(try await stage.send(.get, "/", ["X-Preview: 1"]).text == "preview")
        #expect(try await stage.send().text == "stored")
        #expect(stage.asked == 2)
    }

    @Test func `options are what they say`() throws {
        let cache = try TestExchange.make(
            HttpCache.self,
            [
                "maxObject": "1MiB", "mode": "private", "methods": ["GET"], "heuristic": ["ratio": "20%", "max": "1h"],
                "staleWhileRevalidate": "30s", "staleIfError": "1h", "invalidateOnUnsafe": false, "collapse": false,
                "targeted": ["My-Cache-Control"], "tags": "X-Tags", "status": false, "setCookie": "pass",
                "staleOnDisconnect": true, "defaultTtl": "10m", "bypass": ["path": "/admin/**"],
                "key": ["path": "received", "headers": ["X-A"], "query": ["q"], "ignoreQuery": ["utm"]],
            ])
        #expect(cache.policy.mode == .private && cache.methods == [.get] && cache.maxObject == .mebibytes(1))
        #expect(cache.policy.heuristicRatio == 0.2 && cache.policy.heuristicLimit == 3600)
        #expect(cache.policy.staleWhileRevalidate == 30 && cache.policy.staleIfError == 3600)
        #expect(!cache.invalidatesOnUnsafe && !cache.collapses && !cache.emitsStatus && cache.policy.setCookie == .pass)
        #expect(cache.keyRule.path == .received && cache.policy.staleOnDisconnect)
        #expect(cache.policy.defaultLifetime == 600 && cache.bypass != nil)
        #expect(cache.policy.targeted == ["My-Cache-Control"] && cache.tagField == "X-Tags")
        #expect(cache.keyFields == ["X-A"] && cache.keyRule.query == ["q"] && cache.keyRule.ignoredQuery == ["utm"])
    }

    @Test(
        arguments: [
            ["maxObject": "1B"], ["mode": "other"], ["methods": ["POST"]], ["setCookie": "x"],
            ["key": ["path": "raw"]], ["staleOnDisconnect": "1h"],
            ["heuristic": ["max": "-1s"]], ["status": "yes"], ["bypass": [:]], ["bypass": ["status": [200]]],
            ["defaultTtl": "-1s"],
        ] as [ConfigNode])
    func `a wrong option is refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(HttpCache.self, options) }
    }
}

/// Takes a field from the request.
struct Removing: Middleware {
    let name: FieldName

    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        request.fields.remove(name)
        return .pass
    }
}

/// Makes sure who asks, by the word of the request.
struct Naming: Middleware {
    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        if let user = request.fields["X-User"] { exchange.authenticated(as: Principal(method: "test", name: user)) }
        return .pass
    }
}
