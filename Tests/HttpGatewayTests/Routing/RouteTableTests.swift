import GatewayConfig
import HttpWare
import HttpWareTesting
import Testing

@testable import HttpGateway

@Suite struct RouteTableTests {
    /// The routes of the first listener of a configuration.
    private func table(_ routes: String, forward: Bool = false) throws -> RouteTable {
        let text = """
            version: 1
            listeners: { main: { bind: "127.0.0.1:0", mode: \(forward ? "forward" : "reverse") } }
            services: { origin: { baseUrl: "http://192.0.2.1" }, other: { baseUrl: "http://192.0.2.2" } }
            routes:
            \(routes)
            """
        let files = ConfigurationFiles(read: { _, _ in Array(text.utf8) }, list: { _ in [] })
        let result = ConfigurationReader(wares: [], environment: [:], files: files).read(path: "routes.yaml")
        let configuration = try #require(
            result.configuration, "\(result.errors.map(\.description).joined(separator: "\n"))")
        return RouteTable(configuration.listeners[0], services: ServiceTable(configuration).services)
    }

    private func route(_ table: RouteTable, _ request: HttpRequest) throws -> String? {
        var captures: [(name: String, value: String)] = []
        return try table.plan(for: request, captures: &captures).route
    }

    @Test func `the first route that matches wins`() throws {
        let table = try table(
            """
              - { name: one, match: { path: /a }, service: origin }
              - { name: two, match: { path: "/**" }, service: other }
              - { name: three, match: { path: /b }, service: origin }
            """)
        #expect(try route(table, .get("http://a.test/a")) == "one")
        #expect(try route(table, .get("http://a.test/b")) == "two")
    }

    @Test func `what no route takes is the listener's own, without a service`() throws {
        let table = try table("  - { name: one, match: { path: /a }, service: origin }")
        var captures: [(name: String, value: String)] = []
        let plan = try table.plan(for: .get("http://a.test/b"), captures: &captures)
        #expect(plan === table.listenerPlan)
        #expect(plan.service == nil)
        #expect(captures.isEmpty)
    }

    @Test func `all that a route asks must hold`() throws {
        let table = try table(
            """
              - name: one
                match: { host: a.test, method: [GET, HEAD], headers: { X-Role: ["~^adm", root] }, query: { v: "2" } }
                service: origin
            """)
        func request(_ method: HttpMethod, _ target: String, _ role: String) throws -> HttpRequest {
            var fields = HttpFields()
            try fields.append("x-role", role)
            return .make(method, target, fields: fields)
        }
        #expect(try route(table, request(.get, "http://a.test/?v=2", "admin")) == "one")
        #expect(try route(table, request(.head, "http://A.test:8080/?u=1&v=2", "root")) == "one")
        #expect(try route(table, request(.post, "http://a.test/?v=2", "admin")) == nil)
        #expect(try route(table, request(.get, "http://b.test/?v=2", "admin")) == nil)
        #expect(try route(table, request(.get, "http://a.test/?v=1", "admin")) == nil)
        #expect(try route(table, request(.get, "http://a.test/?v=2", "user")) == nil)
        #expect(try route(table, .get("http://a.test/?v=2")) == nil)
    }

    @Test func `what the path captured is there, and nothing of a route that did not match`() throws {
        let table = try table(
            """
              - { name: one, match: { path: "/users/{id}", method: POST }, service: origin }
              - { name: two, match: { path: "/{kind}/{name}" }, service: origin }
            """)
        var captures: [(name: String, value: String)] = []
        #expect(try table.plan(for: .get("http://a.test/users/7%20x"), captures: &captures).route == "two")
        #expect(captures.map(\.name) == ["kind", "name"])
        #expect(captures.map(\.value) == ["users", "7%20x"])
    }

    @Test(arguments: ["headers: { X-Row: '~^(a+)+$' }", "query: { row: '~^(a+)+$' }"])
    func `a route whose pattern cannot be decided is no route that does not match`(match: String) throws {
        let table = try table(
            """
              - { name: guarded, match: { \(match) }, service: origin }
              - { name: open, service: other }
            """)
        let row = String(repeating: "a", count: 60) + "!"
        var fields = HttpFields()
        try fields.append("x-row", row)
        let request = HttpRequest.get("http://a.test/?row=\(row)", fields: fields)
        #expect(throws: Pattern.LimitReached.self) { try route(table, request) }
        #expect(try route(table, .get("http://a.test/")) == "open")
    }
}
