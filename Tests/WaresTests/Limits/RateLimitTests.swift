import HttpWareTesting
import Testing

@testable import HttpWare
@testable import GatewayWares
@testable import Wares

@Suite(.timeLimit(.minutes(10))) struct RateLimitTests {
    @Test func `a request over the limit is refused, and may come again when it is told - RFC 6585 §4`() async throws {
        let exchange = try TestExchange(observing: [RateLimit(Rate(1, per: .second), burst: 2)])
        #expect(try await exchange.send(.get("/")).status == .ok)
        #expect(try await exchange.send(.get("/")).status == .ok)
        let refused = try await exchange.send(.get("/"))
        #expect(refused.status == .tooManyRequests)
        #expect(refused.fields[.retryAfter] == "1")
        #expect(refused.fields[.contentType] == "application/problem+json")
        #expect(exchange.upstream.requests.count == 2)
        #expect(exchange.notes == ["rejected: 1/s for 203.0.113.7"])
        await exchange.advance(by: .seconds(1))
        #expect(try await exchange.send(.get("/")).status == .ok)
    }

    @Test func `responses say what is left - draft-ietf-httpapi-ratelimit-headers-10 §3 and §4`() async throws {
        let exchange = try TestExchange([RateLimit(Rate(60, per: .minute), burst: 3)])
        var told: [String?] = []
        for _ in 0..<4 {
            let response = try await exchange.send(.get("/"))
            #expect(response.fields["RateLimit-Policy"] == #""ip";q=3;w=3"#)
            told.append(response.fields["RateLimit"])
        }
        #expect(told == [#""ip";r=2;t=1"#, #""ip";r=1;t=2"#, #""ip";r=0;t=3"#, #""ip";r=0;t=3"#])
    }

    @Test func `several limits tell beside each other, each its own`() async throws {
        let exchange = try TestExchange([
            RateLimit(Rate(10, per: .second)), RateLimit(Rate(100, per: .second), key: .route),
        ])
        let response = try await exchange.send(.get("/"))
        #expect(response.fields["RateLimit"] == #""route";r=99;t=1, "ip";r=9;t=1"#)
    }

    @Test func `only the fields that are asked for are sent`() async throws {
        let none = try TestExchange(RateLimit.self, options: ["rate": "1/s", "headers": []])
        #expect(try await none.send(.get("/")).fields["RateLimit"] == nil)
        let refused = try await none.send(.get("/"))
        #expect(refused.status == .tooManyRequests)
        #expect(refused.fields["RateLimit-Policy"] == nil && refused.fields[.retryAfter] == nil)
        let one = try TestExchange(
            RateLimit.self, options: ["rate": "1/s", "headers": ["Retry-After"], "status": 503])
        _ = try await one.send(.get("/"))
        let late = try await one.send(.get("/"))
        #expect(late.status == .serviceUnavailable)
        #expect(late.fields["RateLimit"] == nil && late.fields[.retryAfter] == "1")
    }

    // MARK: Keys

    /// How many of these requests pass a limit of one.
    private func passing(_ key: RequestKey, _ requests: [HttpRequest], before: [any Ware] = []) async throws -> Int {
        let exchange = try TestExchange(before + [RateLimit(Rate(1, per: .hour), key: key)])
        var count = 0
        for request in requests where try await exchange.send(request).status == .ok { count += 1 }
        return count
    }

    @Test func `clients are told apart by address, of IPv6 by the upper 64 bits`() async throws {
        let limit = RateLimit(Rate(1, per: .hour))
        let peers = [
            "192.0.2.1:1", "192.0.2.1:2", "[::ffff:192.0.2.1]:3", "192.0.2.2:1", "[2001:db8::1]:1", "[2001:db8::2:1]:1",
            "[2001:db8:0:1::1]:1",
        ]
        var passed: [Bool] = []
        for peer in peers {
            let exchange = try TestExchange(observing: [limit], peer: peer)
            passed.append(try await exchange.send(.get("/")).status == .ok)
            if peer == "[2001:db8::2:1]:1" { #expect(exchange.notes == ["rejected: 1/h for 2001:db8::/64"]) }
        }
        #expect(passed == [true, false, false, true, true, false, true])
    }

    @Test func `by a field's value; who sends none, or two, shares one limit`() async throws {
        let requests = try [["a"], ["b"], ["a"], [], [], ["a", "b"], ["c", "d"]].map { values in
            var fields = HttpFields()
            for value in values { try fields.append("X-Key", value) }
            return HttpRequest.get("/", fields: fields)
        }
        #expect(try await passing(.header("X-Key"), requests) == 3)
    }

    @Test func `the value of a field is not shown, for it may be a credential`() async throws {
        let exchange = try TestExchange(observing: [RateLimit(Rate(1, per: .hour), key: .header("X-Key"))])
        for _ in 0..<2 { _ = try await exchange.send(.get("/", fields: ["X-Key": "s3cret"])) }
        #expect(exchange.notes == ["rejected: 1/h for one X-Key"])
    }

    @Test func `by a claim of the token that was accepted`() async throws {
        let requests: [HttpRequest] = [
            .get("/", fields: ["X-Who": "joe"]), .get("/", fields: ["X-Who": "ann"]),
            .get("/", fields: ["X-Who": "joe"]), .get("/"), .get("/"),
        ]
        #expect(try await passing(.claim("sub"), requests, before: [Authenticating()]) == 3)
    }

    private struct Authenticating: Middleware {
        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
            if let who = request.fields["X-Who"] {
                exchange.authenticated(as: Principal(method: "jwt", name: who, claims: [("sub", who)]))
            }
            return .pass
        }
    }

    @Test func `by principal, not by its name`() async throws {
        let requests = ["joe", "ann", "joe"].map { (who: String) -> HttpRequest in
            var fields = HttpFields()
            try? fields.append("X-Who", who)
            return .get("/", fields: fields)
        }
        #expect(
            try await passing(.principal, requests + [.get("/"), .get("/")], before: [Authenticating()]) == 3)
        struct Namesakes: Middleware {
            func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
                let who = Digest256(of: [request.fields["X-Who"] ?? ""])
                exchange.authenticated(as: Principal(method: "jwt", name: "same", identity: who))
                return .pass
            }
        }
        #expect(try await passing(.principal, requests, before: [Namesakes()]) == 2)
    }

    @Test func `by the client's certificate, until a ware knows better`() async throws {
        let limit = RateLimit(Rate(1, per: .hour), key: .principal)
        var passed: [Bool] = []
        for name in ["CN=anna", "CN=anna", "CN=bert"] {
            var setting = TestExchange.Setting()
            setting.certificate = TlsClientIdentity(subject: name)
            let exchange = try TestExchange([Authenticating(), limit], setting: setting)
            for fields in [HttpFields(), ["X-Who": "joe"]] as [HttpFields] {
                passed.append(try await exchange.send(.get("/", fields: fields)).status == .ok)
            }
        }
        #expect(passed == [true, true, false, false, true, false])
    }

    @Test func `by several, of which each combination counts`() async throws {
        let requests: [HttpRequest] = [
            .get("/", fields: ["X-A": "1", "X-B": "2"]), .get("/", fields: ["X-A": "1", "X-B": "3"]),
            .get("/", fields: ["X-A": "1", "X-B": "2"]), .get("/", fields: ["X-A": "12"]),
            .get("/", fields: ["X-B": "12"]), .get("/", fields: ["X-A": "", "X-B": "12"]), .get("/"), .get("/"),
        ]
        #expect(try await passing(.all([.header("X-A"), .header("X-B")]), requests) == 6)
        let exchange = try TestExchange(
            RateLimit.self, options: ["rate": "1/h", "key": ["header.X-A", "route"], "headers": ["RateLimit"]])
        let response = try await exchange.send(requests[0])
        #expect(response.fields["RateLimit"] == #""header+route";r=0;t=3600"#)
    }

    @Test func `by a cookie`() async throws {
        let requests: [HttpRequest] = [
            .get("/", fields: ["Cookie": "s=1; t=1"]), .get("/", fields: ["Cookie": "t=2; s=1"]),
            .get("/", fields: ["Cookie": "s=2"]), .get("/", fields: ["Cookie": "t=1"]), .get("/"),
        ]
        #expect(try await passing(.cookie("s"), requests) == 3)
    }

    @Test func `behind apiKey, which takes the key away, each key counts`() async throws {
        let file = try CredentialFile(
            """
            alpha:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad
            beta:f397f260a275cc4d42e7965c556167bf3f068aed491d35a8f5b38c8c2db96bb0
            """)
        let header = try TestExchange.make(
            ApiKey.self, ConfigNode(.map([.init(key: "keysFile", location: .code, value: file.option)])))
        let requests: [HttpRequest] = ["abc", "second-key", "abc"].map {
            var fields = HttpFields()
            try? fields.append("X-Api-Key", $0)
            return .get("/", fields: fields)
        }
        #expect(try await passing(.header("X-API-Key"), requests, before: [header]) == 2)
        #expect(try await passing(.principal, requests, before: [header]) == 2)
        var cookie = header
        cookie.place = .cookie("k")
        let inCookies: [HttpRequest] = [
            .get("/", fields: ["Cookie": "k=abc; a=1"]), .get("/", fields: ["Cookie": "a=2; k=second-key"]),
            .get("/", fields: ["Cookie": "k=abc; a=3"]),
        ]
        #expect(try await passing(.cookie("k"), inCookies, before: [cookie]) == 2)
    }

    @Test func `a field that a ware puts there counts as that, and one that it takes away not at all`() async throws {
        struct Asserting: Middleware {
            func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
                request.fields.remove("X-User")
                if let who = request.fields["X-Who"] { try request.fields.set("X-User", to: who) }
                return .pass
            }
        }
        let requests: [HttpRequest] = [
            .get("/", fields: ["X-Who": "joe", "X-User": "1"]), .get("/", fields: ["X-Who": "joe", "X-User": "2"]),
            .get("/", fields: ["X-User": "3"]), .get("/", fields: ["X-User": "4"]),
        ]
        #expect(try await passing(.header("X-User"), requests, before: [Asserting()]) == 2)
    }

    @Test(arguments: ["", "nobody", "header.", "header.a b", "cookie.", "jwt.", "[]"])
    func `an invalid key is refused at load`(key: String) {
        let node: ConfigNode = key == "[]" ? [] : ConfigNode(.scalar(key, isQuoted: true))
        #expect(throws: ConfigError.self) { try TestExchange.make(RateLimit.self, ["rate": "1/s", "key": node]) }
    }

    @Test func `by route`() async throws {
        let limit = RateLimit(Rate(1, per: .hour), key: .route)
        var passed: [Bool] = []
        for route in ["a", "a", "b"] {
            let exchange = try TestExchange(observing: [limit], route: route)
            passed.append(try await exchange.send(.get("/")).status == .ok)
        }
        #expect(passed == [true, false, true])
    }

    // MARK: Delay

    @Test func `with delay a request waits until it is within the rate, and not longer than the burst takes`()
        async throws
    {
        let limit = RateLimit(Rate(1, per: .second), burst: 2, mode: .delay)
        let exchange = try TestExchange(observing: [limit])
        var pending: [TestExchange.Pending] = []
        for index in 0..<5 { pending.append(await exchange.start(.get("/\(index)"))) }
        #expect(try await pending[4].response().status == .tooManyRequests)
        #expect(try await pending[0].response().status == .ok)
        #expect(try await pending[1].response().status == .ok)
        #expect(exchange.upstream.requests.count == 2)
        await exchange.advance(by: .seconds(1))
        #expect(try await pending[2].response().status == .ok)
        #expect(exchange.upstream.requests.map(\.path) == ["/0", "/1", "/2"])
        await exchange.advance(by: .seconds(1))
        #expect(try await pending[3].response().status == .ok)
        #expect(limit.counter.numbers.map(\.value) == [1, 2, 0, 0, 0])
    }

    @Test func `a client that leaves waits no more`() async throws {
        let limit = RateLimit(Rate(1, per: .second), mode: .delay)
        let exchange = try TestExchange([limit])
        _ = try await exchange.send(.get("/"))
        let waiting = await exchange.start(.get("/late"))
        while limit.counter.numbers[2].value == 0 { await Task.yield() }
        await waiting.leave()
        while limit.counter.numbers[2].value > 0 { await Task.yield() }
        await exchange.advance(by: .seconds(1))
        #expect(exchange.upstream.requests.map(\.path) == ["/"])
    }

    // MARK: Options

    @Test func `the defaults are those of the catalogue`() throws {
        let limit = try TestExchange.make(RateLimit.self, ["rate": "600/m"])
        #expect(limit.rate == Rate(600, per: .minute) && limit.burst == 600 && limit.key == .ip)
        #expect(limit.mode == .reject && limit.status == .tooManyRequests && limit.headers.count == 3)
    }

    @Test(
        arguments: [
            [:], ["rate": "0/s"], ["rate": "100"], ["rate": "1000001/s"], ["rate": "1/s", "burst": 0],
            ["rate": "1/s", "key": "session.a"], ["rate": "1/s", "key": "header."], ["rate": "1/s", "mode": "drop"],
            ["rate": "1/s", "status": 200], ["rate": "1/s", "headers": ["X-RateLimit"]],
        ] as [ConfigNode])
    func `invalid options of rateLimit are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(RateLimit.self, options) }
    }

    @Test func `a store that is not there is refused by its name`() {
        let error = #expect(throws: ConfigError.self) {
            try TestExchange.make(RateLimit.self, ["rate": "1/s", "store": "shared"])
        }
        #expect(error?.message.contains("shared") == true)
    }

    @Test(arguments: ["name", "onError"])
    func `an option for stores has no meaning without a store`(key: String) {
        let error = #expect(throws: ConfigError.self) {
            try TestExchange.make(RateLimit.self, ["rate": "1/s", .init(stringLiteral: key): "memory"])
        }
        #expect(error?.message.contains("redis store") == true)
    }
}
