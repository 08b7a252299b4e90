import HttpWareTesting
import Testing

@testable import HttpWare
@testable import HttpWareRedis

/// With a real master, its replica and a sentinel, and with false ones.
@Suite(.timeLimit(.minutes(10))) struct RedisSentinelTests {
    private func definition(
        _ ports: [UInt16], password: String? = nil, timeout: Duration = .seconds(1)
    ) throws -> RedisDefinition {
        let addresses = try ports.map { try RedisAddress(optionText: "127.0.0.1:\($0)") }
        return RedisDefinition(
            .sentinels(addresses, master: "main"), password: password.map { Secret($0) }, timeout: timeout)
    }

    private func answer(_ client: RedisClient, _ command: [RedisArgument]) async -> RedisReply? {
        try? await client.command(command)
    }

    /// Whether the master has a replica that confirms what is written. ROLE counts one before that.
    private func hasReplica(_ master: TestRedis) async throws -> Bool {
        var definition = try master.definition
        definition.timeout = .seconds(20)
        definition.minReplicas = 1
        let client = RedisClient(definition)
        defer { client.close() }
        return try await client.write(["SET", "ready", 1]).isKept
    }

    @Test func `the replica that becomes the master is found, and what was confirmed is there`() async throws {
        let master = try TestRedis(replicaOf: nil, password: "pass")
        let replica = try TestRedis(replicaOf: master, password: "pass")
        try await eventually { (try? await hasReplica(master)) == true }
        // On a busy machine a master might be silent for a while: the sentinel must not take it for lost before the test ends it.
        let sentinel = try TestRedis.sentinel(of: master, named: "main", patience: 600_000)
        // The master tells the sentinel about the replica.
        let asker = RedisClient(try sentinel.definition)
        try await eventually { (await answer(asker, ["SENTINEL", "replicas", "main"]))?.array?.count == 1 }
        let client = RedisClient(try definition([sentinel.port], password: "pass", timeout: .seconds(20)))
        let events = ThreadLock<[String]>([])
        client.subscribe(to: "news") { event in
            switch event {
            case .began: events.withLock { $0.append("began") }
            case .ended: events.withLock { $0.append("ended") }
            case .message(let bytes): events.withLock { $0.append(String(decoding: bytes, as: UTF8.self)) }
            case .answered: return
            }
        }
        // The master has a replica, which is waited for; on a busy machine, one wait may be too short.
        try await eventually { try await client.write(["SET", "a", "kept"]).isKept }
        #expect(client.status.master == "127.0.0.1:\(master.port)")
        try await eventually { events.withLock { $0 } == ["began"] }
        master.kill()
        _ = try await asker.command(["SENTINEL", "SET", "main", "down-after-milliseconds", 500])
        asker.close()
        try await eventually { await answer(client, ["GET", "a"]) == .bytes(Array("kept".utf8)) }
        try await eventually { await answer(client, ["SET", "b", 1]) != nil }
        #expect(client.status.master == "127.0.0.1:\(replica.port)")
        try await eventually { events.withLock { $0.contains("ended") && $0.last == "began" } }
        try await eventually {
            _ = await answer(client, ["PUBLISH", "news", "one"])
            return events.withLock { $0.last } == "one"
        }
        let (_, isKeptAlone) = try await client.write(["SET", "c", 1])
        #expect(isKeptAlone, "a master without replicas has nobody to wait for")
        try await eventually { client.status.fault == nil }
        client.close()
    }

    @Test func `a write that too few replicas have is not kept`() async throws {
        let master = try TestRedis(replicaOf: nil)
        var definition = try master.definition
        // The wait for replicas is a small part of it: a busy machine gets the rest.
        definition.timeout = .seconds(20)
        definition.minReplicas = 1
        let client = RedisClient(definition)
        #expect(try await client.write(["SET", "a", 1]).isKept == false)
        let replica = try TestRedis(replicaOf: master)
        try await eventually { (try? await client.write(["SET", "a", 1]).isKept) == true }
        replica.pause()
        #expect(try await client.write(["SET", "a", 1]).isKept == false)
        replica.resume()
        client.close()
    }

    @Test func `sentinels that hang, lie or send nonsense are passed over`() async throws {
        let master = try TestRedis(replicaOf: nil)
        let replica = try TestRedis(replicaOf: master)
        func sentinel(_ answer: String?) throws -> FalseRedis {
            try FalseRedis(hasPort: true) { asked in
                let isPing = String(decoding: asked, as: UTF8.self).contains("PING")
                return isPing ? Array("+PONG\r\n".utf8) : answer.map { Array($0.utf8) }
            }
        }
        func address(_ port: UInt16) -> String { "*2\r\n$9\r\n127.0.0.1\r\n$\("\(port)".count)\r\n\(port)\r\n" }
        let others = try [
            sentinel(""), sentinel(nil), sentinel("*-1\r\n"), sentinel("*2\r\n+?\r\n+1\r\n"),
            sentinel("HTTP/1.1 400\r\n"),
            sentinel(address(replica.port)), sentinel("-ERR no\r\n"), sentinel("*2147483647\r\n"),
        ]
        let good = try sentinel(address(master.port))
        let client = RedisClient(try definition(others.map(\.port) + [good.port]))
        try await eventually { await answer(client, ["SET", "a", 1]) != nil }
        #expect(client.status.master == "127.0.0.1:\(master.port)")
        client.close()
    }

    @Test func `without any master commands fail at once, and the sentinel is not asked in a storm`() async throws {
        let asked = ThreadLock(0)
        let sentinel = try FalseRedis(hasPort: true) { bytes in
            if String(decoding: bytes, as: UTF8.self).contains("PING") { return Array("+PONG\r\n".utf8) }
            asked.withLock { $0 += 1 }
            return Array("*-1\r\n".utf8)
        }
        let client = RedisClient(try definition([sentinel.port], timeout: .seconds(20)))
        let first = await client.commands([["PING"]])[0]
        guard case .failure(let failure) = first else {
            Issue.record("answered")
            return
        }
        #expect(failure.kind == .unavailable)
        #expect(client.status.fault?.contains("knows no master") == true)
        let clock = ContinuousClock()
        let start = clock.now
        while clock.now - start < .seconds(1) { #expect(await answer(client, ["PING"]) == nil) }
        #expect(client.status.commands == 0, "nothing was sent")
        let most = (clock.now - start) / .milliseconds(100) + 2
        #expect(Double(asked.withLock { $0 }) <= most)
        client.close()
    }

    @Test func `a master that became a replica is left, whatever it was asked`() async throws {
        let master = try TestRedis(replicaOf: nil)
        let other = try TestRedis(replicaOf: nil)
        let named = ThreadLock(master.port)
        let sentinel = try FalseRedis(hasPort: true) { bytes in
            if String(decoding: bytes, as: UTF8.self).contains("PING") { return Array("+PONG\r\n".utf8) }
            let port = "\(named.withLock { $0 })"
            return Array("*2\r\n$9\r\n127.0.0.1\r\n$\(port.count)\r\n\(port)\r\n".utf8)
        }
        let client = RedisClient(try definition([sentinel.port]))
        try await eventually { await answer(client, ["SET", "a", 1]) != nil }
        // The connection stays open.
        let direct = RedisClient(try master.definition)
        #expect(await answer(direct, ["REPLICAOF", "127.0.0.1", RedisArgument(Int(other.port))])?.isText("OK") == true)
        direct.close()
        named.withLock { $0 = other.port }
        try await eventually { await answer(client, ["SET", "a", 2]) != nil }
        #expect(client.status.master == "127.0.0.1:\(other.port)")
        client.close()
    }
}
