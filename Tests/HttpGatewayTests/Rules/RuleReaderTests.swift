import Capturing
import HttpWareTesting
import Testing
import GatewayWares
import Wares

@testable import HttpGateway
@testable import HttpWare

@Suite struct RuleReaderTests {
    private let reader = RuleReader(folder: "/nowhere/rules", hasToken: true)

    private func active(_ ware: String, _ options: String = "{}", filter: String = "~all", id: Int = 7) throws
        -> GatewayRules.Active
    {
        let body = """
            {"filter": \(Json.text(filter).text), "ware": "\(ware)", "options": \(options), "for": "10m", "reason": "why"}
            """
        return try reader.build(reader.read(Array(body.utf8)), id: id, now: WallTime(seconds: 1_800_000_000))
    }

    @Test func `no ware of a rule restricts access, authenticates or injects`() {
        for type in RuleReader.wares {
            #expect((type as? any AccessRule.Type)?.isAccessControl != true, "\(type.name)")
            #expect(!(type is any AuthenticatingWare.Type), "\(type.name)")
            var options = OptionsReader.describing()
            #expect(!type.init(options: &options).bindsAuthority, "\(type.name)")
        }
    }

    @Test(arguments: [
        ("fault", "{\"status\": 503}", 1, 0), ("responseHeaders", "{\"set\": {\"X\": \"1\"}}", 0, 1),
        ("break", "{}", 1, 1),
        ("break", "{\"on\": \"request\"}", 1, 0), ("break", "{\"on\": [\"response\"]}", 0, 1),
    ])
    func `a ware stands on its side`(ware: String, options: String, middlewares: Int, postwares: Int) throws {
        let active = try active(ware, options)
        #expect((active.middlewares.count, active.postwares.count) == (middlewares, postwares))
        _ = try WareChain(middlewares: active.middlewares, postwares: active.postwares)
    }

