import HttpWareTesting
import Testing

@testable import HttpWare

/// Connections that authenticate their client: between clients and an origin server that speak raw bytes.
@Suite struct OwnedConnectionsTests {
    private func head(_ path: String, _ lines: String...) -> String {
        (["GET \(path) HTTP/1.1", "Host: origin"] + lines).joined(separator: "\r\n") + "\r\n\r\n"
    }

    private static func answer(_ status: Int, _ lines: String...) -> ScriptedOrigin.Step {
        .send((["HTTP/1.1 \(status) X", "Content-Length: 0"] + lines).joined(separator: "\r\n") + "\r\n\r\n")
    }

    /// Sends a request, and returns the status of its response.
    private func ask(_ client: RawClient, _ path: String, _ line: String? = nil) async -> Int {
        await client.send(line.map { head(path, $0) } ?? head(path))
        let text = await client.read(until: "\r\n\r\n")
        return Int(text.dropFirst(9).prefix(3)) ?? 0
    }

    @Test(arguments: ["NTLM", "negotiate", "Basic realm=\"a, b\", NTLM", "Nego2", "Digest x=y,NEGOTIATE"])
    func `a connection whose response asks to authenticate it serves its client alone`(challenge: String) async throws {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /1 "), OwnedConnectionsTests.answer(401, "WWW-Authenticate: \(challenge)"),
            .expectHead(startingWith: "GET /2 "), OwnedConnectionsTests.answer(200),
            .expectHead(startingWith: "GET /3 "), OwnedConnectionsTests.answer(200),
            .accept, .expectHead(startingWith: "GET /stranger "), OwnedConnectionsTests.answer(200),
            .expectHead(startingWith: "GET /another "), OwnedConnectionsTests.answer(200),
        ]) { origin in
            let stage = try SocketStage(.empty, port: origin.port)
            let client = try stage.connect()
            #expect(await ask(client, "/1") == 401)
            #expect(await ask(client, "/2", "Authorization: NTLM three") == 200)
            #expect(await ask(client, "/3") == 200)
            #expect(await ask(try stage.connect(), "/stranger") == 200)
            // The stranger's own connection is shared as ever.
            #expect(await ask(try stage.connect(), "/another") == 200)
            let pools = await stage.step { Set($0.server.transport.pools.keys.map(\.owner)).count }
            #expect(pools == 2)
        }
    }

    @Test(arguments: [
        "Authorization: NTLM one", "authorization: negotiate YII=", "Authorization: Kerberos x",
        "AUTHORIZATION:  nEgO2 x",
    ])
    func `a connection that carried such credentials serves their client alone, whatever was answered`(line: String)
        async throws
    {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /1 "), OwnedConnectionsTests.answer(200),
            .expectHead(startingWith: "GET /2 "), OwnedConnectionsTests.answer(200),
            .accept, .expectHead(startingWith: "GET /stranger "), OwnedConnectionsTests.answer(200),
        ]) { origin in
            let stage = try SocketStage(.empty, port: origin.port)
            let client = try stage.connect()
            #expect(await ask(client, "/1", line) == 200)
            #expect(await ask(client, "/2") == 200)
            #expect(await ask(try stage.connect(), "/stranger") == 200)
        }
    }

    @Test func `a client's own connection ends with the client's`() async throws {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /1 "), OwnedConnectionsTests.answer(401, "WWW-Authenticate: Negotiate"),
            .expectEnd,
        ]) { origin in
            let stage = try SocketStage(.empty, port: origin.port)
            var client: RawClient? = try stage.connect()
            if let client { #expect(await ask(client, "/1") == 401) }
            client = nil
        }
    }

    @Test func `without a client's connection the upstream connection ends with the exchange`() async throws {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /1 "), OwnedConnectionsTests.answer(200), .expectEnd,
        ]) { origin in
            let stage = try SocketStage(.empty, port: origin.port)
            var request = try HttpRequest(.get, "http://origin/1")
            try request.fields.append("Authorization", "Negotiate YII=")
            #expect(await stage.send(request) == 200)
            #expect(await stage.step { $0.server.transport.pools.isEmpty })
        }
    }

    @Test func `a pooled connection becomes the client's, and is not lent again`() async throws {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /open "), OwnedConnectionsTests.answer(200),
            .expectHead(startingWith: "GET /1 "), OwnedConnectionsTests.answer(407, "Proxy-Authenticate: NTLM"),
            .accept, .expectHead(startingWith: "GET /open "), OwnedConnectionsTests.answer(200),
        ]) { origin in
            let stage = try SocketStage(.empty, port: origin.port)
            #expect(await ask(try stage.connect(), "/open") == 200)
            let client = try stage.connect()
            #expect(await ask(client, "/1") == 407)
            #expect(await ask(try stage.connect(), "/open") == 200)
            _ = client
        }
    }

    @Test func `other credentials leave connections shared`() async throws {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /1 "),
            OwnedConnectionsTests.answer(401, "WWW-Authenticate: Basic realm=\"NTLM\""),
            .expectHead(startingWith: "GET /2 "), OwnedConnectionsTests.answer(200),
            .expectHead(startingWith: "GET /3 "), OwnedConnectionsTests.answer(200),
        ]) { origin in
            let stage = try SocketStage(.empty, port: origin.port)
            let client = try stage.connect()
            #expect(await ask(client, "/1") == 401)
            #expect(await ask(client, "/2", "Authorization: Basic TlRMTQ==") == 200)
            #expect(await ask(try stage.connect(), "/3") == 200)
        }
    }
}

