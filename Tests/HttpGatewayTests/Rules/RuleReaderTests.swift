import Capturing
import HttpWare
import HttpWareTesting
import Testing

@testable import HttpGateway

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

    @Test func `an exchange of any kind needs no if`() throws {
        #expect(try SavedRule.yaml(active("mock")) == "# why\nmiddlewares:\n  - mock: {}\n")
    }

    @Test func `a status is said among postwares`() throws {
        let yaml = try SavedRule.yaml(active("responseHeaders", "{\"remove\": [\"x-a\"]}", filter: "~c 404 | ~c 410"))
        #expect(yaml.hasSuffix("postwares:\n  - responseHeaders: { remove: [x-a] }\n    if: { status: [404, 410] }\n"))
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
    func `what no if says exactly is refused with the column`(filter: String, column: Int) throws {
        let active = try active("mock", filter: filter)
        #expect { try SavedRule.yaml(active) } throws: { ($0 as? FilterFault)?.column == column }
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
}
