import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct LoopListenerTests {
    private let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    /// A reference that does not keep what it names.
    private struct Weak: Sendable {
        weak let plan: ExchangePlan?
    }

    @Test func `an update lets the former plan go, and requests go by the new one on the connection that is there`()
        async throws
    {
        let origin = try ScriptedOrigin([.expectHead(startingWith: "GET"), .send(ok), .expectEnd])
        let stage = try SocketStage(.empty, port: origin.port)
        let client = try stage.connect()
        await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(await client.read(until: "\r\n\r\nok").hasPrefix("HTTP/1.1 200"))
        let former = await stage.step { Weak(plan: $0.server.router.listenerPlan) }
        #expect(former.plan != nil)
        await stage.step { stage in
            let server = stage.server
            let plan = ExchangePlan(chain: .empty, service: nil, route: nil)
            server.update(
                name: "other", settings: server.settings, forward: server.forward, trustedProxies: [],
                router: SinglePlan(listenerPlan: plan))
            server.transport.retirePools(except: [])
        }
        #expect(former.plan == nil)
        await client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        #expect(String(decoding: await client.readToEnd(), as: UTF8.self).hasPrefix("HTTP/1.1 404"))
        try await origin.verify()
    }

    @Test func `connections to endpoints that stay are kept`() async throws {
        let origin = try ScriptedOrigin([
            .expectHead(startingWith: "GET"), .send(ok), .expectHead(startingWith: "GET"), .send(ok),
        ])
        let stage = try SocketStage(.empty, port: origin.port)
        let port = origin.port
        for _ in 0..<2 {
            let response = try await stage.exchange("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            #expect(response.hasPrefix("HTTP/1.1 200"))
            await stage.step { stage in
                // Another object, as a reload makes it; what it says is the same.
                stage.server.transport.retirePools(except: [Endpoint(host: "127.0.0.1", port: port)])
            }
        }
        try await origin.verify()
    }

    @Test func `an endpoint that comes back keeps its connections again`() async throws {
        let origin = try ScriptedOrigin([
            .expectHead(startingWith: "GET"), .send(ok), .expectEnd, .accept, .expectHead(startingWith: "GET"),
            .send(ok), .expectHead(startingWith: "GET"), .send(ok),
        ])
        let stage = try SocketStage(.empty, port: origin.port)
        let port = origin.port
        let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        #expect(try await stage.exchange(request).hasPrefix("HTTP/1.1 200"))
        await stage.step { stage in
            stage.server.transport.retirePools(except: [])
            stage.server.transport.retirePools(except: [Endpoint(host: "127.0.0.1", port: port)])
        }
        for _ in 0..<2 { #expect(try await stage.exchange(request).hasPrefix("HTTP/1.1 200")) }
        try await origin.verify()
    }
}
