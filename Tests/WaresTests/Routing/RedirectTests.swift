import HttpWareTesting
import Testing
import Wares

@testable import HttpWare

@Suite struct RedirectTests {
    private func location(
        _ options: ConfigNode, _ target: String, captures: [(name: String, value: String)] = []
    ) async throws -> String? {
        var setting = TestExchange.Setting()
        setting.captures = captures
        let exchange = try TestExchange(Redirect.self, options: options, setting: setting)
        let response = try await exchange.send(.get(target))
        #expect(exchange.upstream.requests.isEmpty)
        return response.status == .badRequest ? nil : response.fields[.location]
    }

    @Test func `a redirection is 308 and keeps path and query - RFC 9110 §15.4.9`() async throws {
        let exchange = try TestExchange(Redirect.self, options: ["to": "https://www.example.com{request.path}"])
        let response = try await exchange.send(.get("/a?b=1"))
        #expect(response.status == .permanentRedirect)
        #expect(response.fields[.location] == "https://www.example.com/a?b=1")
        #expect(response.content.isEmpty)
    }

    @Test(arguments: [
        ("/new", "/old?a=1", "/new?a=1"), ("/new?x=1", "/old?a=1", "/new?x=1&a=1"),
        ("/new#top", "/old?a=1", "/new?a=1#top"),
        ("/new{request.path}", "/old", "/new/old"), ("http://h.example", "/old?a", "http://h.example?a"),
        ("https://{request.host}/x", "/old", "https://example.test/x"),
    ])
    func `to is a URI or a path`(to: String, target: String, expected: String) async throws {
        #expect(try await location(["to": ConfigNode(.scalar(to, isQuoted: true))], target) == expected)
    }

    @Test func `without keepQuery the query is dropped`() async throws {
        #expect(try await location(["to": "/new", "keepQuery": "false"], "/old?a=1") == "/new")
    }

    @Test(arguments: [301, 302, 303, 307, 308])
    func `the status may be any redirection`(code: Int) async throws {
        let exchange = try TestExchange(Redirect.self, options: ["to": "/", "status": "\(code)"])
        #expect(try await exchange.send(.get("/a")).status.code == code)
    }

    @Test func `scheme alone keeps host and path, and lets requests pass that came with it`() async throws {
        #expect(try await location(["scheme": "https"], "/a//b?c=1") == "https://example.test/a//b?c=1")
        let exchange = try TestExchange(Redirect.self, options: ["scheme": "http"])
        #expect(try await exchange.send(.get("/a")).status == .ok)
        #expect(exchange.upstream.requests.count == 1)
    }

    @Test(
        arguments: [
            (["port": 8443], "http://example.test:8443/a?b"),
            (["scheme": "https", "port": 8443], "https://example.test:8443/a?b"),
            (["scheme": "https", "port": 443], "https://example.test/a?b"),
            (["to": "/x", "port": 81], "http://example.test:81/x?b"),
        ] as [(ConfigNode, String)])
    func `port is that of the target`(options: ConfigNode, expected: String) async throws {
        #expect(try await location(options, "/a?b") == expected)
    }

    @Test(arguments: [["port": 80], ["scheme": "http", "port": 80]] as [ConfigNode])
    func `a request that came with scheme and port passes`(options: ConfigNode) async throws {
        let exchange = try TestExchange(Redirect.self, options: options)
        #expect(try await exchange.send(.get("/a")).status == .ok)
    }

    @Test(arguments: [["port": 0], ["port": 65536], ["to": "https://a.test/", "port": 81]] as [ConfigNode])
    func `a port that cannot be meant is refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(Redirect.self, options) }
    }

    @Test(arguments: [
        ("{request.path}", "//evil.example/x"), ("{request.path}", "//evil.example"), ("/{path.rest}", "/x"),
        ("/{path.slashed}", "/x"), ("/{path.back}", "/x"), ("{request.path}", "/\\evil.example"),
        ("{request.path}", "///\\/evil.example"),
    ])
    func `no request chooses where the client is sent`(to: String, target: String) async throws {
        let captures = [
            (name: "rest", value: "/evil.example"), (name: "slashed", value: "//evil.example"),
            (name: "back", value: "\\evil.example"),
        ]
        let location = try #require(
            try await location(["to": ConfigNode(.scalar(to, isQuoted: true))], target, captures: captures))
        #expect(location.hasPrefix("/evil.example"))
    }

    @Test func `a path of two slashes stays one behind a fixed host`() async throws {
        let target = "//evil.example"
        #expect(
            try await location(["to": "https://www.example.com{request.path}"], target)
                == "https://www.example.com//evil.example")
        #expect(try await location(["scheme": "https"], target) == "https://example.test/evil.example")
    }

    @Test(arguments: ["a\r\nSet-Cookie: x=1", "a b", "a\u{0}"])
    func `a placeholder that brings what no URI may hold refuses the request`(value: String) async throws {
        #expect(try await location(["to": "/{path.x}"], "/", captures: [("x", value)]) == nil)
    }

    @Test(
        arguments: [
            [:], ["to": "www.example.com"], ["to": "{request.query.u}"], ["to": "https://{request.query.h}/"],
            ["to": "https://a.example{request.query.x}"], ["to": "https://{path.tenant}.example.com/"],
            ["to": "https:///x"], ["to": "javascript:alert(1)"], ["to": "/", "status": 200],
            ["to": "/", "status": 304],
            ["scheme": "ftp"],
        ] as [ConfigNode])
    func `options that cannot be meant are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(Redirect.self, options) }
    }
}
