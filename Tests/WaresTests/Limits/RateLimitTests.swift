import HttpWareTesting
import Testing

@testable import HttpWare
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
        #expect(limit.counter.numbers.map(\.value) == [1, 2, 0, 0])
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
            ["rate": "1/s", "key": "cookie.a"], ["rate": "1/s", "key": "header."], ["rate": "1/s", "mode": "drop"],
            ["rate": "1/s", "status": 200], ["rate": "1/s", "headers": ["X-RateLimit"]],
        ] as [ConfigNode])
    func `what makes no sense is refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(RateLimit.self, options) }
    }

    @Test func `another store is refused by its name`() {
        let error = #expect(throws: ConfigError.self) {
            try TestExchange.make(RateLimit.self, ["rate": "1/s", "store": "shared"])
        }
        #expect(error?.message.hasPrefix("\"shared\" is not supported yet") == true)
    }
}
