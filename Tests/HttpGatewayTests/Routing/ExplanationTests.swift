import Foundation
import GatewayConfig
import HttpWare
import HttpWareTesting
import Testing
import GatewayWares

@testable import HttpGateway

@Suite struct ExplanationTests {
    private static let text = """
        version: 1
        listeners:
          web: { bind: "127.0.0.1:8080" }
          other: { bind: "0.0.0.0:8081" }
          proxy: { bind: "127.0.0.1:8888", mode: forward }
          local: { bind: "unix:/run/httpware.sock" }
        services: { api: { baseUrl: "http://192.0.2.1:3000" } }
        routes:
          - { name: method, match: { method: [POST, PUT] }, service: api }
          - { name: host, match: { host: "*.example.com" }, service: api }
          - { name: path, match: { path: [/a, /b, /c, /d] }, service: api }
          - { name: header, match: { headers: { X-A: secret } }, service: api }
          - { name: query, match: { query: { v: secret } }, service: api }
          - { name: client, match: { client: [10.0.0.0/8, 192.0.2.7] }, service: api }
          - { name: cookie, match: { cookies: { session: secret } }, service: api }
          - { name: scheme, match: { scheme: https }, service: api }
          - { name: expression, match: { path: ['~\\.php$', /x] }, service: api }
          - { name: not, match: { not: [{ method: PUT }, { path: "/**" }] }, service: api }
          - { name: any, match: { any: [{ method: PUT }, { client: "::1" }] }, service: api }
          - { name: endless, match: { query: { row: "~^(a+)+$" } }, service: api }
          - { name: elsewhere, listener: other, service: api }
          - { name: out, service: passthrough }
          - { name: user, match: { path: "/users/{id}" }, service: api }
        """

    @Test func `a script says where it would wait, and the services that it names are used`() throws {
        let text = """
            version: 1
            listeners: { web: { bind: "127.0.0.1:8080" } }
            services:
              api: { baseUrl: "http://127.0.0.1:1" }
              users: { baseUrl: "http://127.0.0.1:2" }
              other: { baseUrl: "http://127.0.0.1:3" }
            chains:
              c:
                middlewares:
                  - script:
                      source: |
                        return { request = function(req, opt, x)
                          x:note("at", "begin")
                          http.fetch { service = "users", path = "/" }
                        end }
            routes: [{ service: api, chain: c }]
            """
        let files = ConfigurationFiles(read: { _, _ in Array(text.utf8) }, list: { _ in [] })
        let result = ConfigurationReader(
            wares: BuiltinWares.all, stores: GatewayStores.all, environment: [:], files: files
        ).read(path: "a.yaml")
        #expect(
            result.errors.map { "\($0)" }.filter { $0.contains("not used") }
                == ["a.yaml:6:10: warning: services.other: is not used by any route"])
        let explanation = try Explanation(.init(.get, "/"), in: try #require(result.configuration))
        let step = try #require(explanation.run.middlewares.first)
        #expect(step.decision.word == "waits")
        #expect(step.notes == ["at=begin", "would wait for http.fetch users at line 3"])
    }

    private func explain(_ method: HttpMethod, _ url: String, listener: String? = nil) throws -> Explanation {
        let files = ConfigurationFiles(read: { _, _ in Array(Self.text.utf8) }, list: { _ in [] })
        let result = ConfigurationReader(
            wares: BuiltinWares.all, stores: GatewayStores.all, environment: [:], files: files
        ).read(path: "a.yaml")
        var question = Explanation.Question(method, url)
        question.listener = listener
        return try Explanation(question, in: try #require(result.configuration))
    }

    @Test func `every earlier route is named with what it asks and the request has not`() throws {
        let explanation = try explain(.get, "http://127.0.0.1:8080/users/7?v=1#part")
        #expect(explanation.route?.route.name == "user")
        #expect(explanation.run.captures.map { "\($0.name)=\($0.value)" } == ["id=7"])
        #expect(
            explanation.passed.map { "\($0.route.name): \($0.reason)" } == [
                "method: method is not POST or PUT", "host: host is not *.example.com",
                "path: path is not /a or /b or /c or …", "header: header X-A does not match",
                "query: query v does not match", "client: client is not 10.0.0.0/8 or 192.0.2.7/32",
                "cookie: cookie session does not match", "scheme: scheme is not https",
                "expression: path is not /x or ~\\.php$", "not: the request meets not[1]",
                "any: the request meets no member of any", "endless: query row does not match",
                "elsewhere: does not serve listener web",
                "out: passthrough never matches on a reverse listener",
            ])
        #expect(explanation.asked == ["GET /users/7?v=1 HTTP/1.1", "Host: 127.0.0.1:8080"])
    }

