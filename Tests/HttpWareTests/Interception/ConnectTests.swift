import HttpWareTesting
import Testing

@testable import HttpWare

/// CONNECT and the proxy's own host, at a driver of a listener that intercepts tunnels.
@Suite struct ConnectTests {
    private func answer(_ stage: InterceptStage, _ head: String) throws -> String {
        let client = try stage.client()
        client.send(head + "\r\n\r\n")
        stage.turn()
        return client.readTexts().joined()
    }

    @Test func `the proxy's own host is answered with GET only, and nothing goes upstream`() throws {
        let stage = try InterceptStage()
        let page = try answer(stage, "GET http://httpware.proxy/ HTTP/1.1\r\nHost: httpware.proxy")
        #expect(page.hasPrefix("HTTP/1.1 200 ") && page.contains(stage.rules.authority.fingerprint))
        let post = try answer(
            stage, "POST http://httpware.proxy/ HTTP/1.1\r\nHost: httpware.proxy\r\nContent-Length: 0")
        #expect(post.hasPrefix("HTTP/1.1 405 "))
        #expect(stage.origin.streams.isEmpty)
    }

    @Test func `a CONNECT to a forbidden destination is refused before the tunnel opens`() throws {
        let stage = try InterceptStage()
        let answer = try answer(stage, "CONNECT a.test:25 HTTP/1.1\r\nHost: a.test:25")
        #expect(answer.hasPrefix("HTTP/1.1 403 ") && answer.contains("CONNECT to port 25 is not allowed"))
    }

    @Test func `a CONNECT to an excepted host passes unread`() throws {
        let stage = try InterceptStage(except: HostList([try HostPattern(optionText: "x.test")]))
        let client = try stage.client()
        client.send("CONNECT x.test:443 HTTP/1.1\r\nHost: x.test:443\r\n\r\nGET / HTTP/1.1\r\n\r\n")
        stage.turn()
        #expect(client.readTexts().joined().hasPrefix("HTTP/1.1 200 "))
        #expect(stage.origin.streams.last?.text == "GET / HTTP/1.1\r\n\r\n")
    }

    @Test func `a listener that is updated without rules intercepts no further tunnels`() throws {
        let stage = try InterceptStage()
        let server = stage.server
        #expect(server.intercept === stage.rules)
        server.update(
            name: "proxy", settings: server.settings, forward: server.forward, intercept: stage.rules,
            trustedProxies: [],
            router: server.router)
        #expect(server.intercept === stage.rules)
        server.update(
            name: "proxy", settings: server.settings, forward: server.forward, trustedProxies: [], router: server.router
        )
        #expect(server.intercept == nil)
        let client = try stage.tunnel()
        client.send("GET / HTTP/1.1\r\n\r\n")
        stage.turn()
        #expect(stage.origin.streams.last?.text == "GET / HTTP/1.1\r\n\r\n")
    }
}
