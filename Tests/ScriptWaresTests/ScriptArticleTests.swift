import Foundation
import HttpWare
import HttpWareTesting
import Testing

@testable import ScriptWares

/// The examples of the article about scripts do what their headings say.
@Suite struct ScriptArticleTests {
    /// The script under a heading of the article.
    private func script(_ heading: String) throws -> String {
        let root = URL(filePath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
            .deletingLastPathComponent()
            .deletingLastPathComponent()
        let article = try String(
            contentsOf: root.appending(path: "Sources/HttpGateway/HttpGateway.docc/Scripts.md"), encoding: .utf8)
        let section = try #require(article.components(separatedBy: "\n### ").first { $0.hasPrefix("\(heading)\n") })
        return try #require(section.components(separatedBy: "```lua\n").last?.components(separatedBy: "```").first)
    }

    private func chain(
        _ heading: String, _ options: ConfigNode = [:], setting: TestExchange.Setting = TestExchange.Setting(),
        behind wares: [any Ware] = []
    ) throws -> TestExchange {
        let source = ConfigNode(.scalar(try script(heading), isQuoted: true))
        let ware = try TestExchange.make(Script.self, ["source": source, "options": options])
        return try TestExchange(wares + [ware], setting: setting)
    }

    private func get(_ url: String, _ fields: [(FieldName, String)] = []) throws -> HttpRequest {
        var request = try HttpRequest(.get, url)
        for (name, value) in fields { try request.fields.append(name, value) }
        return request
    }

    private func response(_ status: HttpStatus, _ fields: [(FieldName, String)] = []) throws -> HttpResponse {
        var response = HttpResponse(status, content: .text("origin"))
        for (name, value) in fields { try response.fields.append(name, value) }
        return response
    }

    /// Authenticates each request, with one claim.
    private struct Login: Middleware {
        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
            exchange.authenticated(
                as: Principal(method: "test", name: "al", claims: [(name: "department", text: "sales")]))
            return .pass
        }
    }

    @Test func `a claim becomes a field, and the client's own field does not pass`() async throws {
        let known = try chain("A claim as a field", behind: [Login()])
        _ = try await known.send(try get("http://a.example/", [("X-Department", "board")]))
        #expect(known.upstream.requests.first?.fields["X-Department"] == "sales")
        let unknown = try chain("A claim as a field")
        _ = try await unknown.send(try get("http://a.example/", [("X-Department", "board")]))
        #expect(unknown.upstream.requests.first?.fields["X-Department"] == nil)
    }

    @Test func `a service decides about API keys`() async throws {
        let origin = try ScriptedOrigin([
            .expectHead(startingWith: "GET /keys/2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683"),
            .send("HTTP/1.1 200 OK\r\nContent-Length: 19\r\n\r\n{\"customer\":\"acme\"}"),
            .expectHead(startingWith: "GET /keys/"), .send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
        ])
        var setting = TestExchange.Setting()
        setting.services = ["keys": origin.port]
        let exchange = try chain("API keys that a service knows", setting: setting)
        #expect(try await exchange.send(try get("http://a.example/")).status == .unauthorized)
        #expect(try await exchange.send(try get("http://a.example/", [("X-Api-Key", "key")])).status == .ok)
        #expect(exchange.upstream.requests.first?.fields["X-Customer"] == "acme")
        #expect(exchange.upstream.requests.first?.fields["X-Api-Key"] == nil)
        #expect(try await exchange.send(try get("http://a.example/", [("X-Api-Key", "other")])).status == .forbidden)
        try await origin.verify()
    }

    @Test func `a cookie keeps a client with its variant`() async throws {
        let exchange = try chain("Two variants by a cookie", ["share": 100])
        let first = try await exchange.send(try get("http://a.example/"))
        #expect(first.fields[.setCookie] == "variant=b; Path=/; Max-Age=2592000")
        let second = try await exchange.send(try get("http://a.example/", [(.cookie, "variant=a")]))
        #expect(second.fields[.setCookie] == nil)
        #expect(exchange.upstream.requests.map { $0.fields["X-Variant"] } == ["b", "a"])
    }

    @Test func `cookies lose their domain and become secure`() async throws {
        let exchange = try chain("Cookies with other attributes")
        exchange.upstream.respond(
            with: try response(.ok, [(.setCookie, "a=1; Domain=x.example; Path=/"), (.setCookie, "b=2; Secure")]))
        let answer = try await exchange.send(try get("http://a.example/"))
        #expect(answer.fields.values(of: .setCookie) == ["a=1; Path=/; Secure", "b=2; Secure"])
    }

    @Test func `content with a wrong signature is refused`() async throws {
        let exchange = try chain("A signature of the content", ["secret": "key"])
        var request = try HttpRequest(
            .post, "http://a.example/", content: .text("The quick brown fox jumps over the lazy dog"))
        #expect(try await exchange.send(request).status == .forbidden)
        try request.fields.append(
            "X-Hub-Signature-256", "sha256=f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8")
        #expect(try await exchange.send(request).status == .ok)
        request.content = .text("another")
        #expect(try await exchange.send(request).status == .forbidden)
    }

    @Test func `the host names the tenant`() async throws {
        let exchange = try chain("Tenants by host")
        #expect(try await exchange.send(try get("http://acme.example.com/")).status == .ok)
        #expect(exchange.upstream.requests.first?.fields["X-Tenant"] == "acme")
        #expect(try await exchange.send(try get("http://acme.evil.com/")).status == .notFound)
    }

    @Test func `a map redirects`() async throws {
        let exchange = try chain("Redirects from a map")
        let moved = try await exchange.send(try get("http://a.example/about-us"))
        #expect(moved.status == .movedPermanently)
        #expect(moved.fields[.location] == "/company")
        #expect(try await exchange.send(try get("http://a.example/other")).status == .ok)
    }

    @Test func `a failure of the origin server gets other content`() async throws {
        let exchange = try chain("Content by status")
        exchange.upstream.respond(with: try response(.badGateway))
        exchange.upstream.respond(with: try response(.ok))
        let failed = try await exchange.send(try get("http://a.example/"))
        #expect(failed.status == .badGateway)
        #expect(failed.fields[.contentType] == "application/json")
        #expect(String(decoding: failed.content.bytes ?? [], as: UTF8.self).contains("the service failed"))
        #expect(try await exchange.send(try get("http://a.example/")).content.bytes == Array("origin".utf8))
    }

    @Test(arguments: [
        (#"{"operationName":"Me","query":"…"}"#, 200), (#"{"operationName":"Drop"}"#, 403), ("{", 403), ("[]", 403),
        ("1", 403), ("", 403),
    ])
    func `only listed GraphQL operations pass`(content: String, status: Int) async throws {
        let exchange = try chain("An allow-list of GraphQL operations")
        let request = try HttpRequest(
            .post, "http://a.example/graphql", content: content.isEmpty ? .none : .text(content))
        #expect(try await exchange.send(request).status.code == status)
    }

    @Test(arguments: [
        ("?b=2&utm_source=x&a=1", "a=1&b=2"), ("?fbclid=x", nil), ("", nil), ("?a=1&a=0", "a=0&a=1"),
    ])
    func `URLs get one form for a cache`(query: String, expected: String?) async throws {
        let exchange = try chain("One form of a URL for a cache")
        _ = try await exchange.send(try get("http://a.example/p\(query)"))
        #expect(exchange.upstream.requests.first?.query == expected)
    }
}