    @Test func `numbers, words and texts of JSON are read as a file's`() throws {
        let active = try active("mock", #"{"status": 201, "json": {"a": 1, "b": "1", "c": true, "d": null}}"#)
        #expect(active.rule.json.text.contains(#""json":{"a":1,"b":"1","c":true,"d":null}"#))
    }

    @Test func `fields that placeholders read are known, wherever they stand`() throws {
        let active = try active(
            "requestHeaders",
            #"{"set": {"X-A": "{request.header.Cookie}-{request.header.X-B}", "X-C": "{request.path}"}}"#)
        #expect(active.rule.readFields == ["cookie", "x-b"])
    }

    @Test(arguments: [
        ("~d ^api\\.example\\.com$", "if: { host: [api.example.com] }"),
        ("~d ^a\\.test$ | ~d ^b\\.test$", "if: { host: [a.test, b.test] }"),
        ("~m \"^(GET|HEAD)$\" & ~d ^a$", "if: { method: [GET, HEAD], host: [a] }"),
        ("~hq \"^x-a: 1.*$\" ~hq \"^x-b: 2$\"", "if: { headers: { x-a: \"~(?i)^1.*$\", x-b: \"~(?i)^2$\" } }"),
    ])
    func `a filter that an if can say is saved as one`(filter: String, condition: String) throws {
        let yaml = try SavedRule.yaml(active("mock", "{\"status\": 418}", filter: filter))
        #expect(yaml == "# why\nmiddlewares:\n  - mock: { status: 418 }\n    \(condition)\n")
    }

    @Test func `a rule is shown without user information, whatever part it is in`() throws {
        let rule = try reader.build(
            reader.read(
                Array(
                    #"""
                    {"filter": "~hq \"^x-a: http://user:pw123@h$\"", "ware": "requestHeaders", "for": "10m",
                     "options": {"set": {"X-A": "http://user:pw123@h/", "X-B": "user:pw123@h"}},
                     "reason": "because of http://user:pw123@h/"}
                    """#.utf8)), id: 7, now: WallTime(seconds: 1_800_000_000))
        let yaml = try SavedRule.yaml(rule)
        #expect(!yaml.contains("pw123") && yaml.contains("http://…@h/"), "\(yaml)")
        let json = rule.rule.json.text
        #expect(!json.contains("pw123") && json.contains("http://…@h/"), "\(json)")
        let broken = try SavedRule.yaml(active("break", filter: "~u http://user:pw123@h"))
        #expect(!broken.contains("pw123"), "\(broken)")
    }

    @Test func `an exchange of any kind needs no if`() throws {
        #expect(try SavedRule.yaml(active("mock")) == "# why\nmiddlewares:\n  - mock: {}\n")
    }

    @Test(arguments: [
        ("~c 404 | ~c 410", "404, 410"), ("~c 5xx", "5xx"), ("~c >=400", "400-599"), ("~c 404-410", "404-410"),
    ])
    func `a status is said among postwares`(filter: String, statuses: String) throws {
        let yaml = try SavedRule.yaml(active("responseHeaders", "{\"remove\": [\"x-a\"]}", filter: filter))
        #expect(
            yaml.hasSuffix("postwares:\n  - responseHeaders: { remove: [x-a] }\n    if: { status: [\(statuses)] }\n"))
    }

    @Test func `wares with a filter keep it, on both sides`() throws {
        let yaml = try SavedRule.yaml(active("break", "{\"max\": 5}", filter: "~u \"a b\" & ! ~m GET"))
        let entry = "  - break: { max: 5 }\n    filter: \"~u \\\"a b\\\" & ! ~m GET\"\n"
        #expect(yaml == "# why\nmiddlewares:\n\(entry)postwares:\n\(entry)")
    }

    @Test(arguments: [
        ("~d example.com", 1), ("~m GET", 1), ("~d ^a$ & ~u /x", 10), ("! ~d ^a$", 3), ("~d ^a$ | ~m ^GET$", 10),
        ("~d ^a$ ~d ^b$", 8), ("~hq \"^authorization: x$\"", 1), ("/path", 1), ("~hq x", 1), ("~d ^a.b$", 1),
    ])
    func `filters that if cannot express exactly are refused with the column`(filter: String, column: Int) throws {
        let active = try active("mock", filter: filter)
        #expect { try SavedRule.yaml(active) } throws: { ($0 as? Capturing.FilterFault)?.column == column }
    }

    @Test func `rules act on exchanges, the last one created last, and count each exchange once`() async throws {
        let rules = [
            try active("requestHeaders", #"{"set": {"X-A": "1"}}"#),
            try active("responseHeaders", #"{"set": {"X-B": "2"}}"#, id: 8),
        ]
        let chain = try WareChain(
            middlewares: rules.flatMap(\.middlewares), postwares: rules.flatMap(\.postwares))
        let exchange = try TestExchange(chain: chain)
        let response = try await exchange.send(.get("/"))
        #expect(exchange.upstream.requests.first?.fields["X-A"] == "1")
        #expect(response.fields["X-B"] == "2")
        #expect(rules.map(\.rule.hits) == [1, 1])
    }

    // MARK: The place in a chain

    /// An exchange with the wares of a chain, and with rules.
    private func exchange(_ wares: [any Ware], _ rules: [GatewayRules.Active]) throws -> TestExchange {
        let chain = try WareChain(
            middlewares: wares.map { ware in
                ChainEntry(ware, label: (type(of: ware) as? any ConfigurableWare.Type)?.name.text)
            }, postwares: [])
        return try TestExchange(chain: try #require(AddedWares(rules)?.joined(with: chain)))
    }

    private func built<T: ConfigurableWare>(_ type: T.Type, _ options: ConfigNode = [:]) throws -> T {
        try TestExchange.make(type, options)
    }

    @Test func `a rule acts on a request that a cache could answer, and leaves the stored response as it is`()
        async throws
    {
        let rule = try active("mock", #"{"status": 418}"#, filter: "~m GET & ~u /one")
        let exchange = try exchange([built(HttpCache.self)], [rule])
        exchange.upstream.always(
            respondWith: HttpResponse(.ok, fields: ["Cache-Control": "max-age=100"], content: .text("origin")))
        for path in ["/two", "/two"] { #expect(try await exchange.send(.get(path)).status == .ok) }
        #expect(exchange.upstream.requests.count == 1)
        for _ in 0..<2 { #expect(try await exchange.send(.get("/one")).status.code == 418) }
        #expect(exchange.upstream.requests.count == 1)
        #expect(rule.rule.hits == 2)
    }

    @Test(arguments: ["mock", "redirect", "fault"])
    func `a rule acts before the ware that answers`(name: String) async throws {
        let answering: any Ware =
            switch name {
            case "mock": try built(Mock.self, ["status": "200", "body": "mine"])
            case "redirect": try built(Redirect.self, ["to": "/elsewhere"])
            default: try built(Fault.self, ["status": "500"])
            }
        let rule = try active("mock", #"{"status": 418}"#)
        let exchange = try exchange([answering], [rule])
        #expect(try await exchange.send(.get("/")).status.code == 418)
    }

    @Test func `a rule acts behind the wares that restrict access, and says why it did not act`() async throws {
        let rule = try active("mock", #"{"status": 418}"#)
        // Before the mock, and yet behind the ware that refuses.
        let exchange = try exchange(
            [try built(HostRule.self, ["deny": ["example.com"]]), try built(Mock.self, ["status": "200"])], [rule])
        let response = try await exchange.send(.get("http://example.com/"))
        #expect(response.status == .forbidden)
        #expect(rule.rule.hits == 0)
        let json = rule.rule.json.text
        #expect(json.contains(#""missed":1,"missedBecause":"hostRule answered first""#), "\(json)")
    }

    @Test func `the place of a rule is before the first ware that answers, unless a guard follows it`() throws {
        let (mock, host) = (try built(Mock.self, ["status": "200"]), try built(HostRule.self, ["deny": ["a.test"]]))
        let (cache, headers) = (try built(HttpCache.self), try built(RequestHeaders.self, ["set": ["X-A": "1"]]))
        func place(_ wares: any Ware...) -> Int { AddedWares.place(among: wares.map { ChainEntry($0) }) }
        #expect(place() == 0)
        #expect(place(headers, cache) == 2)
        #expect(place(headers, mock) == 1)
        #expect(place(host, mock, headers) == 1)
        #expect(place(mock, host) == 2)
        #expect(place(cache, mock, mock) == 1)
    }
}
