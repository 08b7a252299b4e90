import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct ConditionTests {
    private let notes = Notes()
    /// Runs into its limit for a long row of letters.
    private let endless = "~^(a+)+$"
    private let longRow = String(repeating: "a", count: 60) + "!"

    private func condition(_ change: (inout ConditionOptions) throws -> Void) rethrows -> Condition {
        var options = ConditionOptions()
        try change(&options)
        return Condition(options)
    }

    private func named(_ name: String, _ value: String) throws -> NamedMatch {
        NamedMatch(name: name, values: [try ValueMatch(optionText: value)])
    }

    @Test func `a ware whose condition does not hold is passed over, both halves`() async throws {
        let isGet = condition { $0.request.methods = [.get] }
        let exchange = try TestExchange(
            chain: WareChain(
                middlewares: [ChainEntry(OnBoth.noting("a", in: notes), condition: isGet)], postwares: []))
        _ = try await exchange.send(.post("/"))
        #expect(notes.all.isEmpty)
        _ = try await exchange.send(.get("/"))
        #expect(notes.all == ["a request", "a response 200"])
    }

    @Test func `a condition of a middleware sees the request as it is there`() async throws {
        let adds = OnRequest { request, _ in
            request.fields.append(try FieldLine("x-role", "admin"))
            return .pass
        }
        let isAdmin = try condition { $0.request.headers = [try named("X-Role", "admin")] }
        let exchange = try TestExchange(
            chain: WareChain(
                middlewares: [
                    ChainEntry(OnRequest.noting("before", in: notes), condition: isAdmin), ChainEntry(adds),
                    ChainEntry(OnRequest.noting("behind", in: notes), condition: isAdmin),
                ], postwares: []))
        _ = try await exchange.send(.get("/"))
        #expect(notes.all == ["behind request"])
    }

    @Test func `a condition of a postware sees the request as received`() async throws {
        let changes = OnRequest { request, _ in
            request.fields.append(try FieldLine("x-role", "admin"))
            try request.setPath("/new")
            try request.setQuery("b=2")
            request.setAuthority(try #require(Authority("new.test")))
            return .pass
        }
        func postware(_ label: String, _ change: (inout ConditionOptions) throws -> Void) rethrows -> ChainEntry {
            ChainEntry(OnResponse.noting(label, in: notes), condition: try condition(change))
        }
        let exchange = try TestExchange(
            chain: WareChain(
                middlewares: [ChainEntry(changes)],
                postwares: [
                    postware("added field") { $0.request.headers = [try named("x-role", "admin")] },
                    postware("field") { $0.request.headers = [try named("x-sent", "yes")] },
                    postware("path") { $0.request.paths = [try PathPattern(optionText: "/old")] },
                    postware("new path") { $0.request.paths = [try PathPattern(optionText: "/new")] },
                    postware("query") { $0.request.query = [try named("a", "1")] },
                    postware("new query") { $0.request.query = [try named("b", "2")] },
                    postware("host") { $0.request.hosts = [try HostPattern(optionText: "example.test")] },
                    postware("new host") { $0.request.hosts = [try HostPattern(optionText: "new.test")] },
                ]))
        _ = try await exchange.send(.get("/old?a=1", fields: ["X-Sent": "yes"]))
        #expect(exchange.upstream.requests.first?.path == "/new")
        #expect(
            notes.all == ["field", "path", "query", "host"].map { "\($0) 200 by upstream" })
    }

    @Test func `a postware's condition judges status, responder and response fields`() async throws {
        func postware(_ label: String, _ change: (inout ConditionOptions) throws -> Void) rethrows -> ChainEntry {
            ChainEntry(OnResponse.noting(label, in: notes), condition: try condition(change))
        }
        let exchange = try TestExchange(
            chain: WareChain(
                middlewares: [],
                postwares: [
                    postware("404") { $0.statuses = try StatusSet(optionText: "404") },
                    postware("upstream") { $0.responders = ["upstream"] },
                    postware("gateway") { $0.responders = ["gateway", "cache"] },
                    postware("json") { $0.responseHeaders = [try named("content-type", "~json")] },
                ]))
        exchange.upstream.respond(with: HttpResponse(.notFound, fields: ["Content-Type": "application/json"]))
        _ = try await exchange.send(.get("/"))
        #expect(notes.all == ["404", "upstream", "json"].map { "\($0) 404 by upstream" })
    }

    private func match(_ change: (inout RequestMatch) throws -> Void) rethrows -> RequestMatch {
        var match = RequestMatch()
        try change(&match)
        return match
    }

    /// The labels of the wares whose condition holds for a request.
    private func held(
        _ conditions: [(String, (inout ConditionOptions) throws -> Void)], for request: HttpRequest,
        trusting proxies: [IPNetwork] = []
    ) async throws -> [String] {
        let wares = try conditions.map { label, change in
            ChainEntry(OnRequest.noting(label, in: notes), condition: try condition(change))
        }
        var setting = TestExchange.Setting()
        setting.trustedProxies = proxies
        let exchange = try TestExchange(chain: WareChain(middlewares: wares, postwares: []), setting: setting)
        _ = try await exchange.send(request)
        return notes.all.map { String($0.prefix { $0 != " " }) }
    }

    @Test func `not, any, cookies and expressions are judged as they are written`() async throws {
        let a = match { $0.methods = [.get] }
        let health = try match { $0.paths = [try PathPattern(optionText: "/health")] }
        let debug = try match { $0.cookies = [try named("debug", "~^[12]$")] }
        var fields = HttpFields()
        try fields.append("Cookie", "x=y; debug=\"2\"; debug=no")
        let held = try await held(
            [
                ("not-path", { $0.request.not = [health] }),
                ("not-both", { $0.request.not = [health, a] }),
                ("any", { $0.request.any = [health, debug] }),
                ("any-none", { $0.request.any = [health] }),
                ("not-any", { $0.request.not = [match { $0.any = [health, debug] }] }),
                ("nested", { $0.request.any = [match { $0.not = [match { $0.not = [debug] }] }] }),
                ("cookie", { $0.request.cookies = [try named("debug", "no"), try named("x", "y")] }),
                ("no-cookie", { $0.request.cookies = [try named("z", "~")] }),
                ("expression", { $0.request.pathExpressions = [try Pattern("rs/[0-9]")] }),
            ], for: .get("/orders/7", fields: fields))
        #expect(held == ["not-path", "any", "nested", "cookie", "expression"])
    }

    @Test(arguments: [("203.0.113.0/24", ["in", "https"]), ("192.0.2.0/24", ["out", "http"])])
    func `client and scheme are conditions, and only trusted proxies name another`(
        trusted: String, expected: [String]
    ) async throws {
        var fields = HttpFields()
        try fields.append("X-Forwarded-For", "10.1.2.3")
        try fields.append("X-Forwarded-Proto", "https")
        let network = [try IPNetwork(optionText: "10.0.0.0/8")]
        let held = try await held(
            [
                ("in", { $0.request.clients = network }),
                ("out", { $0.request.not = [match { $0.clients = network }] }),
                ("https", { $0.request.schemes = [.https] }),
                ("http", { $0.request.schemes = [.http] }),
            ], for: .get("/", fields: fields), trusting: [try IPNetwork(optionText: trusted)])
        #expect(held == expected)
    }

    @Test func `not and any may ask for parts of the response on postwares`() async throws {
        func postware(_ label: String, _ change: (inout ConditionOptions) throws -> Void) rethrows -> ChainEntry {
            ChainEntry(OnResponse.noting(label, in: notes), condition: try condition(change))
        }
        let good = try match { $0.response.statuses = try StatusSet(optionText: "2xx") }
        let cached = match { $0.response.responders = ["cache"] }
        let get = match { $0.methods = [.get] }
        let exchange = try TestExchange(
            chain: WareChain(
                middlewares: [],
                postwares: [
                    postware("not-good") { $0.request.not = [good] },
                    postware("good-or-get") { $0.request.any = [good, get] },
                    postware("cached") { $0.request.any = [cached] },
                    postware("neither") { $0.request.not = [good, cached] },
                ]))
        exchange.upstream.respond(with: HttpResponse(.notFound))
        _ = try await exchange.send(.get("/"))
        #expect(notes.all == ["not-good", "good-or-get", "neither"].map { "\($0) 404 by upstream" })
    }

    // MARK: Limits of patterns

    @Test(arguments: [false, true])
    func `a condition that cannot be decided counts as a ware that threw`(failsOpen: Bool) async throws {
        let undecided = try condition { $0.request.headers = [try named("x-row", endless)] }
        let exchange = try TestExchange(
            chain: WareChain(
                middlewares: [
                    ChainEntry(
                        OnRequest(failsOpen: failsOpen) { [notes] _, _ in
                            notes.add("asked")
                            return .pass
                        }, label: "guard", condition: undecided)
                ], postwares: []))
        var fields = HttpFields()
        try fields.append("x-row", longRow)
        let response = try await exchange.send(.get("/", fields: fields))
        #expect(response.status == (failsOpen ? .ok : .internalServerError))
        #expect(exchange.upstream.requests.count == (failsOpen ? 1 : 0))
        #expect(notes.all.isEmpty)
        if !failsOpen { #expect(response.content.text?.contains("guard failed") == true) }
    }

    @Test(arguments: [false, true])
    func `a postware's condition that cannot be decided counts as a ware that threw`(failsOpen: Bool) async throws {
        let undecided = try condition { $0.responseHeaders = [try named("x-row", endless)] }
        let exchange = try TestExchange(
            chain: WareChain(
                middlewares: [],
                postwares: [
                    ChainEntry(
                        OnResponse(failsOpen: failsOpen) { [notes] _, _ in
                            notes.add("asked")
                            return .pass
                        }, label: "guard", condition: undecided),
                    ChainEntry(OnResponse.noting("p", in: notes)),
                ]))
        var fields = HttpFields()
        try fields.append("x-row", longRow)
        exchange.upstream.respond(with: HttpResponse(.ok, fields: fields))
        let response = try await exchange.send(.get("/"))
        #expect(response.status == (failsOpen ? .ok : .badGateway))
        #expect(notes.all == [failsOpen ? "p 200 by upstream" : "p 502 by gateway"])
    }

    @Test func `an observer whose condition cannot be decided is told`() async throws {
        struct Ends: Postware, ExchangeObserver {
            let notes: Notes
            var failsOpen: Bool { true }
            func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer { .pass }
            func ended(_ exchange: Exchange) { notes.add("ended") }
        }
        let undecided = try condition { $0.request.headers = [try named("x-row", endless)] }
        let exchange = try TestExchange(
            chain: WareChain(middlewares: [], postwares: [ChainEntry(Ends(notes: notes), condition: undecided)]))
        var fields = HttpFields()
        try fields.append("x-row", longRow)
        #expect(try await exchange.send(.get("/", fields: fields)).status == .ok)
        #expect(notes.all == ["ended"])
    }

    @Test func `a route that cannot be decided is a 500 that names no route`() async throws {
        struct Undecided: ExchangeRouter {
            let listenerPlan: ExchangePlan
            func plan(
                for request: borrowing HttpRequest, captures: inout [(name: String, value: String)]
            ) throws(Pattern.LimitReached) -> ExchangePlan { throw Pattern.LimitReached() }
        }
        let chain = try WareChain.of([OnRequest.noting("m", in: notes)], [OnResponse.noting("p", in: notes)])
        let loop = try EventLoop.start(name: "undecided")
        defer { loop.stop() }
        let status = await withCheckedContinuation { continuation in
            loop.execute {
                let server = LoopListener(
                    name: "a", transport: LoopTransport(loop: loop, resolver: nil),
                    router: Undecided(listenerPlan: ExchangePlan(chain: chain, service: nil, route: nil)))
                LocalCaller(server, peer: nil).send(
                    .get("/"),
                    completion: { result in
                        continuation.resume(returning: (try? result.get())?.status.code)
                        loop.later { server.closeAll() }
                    })
            }
        }
        #expect(status == 500)
        #expect(notes.all == ["p 500 by gateway"])
    }
}
