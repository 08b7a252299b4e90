import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct Http1UpstreamConnectionTests {
    private let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    /// One connection at a time, so that a second request shows whether the first one's came back.
    private func stage(_ wares: [any Ware], _ origin: ScriptedOrigin) throws -> SocketStage {
        var limits = Endpoint.PoolLimits()
        limits.maxPerEndpoint = 1
        return try SocketStage(.of(wares), port: origin.port, limits: limits)
    }

    @Test(arguments: [
        "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 401 Unauthorized\r\nContent-Length: 4\r\n\r\nwho?",
        "HTTP/1.1 401 Unauthorized\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nwho?\r\n0\r\n\r\n",
    ])
    func `a discarded response that is short is read to its end, and its connection used again`(refusal: String)
        async throws
    {
        for piece in [Int.max, 1] {
            let origin = try ScriptedOrigin([
                .expectHead(startingWith: "GET"), .send(Array(refusal.utf8), piece: piece),
                .expectHead(startingWith: "GET"), .send(ok),
            ])
            let stage = try stage([OnBoth.replaying(.unauthorized)], origin)
            let response = try await stage.exchange("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            #expect(response.hasSuffix("\r\n\r\nok"))
            try await origin.verify()
        }
    }

    @Test func `a discarded response that is long closes its connection`() async throws {
        let origin = try ScriptedOrigin([
            .expectHead(startingWith: "GET"), .send("HTTP/1.1 401 Unauthorized\r\nContent-Length: 100000\r\n\r\nwho?"),
            .expectEnd, .accept, .expectHead(startingWith: "GET"), .send(ok),
        ])
        let stage = try stage([OnBoth.replaying(.unauthorized)], origin)
        let response = try await stage.exchange("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        #expect(response.hasSuffix("\r\n\r\nok"))
        try await origin.verify()
    }

    @Test func `a discarded response that turns out long closes its connection`() async throws {
        let chunk = "8000\r\n" + String(repeating: "x", count: 0x8000) + "\r\n"
        let origin = try ScriptedOrigin([
            .expectHead(startingWith: "GET"),
            .send("HTTP/1.1 401 Unauthorized\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + chunk + chunk),
            .expectEnd, .accept, .expectHead(startingWith: "GET"), .send(ok),
        ])
        let stage = try stage([OnBoth.replaying(.unauthorized)], origin)
        let response = try await stage.exchange("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        #expect(response.hasSuffix("\r\n\r\nok"))
        try await origin.verify()
    }

    @Test func `a response without content that a ware replaces gives its connection back`() async throws {
        let origin = try ScriptedOrigin([
            .expectHead(startingWith: "GET /1"), .send("HTTP/1.1 204 No Content\r\n\r\n"),
            .expectHead(startingWith: "GET /2"), .send("HTTP/1.1 204 No Content\r\n\r\n"),
        ])
        let replaces = OnBoth(back: { _, _ in .replace(with: HttpResponse(.ok, content: .text("mine"))) })
        let stage = try stage([replaces], origin)
        for path in ["/1", "/2"] {
            let response = try await stage.exchange("GET \(path) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            #expect(response.hasSuffix("\r\n\r\nmine"))
        }
        try await origin.verify()
    }

    @Test func `a request that must not go twice takes a new connection when the old one is dead`() async throws {
        let origin = try ScriptedOrigin([
            .expectHead(startingWith: "GET /1"), .send(ok), .close,
            .accept, .expectHead(startingWith: "POST /2"), .send(ok),
            .expectHead(startingWith: "GET /3"), .send(ok),
        ])
        let stage = try stage([], origin)
        #expect(await stage.send(.get("/1")) == 200)
        // The end of the connection is there, but the loop has not seen it.
        let status = await stage.send(.post("/2")) { stage in
            guard let pool = stage.server.transport.pools.values.first,
                let connection = pool.takeIdle(surely: false)
            else { return }
            while Socket.isQuiet(connection.socket.descriptor) {}
            pool.giveBack(connection)
        }
        #expect(status == 200)
        #expect(await stage.send(.get("/3")) == 200)
        try await origin.verify()
    }

    @Test func `an exchange that has ended leaves no connection counted`() async throws {
        let origin = try ScriptedOrigin([
            .expectHead(startingWith: "GET"), .send("HTTP/1.1 401 Unauthorized\r\nContent-Length: 4\r\n\r\n"), .close,
            .accept, .expectHead(startingWith: "GET"), .send(ok),
        ])
        let stage = try stage([OnBoth.replaying(.unauthorized)], origin)
        let response = try await stage.exchange("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        #expect(response.hasSuffix("\r\n\r\nok"))
        try await origin.verify()
    }
}
