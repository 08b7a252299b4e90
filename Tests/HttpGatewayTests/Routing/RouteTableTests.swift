import GatewayConfig
import HttpWareTesting
import Testing

@testable import HttpGateway
@testable import HttpWare

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

    @Test func `requests that no route takes belong to the listener itself, without a service`() throws {
        let table = try table("  - { name: one, match: { path: /a }, service: origin }")
        var captures: [(name: String, value: String)] = []
        let plan = try table.plan(for: .get("http://a.test/b"), captures: &captures)
        #expect(plan === table.listenerPlan)
        #expect(plan.service == nil)
        #expect(captures.isEmpty)
    }

    @Test(arguments: [
        ("/", ["X_Debug: 1"], true), ("/", ["x_debug: 1"], true), ("/", ["X-Debug: 0, 1"], true),
        ("/", ["X-Debug: 0", "X_Debug: 1"], true), ("/", ["X_Debug: 0"], false), ("/", ["X-Other: 1"], false),
        ("/?a;debug=1", [], true), ("/?debug=1;x", [], true), ("/?a=b;%64ebug=%31&c", [], true),
        ("/?debug=0;1", [], false),
        ("/?debug=12", [], false), ("/", ["Cookie: debug=\"1\""], true), ("/", ["Cookie: debug=0"], false),
    ])
    func `a not of a route holds back what an origin server may read`(target: String, lines: [String], isHeld: Bool)
        throws
    {
        let table = try table(
            """
              - name: fenced
                match:
                  not: [{ headers: { X-Debug: "1" } }, { query: { debug: "1" } }, { cookies: { debug: "1" } }]
                service: origin
            """)
        var request = HttpRequest.get("http://a.test" + target)
        for line in lines {
            let parts = line.split(separator: ":", maxSplits: 1)
            try request.fields.append(#require(FieldName(String(parts[0]))), String(parts[1].dropFirst()))
        }
        request.fields.receivedCount = request.fields.lines.count
        request.fields.noteUnderscores()
        #expect(try (route(table, request) == nil) == isHeld)
    }

    @Test func `a not inside a not, and what a route asks, are read as they are`() throws {
        let table = try table(
            """
              - { name: asked, match: { headers: { X-Debug: "1" }, query: { debug: "1" } }, service: origin }
              - { name: twice, match: { not: { not: { headers: { X-Debug: "1" } } } }, service: origin }
            """)
        var request = HttpRequest.get("http://a.test/?a;debug=1", fields: ["X_Debug": "1"])
        request.fields.receivedCount = request.fields.lines.count
        request.fields.noteUnderscores()
        #expect(try route(table, request) == nil)
        #expect(try route(table, .get("http://a.test/", fields: ["X-Debug": "1"])) == "twice")
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

    @Test func `captures of the path are there, and captures of a route that did not match are not`() throws {
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
    func `a route whose pattern cannot be decided does not count as a route that does not match`(match: String) throws {
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
