import HttpWareTesting
import Testing

@testable import HttpWare

/// RFC 9110 §9.3.6: a tunnel through an upstream proxy.
@Suite struct ProxyHandshakeTests {
    private let stage: HandTurnedLoop

    init() throws { stage = try HandTurnedLoop() }

    /// A handshake that has begun, the proxy's end, and the results so far.
    private final class Trial {
        let far: FarEnd
        let near: SocketEvents
        private(set) var handshake: ProxyHandshake?
        private(set) var results: [Result<SocketEvents, GatewayError>] = []

        init(_ stage: HandTurnedLoop, user: String? = nil) throws {
            (near, far) = try stage.pair()
            let hop = UpstreamProxy.Hop(host: "proxy.test", port: 3128, user: user, password: "secret")
            handshake = ProxyHandshake(near, nil, hop, to: "a.test:443") { [unowned self] in results.append($0) }
            handshake?.start()
            stage.turn()
        }

        var error: GatewayError? {
            if case .failure(let error)? = results.first { return error }
            return nil
        }

        var isOpen: Bool { if case .success? = results.first { true } else { false } }
    }

    /// Expects that a handshake whose proxy sends this text ends with this error.
    private func expectFailure(after text: String, _ error: GatewayError) throws -> Trial {
        let trial = try Trial(stage)
        trial.far.send(text)
        stage.turn()
        #expect(trial.results.count == 1)
        #expect(trial.error == error)
        return trial
    }

    @Test func `the CONNECT names the destination, with credentials if there are any`() throws {
        let plain = try Trial(stage)
        #expect(plain.far.readTexts() == ["CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n"])
        let trial = try Trial(stage, user: "ada")
        #expect(
            trial.far.readTexts() == [
                "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\nProxy-Authorization: Basic YWRhOnNlY3JldA==\r\n\r\n"
            ])
    }

    @Test(arguments: [
        "HTTP/1.1 200 Connection established\r\n\r\n", "HTTP/1.0 200\r\n\r\n", "HTTP/1.1 204 x\r\nA: b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 200 OK\n\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 103 Hints\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    ])
    func `a 2xx opens the tunnel, and no byte of the host behind it is taken`(head: String) throws {
        for isPiecemeal in [false, true] {
            let trial = try Trial(stage)
            let bytes = Array((head + "from the host").utf8)
            for piece in isPiecemeal ? bytes.map({ [$0] }) : [bytes] {
                trial.far.send(piece)
                if isPiecemeal { stage.turn() }
            }
            stage.turn()
            #expect(trial.results.count == 1 && trial.isOpen)
            #expect(!trial.near.isReading && !trial.near.isWriting)
            var room = [UInt8](repeating: 0, count: 100)
            #expect(room.withUnsafeMutableBytes { Socket.read(trial.near.descriptor, into: $0) } == .bytes(13))
            #expect(String(decoding: room[..<13], as: UTF8.self) == "from the host")
        }
    }

    @Test(arguments: [
        ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", 407, false), ("HTTP/1.1 403 x\r\n\r\n", 403, false),
        ("HTTP/1.1 302 x\r\nLocation: /\r\n\r\n", 302, false), ("HTTP/1.1 502 x\r\n\r\n", 502, true),
        ("HTTP/1.1 100 x\r\n\r\nHTTP/1.1 503 x\r\n\r\n", 503, true),
    ])
    func `another status is a refusal, which another proxy may only answer better for a 5xx`(
        head: String, status: Int, mayRetry: Bool
    ) throws {
        let trial = try expectFailure(
            after: head,
            GatewayError(
                .upstream, .proxyRefused,
                "the upstream proxy refused: \(status) (CONNECT a.test:443 through proxy.test:3128)",
                mayRetry: mayRetry))
        #expect(trial.near.descriptor == -1)
    }

    @Test(arguments: [
        ("SSH-2.0-x\r\n", "answers CONNECT with something other than HTTP/1"),
        ("HTTP/2", "answers CONNECT with something other than HTTP/1"),
        ("HTTP/1.1 20 OK\r\n\r\n", "answers CONNECT with no status"),
        ("HTTP/1.1 000 x\r\n\r\n", "answers CONNECT with no status"),
        ("HTTP/1.1\r\n\r\n", "answers CONNECT with no status"),
        ("HTTP/1.1 200 OK\r\nA: " + String(repeating: "a", count: 17_000), "sends a head that is too large"),
        (String(repeating: "HTTP/1.1 100 x\r\n\r\n", count: 1000), "sends a head that is too large"),
    ])
    func `a response that is not a bounded head of HTTP-1 fails, and may be tried elsewhere`(
        text: String, fault: String
    )
        throws
    {
        _ = try expectFailure(
            after: text,
            GatewayError(.upstream, .destinationUnavailable, "the proxy proxy.test:3128 \(fault)", mayRetry: true))
    }

    @Test(arguments: ["", "HTTP/1.1 200 OK\r\n"])
    func `a proxy that closes before its head is complete is named`(text: String) throws {
        let trial = try Trial(stage)
        trial.far.send(text)
        _ = trial.far.read()
        trial.far.close()
        stage.turn()
        #expect(trial.results.count == 1)
        #expect(trial.error?.reason == "the proxy proxy.test:3128 closed the connection")
    }

    @Test func `a handshake that its owner closes says nothing`() throws {
        let trial = try Trial(stage)
        trial.handshake?.close()
        trial.handshake?.close()
        stage.turn()
        #expect(trial.results.isEmpty && trial.near.descriptor == -1)
    }

    @Test func `a handshake that has ended does not close the tunnel`() throws {
        let trial = try Trial(stage)
        trial.far.send("HTTP/1.1 200 OK\r\n\r\n")
        stage.turn()
        trial.handshake?.close()
        #expect(trial.isOpen && trial.near.descriptor >= 0)
    }
}
