import HttpWare
import HttpWareClient
import HttpWareTesting
import Testing

/// Connections that authenticate their client, in the pool of a manager: NTLM and Negotiate. RFC 4559.
@Suite struct OwnedConnectionsOfClientTests {
    private static func answer(_ status: Int, _ lines: String...) -> ScriptedOrigin.Step {
        .send((["HTTP/1.1 \(status) X", "Content-Length: 0"] + lines).joined(separator: "\r\n") + "\r\n\r\n")
    }

    private func status(_ manager: HttpManager, _ path: RoutePath, _ credentials: String? = nil) async -> Int {
        let headers: HeaderFields = credentials.map { ["Authorization": $0] } ?? [:]
        do {
            _ = try await manager.send(Request<RawContent>(.get, path, headers: headers))
            return 200
        } catch {
            return (error as? HttpError)?.status?.code ?? 0
        }
    }

    @Test(arguments: ["NTLM one", "Negotiate YII=", "negotiate YII=", "Kerberos x", "Nego2 x"])
    func `a connection that carried such credentials is not lent to a call without them`(credentials: String)
        async throws
    {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /mine ", lines: ["Authorization: \(credentials)"]), Self.answer(200),
            .accept, .expectHead(startingWith: "GET /other ", without: ["Authorization"]), Self.answer(200),
            .expectHead(startingWith: "GET /shared "), Self.answer(200),
        ]) { origin in
            let manager = HttpManager(service: try .local(origin.port))
            #expect(await status(manager, "/mine", credentials) == 200)
            #expect(await status(manager, "/other") == 200)
            #expect(await status(manager, "/shared") == 200)
        }
    }

    @Test(arguments: ["NTLM", "negotiate", "Basic realm=\"a, b\", NTLM", "Digest x=y,NEGOTIATE"])
    func `a connection whose response asks to authenticate it is not lent to another call`(challenge: String)
        async throws
    {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /mine "), Self.answer(401, "WWW-Authenticate: \(challenge)"),
            .accept, .expectHead(startingWith: "GET /other "), Self.answer(200),
        ]) { origin in
            let manager = HttpManager(service: try .local(origin.port))
            #expect(await status(manager, "/mine") == 401)
            #expect(await status(manager, "/other") == 200)
        }
    }

    @Test func `other credentials leave connections shared`() async throws {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /mine "), Self.answer(401, "WWW-Authenticate: Basic realm=\"NTLM\""),
            .expectHead(startingWith: "GET /mine "), Self.answer(200), .expectHead(startingWith: "GET /other "),
            Self.answer(200),
        ]) { origin in
            let manager = HttpManager(service: try .local(origin.port))
            #expect(await status(manager, "/mine") == 401)
            #expect(await status(manager, "/mine", "Basic TlRMTQ==") == 200)
            #expect(await status(manager, "/other") == 200)
        }
    }
}