@Suite struct OwnedConnectionsRulesTests {
    private let stage: HandTurnedLoop
    private let origin: UnixOrigin
    private let endpoint: Endpoint

    init() throws {
        stage = try HandTurnedLoop()
        origin = try UnixOrigin()
        endpoint = Endpoint(unixPath: origin.path)
    }

    @discardableResult
    private func ask(_ endpoint: Endpoint) -> RecordingWaiter {
        let waiter = RecordingWaiter()
        _ = stage.transport.connect(to: endpoint, need: .usual, timeout: .seconds(5), waiter: waiter)
        return waiter
    }

    @Test func `each client has its own endpoint, which it finds again`() {
        let (one, other) = (OwnedConnections(stage.transport), OwnedConnections(stage.transport))
        #expect(one.endpoint(for: endpoint) == nil)
        let own = one.take(endpoint)
        #expect(one.take(endpoint) === own && one.endpoint(for: endpoint) === own && one.take(own) === own)
        #expect(own.key != endpoint.key && own.isOwned && own.key.limits.maxPerEndpoint == 1)
        #expect(other.endpoint(for: endpoint) == nil)
        #expect(other.take(endpoint).key != own.key)
        #expect(one.number != other.number)
    }

    @Test func `an own endpoint speaks HTTP/1.1 if the version can be chosen`() throws {
        let auto = Endpoint(host: "a.test", port: 443, tls: SystemTrust.shared.client)
        let own = OwnedConnections(stage.transport).take(auto)
        #expect(own.key.speaks == .h1 && !own.negotiates && own.agreement == .h1)
        let always = Endpoint(host: "a.test", port: 443, speaks: .h2)
        #expect(OwnedConnections(stage.transport).take(always).key.speaks == .h2)
    }

    @Test func `a client has own connections to at most sixteen endpoints`() {
        let client = OwnedConnections(stage.transport)
        let endpoints = (0..<17).map { Endpoint(host: "192.0.2.\($0 + 1)", port: 80) }
        for endpoint in endpoints { _ = client.take(endpoint) }
        #expect(client.endpoint(for: endpoints[0]) == nil)
        #expect(client.endpoint(for: endpoints[1]) != nil && client.endpoint(for: endpoints[16]) != nil)
    }

    @Test func `requests of one client take turns on its connection, and none waits longer than a second`() throws {
        let own = OwnedConnections(stage.transport).take(endpoint)
        let first = try #require(ask(own).stream as? Http1UpstreamConnection)
        let second = ask(own)
        #expect(second.answers == 0)
        stage.transport.pool(for: own).giveBack(first)
        #expect(second.stream === first)
        let third = ask(own)
        stage.advance(by: .milliseconds(999))
        #expect(third.answers == 0)
        stage.advance(by: .milliseconds(1))
        #expect(third.answers == 1 && third.stream !== first && third.error == nil)
        #expect(stage.transport.pool(for: own).count == 2)
    }

    @Test func `when the client's connection closes, its idle connection closes, and nothing is left`() throws {
        let client = OwnedConnections(stage.transport)
        let own = client.take(endpoint)
        let connection = try #require(ask(own).stream as? Http1UpstreamConnection)
        stage.transport.pool(for: own).giveBack(connection)
        client.close()
        #expect(connection.isClosed && stage.transport.pools.isEmpty)
    }

    @Test func `a connection that moves counts in its new pool`() throws {
        let connection = try #require(ask(endpoint).stream as? Http1UpstreamConnection)
        let client = OwnedConnections(stage.transport)
        let own = client.take(endpoint)
        connection.belong(to: own)
        #expect(stage.transport.pools[endpoint.key] == nil && stage.transport.pool(for: own).count == 1)
        stage.transport.pool(for: own).giveBack(connection)
        #expect(ask(own).stream === connection && ask(endpoint).stream !== connection)
    }
}
