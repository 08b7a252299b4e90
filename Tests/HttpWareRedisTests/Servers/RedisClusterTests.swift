import HttpWareTesting
import Testing

@testable import HttpWare
@testable import HttpWareRedis

/// With a real cluster, and with false nodes.
@Suite(.timeLimit(.minutes(10))) struct RedisClusterTests {
    private let text = { (text: String) in RedisReply.bytes(Array(text.utf8)) }

    @Test func `each key goes to the master of its slot, and scripts are known to each of them`() async throws {
        let cluster = try await TestCluster()
        let client = RedisClient(try cluster.definition())
        let script = RedisScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")
        for number in 0..<60 {
            let reply = try await client.run(script, keys: [RedisArgument("key\(number)")], [2])
            #expect(reply == .integer(2))
        }
        var sizes: [Int64] = []
        for node in cluster.nodes { sizes.append(try await cluster.ask(node, ["DBSIZE"]).integer ?? 0) }
        #expect(sizes.reduce(0, +) == 60)
        #expect(sizes.allSatisfy { $0 > 5 }, "\(sizes)")
        #expect(client.status.nodes == RedisStatus.Nodes(count: 3, up: 3))
        #expect(client.status.fault == nil)
        client.close()
    }

    @Test func `a slot moves while its keys are used`() async throws {
        let cluster = try await TestCluster()
        let client = RedisClient(try cluster.definition())
        let (owner, other) = cluster.nodes(of: "t")
        let slot = RedisArgument(Int(RedisSlot.of(Array("t".utf8))))
        #expect(try await client.command(["SET", "a{t}", 1]).isText("OK"))
        try await cluster.ask(other, ["CLUSTER", "SETSLOT", slot, "IMPORTING", cluster.id(owner)])
        try await cluster.ask(owner, ["CLUSTER", "SETSLOT", slot, "MIGRATING", cluster.id(other)])
        #expect(try await client.command(["GET", "a{t}"]) == text("1"), "it is still where it was")
        #expect(try await client.command(["SET", "b{t}", 2]).isText("OK"), "a new key is made where the slot goes")
        #expect(try await client.command(["GET", "b{t}"]) == text("2"))
        let (reply, isKept) = try await client.write(["SET", "b{t}", 3])
        #expect(reply.isText("OK") && isKept)
        let script = RedisScript("return redis.call('INCR', KEYS[1])")
        #expect(try await client.run(script, keys: ["b{t}"], []) == .integer(4))
        // One key is here and one is there: not before both are in one place.
        await #expect(throws: RedisFailure.self) {
            try await client.command(["MGET", "a{t}", "b{t}"], within: .milliseconds(200))
        }
        let port = RedisArgument(Int(other.port))
        try await cluster.ask(owner, ["MIGRATE", "127.0.0.1", port, "a{t}", 0, 1000])
        #expect(try await client.command(["MGET", "a{t}", "b{t}"]) == .array([text("1"), text("4")]))
        for node in [other, owner] {
            try await cluster.ask(node, ["CLUSTER", "SETSLOT", slot, "NODE", cluster.id(other)])
        }
        #expect(try await client.command(["GET", "a{t}"]) == text("1"))
        #expect(client.status.fault == nil)
        client.close()
    }

    @Test func `while a master is away the keys of the others are answered`() async throws {
        let cluster = try await TestCluster()
        for node in cluster.nodes {
            try await cluster.ask(node, ["CONFIG", "SET", "cluster-require-full-coverage", "no"])
        }
        let client = RedisClient(try cluster.definition(3))
        #expect(try await client.command(["SET", "t", 1]).isText("OK"))
        let (owner, other) = cluster.nodes(of: "t")
        let keys = (0..<200).map { "key\($0)" }
        let otherKey = RedisArgument(try #require(keys.first { cluster.nodes(of: $0).owner.port == other.port }))
        owner.kill()
        await #expect(throws: RedisFailure.self) { try await client.command(["GET", "t"]) }
        for _ in 0..<50 { #expect(try await client.command(["INCR", otherKey]).integer != nil) }
        try await eventually { client.status.fault != nil && client.status.nodes?.up ?? 3 < 3 }
        client.close()
    }

    @Test func `a node that hangs costs its own keys their timeout, and no others`() async throws {
        let cluster = try await TestCluster()
        var definition = try cluster.definition(3)
        definition.timeout = .milliseconds(200)
        let client = RedisClient(definition)
        try await eventually { (try? await client.command(["SET", "t", 1])) != nil }
        let (owner, other) = cluster.nodes(of: "t")
        for node in cluster.nodes where node.port != owner.port {
            try await cluster.ask(node, ["CONFIG", "SET", "cluster-require-full-coverage", "no"])
        }
        let keys = (0..<200).map { "key\($0)" }
        let otherKey = RedisArgument(try #require(keys.first { cluster.nodes(of: $0).owner.port == other.port }))
        try await eventually { (try? await client.command(["SET", otherKey, 1])) != nil }
        owner.pause()
        await #expect(throws: RedisFailure.self) { try await client.command(["GET", "t"]) }
        #expect(try await client.command(["INCR", otherKey]).integer == 2)
        owner.resume()
        try await eventually { (try? await client.command(["GET", "t"])) == text("1") }
        client.close()
    }

    @Test func `nodes that send a command from one to the other are asked a few times only`() async throws {
        let ports = ThreadLock<[UInt16]>([])
        let asked = ThreadLock(0)
        @Sendable func answer(_ bytes: [UInt8], _ other: Int) -> [UInt8] {
            let words = String(decoding: bytes, as: UTF8.self)
            let ports = ports.withLock { $0 }
            if words.contains("PING") { return Array("+PONG\r\n".utf8) }
            if words.contains("SLOTS") {
                return Array("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:\(ports[0])\r\n".utf8)
            }
            asked.withLock { $0 += 1 }
            return Array("-MOVED 1 127.0.0.1:\(ports[other])\r\n".utf8)
        }
        let nodes = try [1, 0].map { other in try FalseRedis(hasPort: true) { answer($0, other) } }
        ports.withLock { $0 = nodes.map(\.port) }
        let address = try RedisAddress(optionText: "127.0.0.1:\(nodes[0].port)")
        let client = RedisClient(RedisDefinition(.nodes([address]), timeout: .seconds(5)))
        guard case .failure(let failure) = await client.commands([["GET", "a"]])[0] else {
            Issue.record("answered")
            return
        }
        #expect(failure.reason.contains("from one to the other"))
        #expect(asked.withLock { $0 } == 6)
        client.close()
    }

    @Test(arguments: [
        "-ERR This instance has cluster support disabled\r\n", "*0\r\n", "*1\r\n*0\r\n", "+OK\r\n", "*2147483647\r\n",
        "",
        "*1\r\n*3\r\n:-9223372036854775808\r\n:9223372036854775807\r\n*2\r\n+a\r\n:1\r\n",
    ])
    func `a node without a valid map is said, and not asked in a storm`(map: String) async throws {
        let asked = ThreadLock(0)
        let node = try FalseRedis(hasPort: true) { bytes in
            if String(decoding: bytes, as: UTF8.self).contains("PING") { return Array("+PONG\r\n".utf8) }
            asked.withLock { $0 += 1 }
            return Array(map.utf8)
        }
        let address = try RedisAddress(optionText: "127.0.0.1:\(node.port)")
        let client = RedisClient(RedisDefinition(.nodes([address]), timeout: .milliseconds(40)))
        let clock = ContinuousClock()
        let start = clock.now
        while clock.now - start < .seconds(1) {
            guard case .failure = await client.commands([["GET", "a"]])[0] else {
                Issue.record("answered")
                return
            }
        }
        #expect(client.status.fault != nil)
        let most = (clock.now - start) / .milliseconds(100) + 2
        #expect(Double(asked.withLock { $0 }) <= most)
        client.close()
    }

    @Test func `messages come from every master, and from all that there are`() async throws {
        let cluster = try await TestCluster()
        let client = RedisClient(try cluster.definition())
        let events = ThreadLock<[String]>([])
        client.subscribe(to: "news") { event in
            switch event {
            case .began: events.withLock { $0.append("began") }
            case .ended: events.withLock { $0.append("ended") }
            case .message(let bytes): events.withLock { $0.append(String(decoding: bytes, as: UTF8.self)) }
            case .answered: return
            }
        }
        try await eventually { events.withLock { $0 } == ["began"] }
        #expect(client.status.isSubscribed)
        for (index, node) in cluster.nodes.enumerated() {
            try await cluster.ask(node, ["PUBLISH", "news", RedisArgument("n\(index)")])
        }
        try await eventually { events.withLock { events in (0..<3).allSatisfy { events.contains("n\($0)") } } }
        cluster.nodes[1].kill()
        try await eventually { events.withLock { $0.last } == "ended" }
        #expect(!client.status.isSubscribed)
        try cluster.nodes[1].start()
        client.close()
    }
}