    @Test(arguments: [
        ("http://127.0.0.1:8080/", "web"), ("http://example.com:8081/", "other"), ("http://192.0.2.9:8081/", "other"),
        ("http://example.com/", "web"), ("/", "web"), ("http://127.0.0.1:8888/", "web"),
    ])
    func `the listener is the one that the URL suggests`(url: String, name: String) throws {
        #expect(try explain(.get, url).listener.name == name)
    }

    @Test func `CONNECT comes to a forward listener`() throws {
        let explanation = try explain(.connect, "example.org:443")
        #expect(explanation.listener.name == "proxy")
        #expect(explanation.asked.first == "CONNECT example.org:443 HTTP/1.1")
        #expect(explanation.route?.route.name == "out")
        #expect(explanation.passed.map(\.part) == [String](repeating: "host", count: 12) + ["listener"])
        #expect(try explain(.connect, "https://example.org/x").asked.first == "CONNECT example.org:443 HTTP/1.1")
    }

    @Test func `a listener can be named, and one that is not there is told`() throws {
        #expect(try explain(.get, "http://a.test/", listener: "proxy").asked[0] == "GET http://a.test/ HTTP/1.1")
        #expect(try explain(.get, "/", listener: "local").asked[1] == "Host: localhost")
        let error = #expect(throws: Explanation.NoListener.self) { try explain(.get, "/", listener: "wbe") }
        #expect(error?.description == "there is no listener \"wbe\"; did you mean \"web\"?")
    }

    @Test func `a pattern that cannot be decided ends the search`() throws {
        let explanation = try explain(.get, "/?row=\(String(repeating: "a", count: 60))!")
        #expect(explanation.route == nil)
        #expect(explanation.passed.last?.part == "pattern")
        #expect(explanation.passed.last?.route.name == "endless")
        #expect(explanation.run.response?.status == .internalServerError)
    }

    @Test func `without a route all are passed, and the listener's chain runs alone`() throws {
        let explanation = try explain(.get, "/nothing")
        #expect(explanation.route == nil)
        #expect(explanation.passed.count == 15)
        #expect(explanation.run.response?.status == .notFound)
    }

    // MARK: Examples

    /// Its certificate is made by the reader.
    @Test(arguments: Repository.configurations.filter { !["conf/tls.yaml", "conf/agent.yaml"].contains($0) })
    func `no request of an example fails in a dry run`(path: String) throws {
        let configuration = try Self.configuration(path)
        var asked = 0
        for listener in configuration.listeners {
            for route in listener.routes.map(\.route) {
                let question = Self.question(route, listener)
                let explanation = try Explanation(question, in: configuration)
                asked += 1
                let what = "\(listener.name), \(question.method) \(question.url)"
                for (entry, step) in zip(explanation.chain.entries.middlewares, explanation.run.middlewares) {
                    if case .failed(let reason) = step.decision { Issue.record("\(what): \(entry.label): \(reason)") }
                }
                if let response = explanation.run.response {
                    #expect(response.status.code < 500, "\(what): \(explanation.run.responder.name) answers")
                }
            }
        }
        #expect(asked > 0)
    }

    @Test(arguments: [("/orders/1", "orders"), ("/billing/1", "billing")])
    func `a ware that would wait for a token is named, and the request goes on`(path: String, name: String) throws {
        let explanation = try Explanation(.init(.get, path), in: try Self.configuration("conf/tokens.yaml"))
        #expect(explanation.chain.entries.middlewares.map(\.label) == ["tokenRefresh", "tokenInject"])
        for step in explanation.run.middlewares {
            guard case .waits = step.decision else {
                Issue.record("\(step.decision)")
                continue
            }
        }
        #expect(explanation.run.response == nil)
        #expect(explanation.run.destination == "\(name).example.com:443")
        #expect(explanation.run.head.contains("Authorization: Bearer <token of \(name)-oauth>"))
    }

    private static func configuration(_ path: String) throws -> GatewayConfiguration {
        let result = ConfigurationReader(wares: BuiltinWares.all, stores: GatewayStores.all, environment: [:])
            .read(path: Repository.root.appendingPathComponent(path).path)
        return try #require(result.configuration)
    }

    /// A request that the route is meant for, as far as its patterns are plain.
    private static func question(_ route: RouteDefinition, _ listener: ListenerDefinition) -> Explanation.Question {
        func sample(_ pattern: String) -> String {
            guard !pattern.hasPrefix("~") else { return "/" }
            return pattern.replacing("**", with: "a").replacing("*", with: "a").replacing(/\{[^}]*\}/, with: "7")
        }
        let match = route.match
        let path = match.paths.first.map { sample($0.source) } ?? "/"
        var question = Explanation.Question(match.methods.first ?? .get, path)
        if listener.mode == .forward {
            question.url = "http://\(match.hosts.first.map { sample($0.source) } ?? "example.com")\(path)"
        } else if let host = match.hosts.first {
            question.fields = [("Host", sample(host.source))]
        }
        question.listener = listener.name
        return question
    }
}
