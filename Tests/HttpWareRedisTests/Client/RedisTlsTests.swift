import HttpWareTesting
import Testing

@testable import HttpWare
@testable import HttpWareRedis

/// TLS to real servers, and to false ones. Deadlines are those of a clock that stands still, unless a test says otherwise.
@Suite(.timeLimit(.minutes(5))) struct RedisTlsTests {
    private static func identity(_ name: String) throws -> TlsIdentity {
        try #require(try CertificateKey().selfSigned(for: name))
    }

    /// A definition for a port of the loopback, whose server must have the certificate `authority`.
    private static func definition(
        _ port: UInt16, trusting authority: TlsFile?, as identity: TlsIdentity? = nil, name: String? = "redis.test",
        scheme: String = "rediss"
    ) throws -> RedisDefinition {
        var client = TlsContext.Client()
        client.authorities = authority
        client.identity = identity
        var definition = RedisDefinition(url: try RedisUrl(optionText: "\(scheme)://127.0.0.1:\(port)"))
        definition.tls = try RedisTls(client, serverName: name)
        return definition
    }

    private static func ask(
        _ definition: RedisDefinition, _ commands: [[RedisArgument]] = [["PING"]], clock: any LoopClock = ManualClock()
    ) async throws -> [Result<RedisReply, RedisFailure>] {
        let seat = try TestLoop(clock: clock)
        let client = RedisClient(definition)
        let replies = await seat.beginTask { await client.commands(commands) }.value
        client.close()
        return replies
    }

    private static func failure(
        _ definition: RedisDefinition, clock: any LoopClock = ManualClock()
    ) async throws -> String {
        let reply = try await ask(definition, clock: clock)[0]
        return switch reply {
        case .success(let reply): "it answered \(reply)"
        case .failure(let failure): failure.reason
        }
    }

    private static let isRefused = "its certificate is refused"

    @Test func `commands of any size are answered in their order over TLS`() async throws {
        let identity = try Self.identity("redis.test")
        let redis = try TestRedis(tls: identity)
        let bytes = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let many = (0..<500).map { ["INCRBY", "n", RedisArgument($0)] as [RedisArgument] }
        let replies = try await Self.ask(
            try Self.definition(redis.port, trusting: identity.chain),
            [["SET", "a", RedisArgument(bytes)], ["GET", "a"], ["INCR", "a"]] + many + [["GET", "a"]])
        #expect(replies[0] == .success(.bytes(Array("OK".utf8))))
        #expect(replies[1] == .success(.bytes(bytes)) && replies.last == .success(.bytes(bytes)))
        #expect(replies[2].problem?.kind == .refused)
        let sums = (0..<500).map { Int64($0 * ($0 + 1) / 2) }
        #expect(replies[3..<503].map { try? $0.get() } == sums.map { Optional(RedisReply.integer($0)) })
    }

    @Test func `a redis URL with tls uses TLS, and never clear text`() async throws {
        let identity = try Self.identity("redis.test")
        let redis = try TestRedis(tls: identity)
        let definition = try Self.definition(redis.port, trusting: identity.chain, scheme: "redis")
        #expect(try await Self.ask(definition)[0] == .success(.bytes(Array("PONG".utf8))))
        // The bytes that reach a server in clear text are a ClientHello.
        let first = ThreadLock<[UInt8]>([])
        let plain = try FalseRedis(hasPort: true) { bytes in
            first.withLock { $0 += bytes }
            return nil
        }
        let reason = try await Self.failure(try Self.definition(plain.port, trusting: identity.chain, scheme: "redis"))
        #expect(reason.contains("the TLS handshake failed"))
        #expect(first.withLock { $0.prefix(2) } == [22, 3])
    }

    @Test func `another authority, another name and the system's authorities refuse the certificate`() async throws {
        let (identity, stranger) = (try Self.identity("redis.test"), try Self.identity("redis.test"))
        let redis = try TestRedis(tls: identity)
        let wrong = try Self.definition(redis.port, trusting: stranger.chain)
        #expect(try await Self.failure(wrong).contains(Self.isRefused))
        let other = try Self.definition(redis.port, trusting: identity.chain, name: "other.test")
        #expect(try await Self.failure(other) == "\(Self.isRefused): hostname mismatch")
        let unnamed = try Self.definition(redis.port, trusting: identity.chain, name: nil)
        #expect(try await Self.failure(unnamed) == "\(Self.isRefused): ip address mismatch")
        let system = RedisDefinition(url: try RedisUrl(optionText: "rediss://127.0.0.1:\(redis.port)"))
        #expect(try await Self.failure(system).contains(Self.isRefused))
    }

    @Test func `a server that requires a certificate gets it, or the alert is told`() async throws {
        let (identity, own, stranger) = (
            try Self.identity("redis.test"), try Self.identity("gateway.test"), try Self.identity("gateway.test")
        )
        let redis = try TestRedis(tls: identity, clients: own.chain)
        let good = try Self.definition(redis.port, trusting: identity.chain, as: own)
        #expect(try await Self.ask(good)[0] == .success(.bytes(Array("PONG".utf8))))
        for wrong in [nil, stranger] {
            let reason = try await Self.failure(try Self.definition(redis.port, trusting: identity.chain, as: wrong))
            #expect(reason.contains("it refuses TLS"), "\(reason)")
        }
    }

    @Test func `a server in clear text, and one that is silent, are told from one that is away`() async throws {
        let identity = try Self.identity("redis.test")
        let plain = try FalseRedis(hasPort: true) { _ in Array("-ERR Protocol error\r\n".utf8) }
        let reason = try await Self.failure(try Self.definition(plain.port, trusting: identity.chain))
        #expect(reason.contains("does the port speak TLS?"), "\(reason)")
        let silent = try FalseRedis(hasPort: true) { _ in [] }
        let started = SystemLoopClock().now()
        let definition = try Self.definition(silent.port, trusting: identity.chain)
        var health = ""
        let client = RedisClient(definition)
        let seat = try TestLoop()
        try await eventually {
            _ = await seat.beginTask { await client.commands([["PING"]]) }.value
            health = client.status.fault ?? ""
            return health.contains("TLS handshake")
        }
        client.close()
        #expect(health.contains("no TLS handshake ends after 1s; does the port speak TLS?"), "\(health)")
        #expect(SystemLoopClock().now() - started < .seconds(30))
    }

    @Test(
        arguments: [
            [0x15, 3, 3, 0, 2, 2, 40], [0x16, 3, 3, 0xff, 0xff, 0, 0], [],
            [0x17, 3, 3, 0, 1, 0],
            Array(repeating: 0, count: 70_000), Array(repeating: 0x16, count: 70_000),
        ] as [[UInt8]])
    func `bytes that are not a handshake end the connection, and nothing else`(bytes: [UInt8]) async throws {
        let identity = try Self.identity("redis.test")
        let isFirst = ThreadLock(true)
        let false_ = try FalseRedis(hasPort: true) { _ in
            isFirst.withLock { first in
                defer { first = false }
                return first && !bytes.isEmpty ? bytes : nil
            }
        }
        let reason = try await Self.failure(try Self.definition(false_.port, trusting: identity.chain))
        #expect(reason.contains("TLS"), "\(reason)")
    }

    @Test func `a server that comes back is used again, by a resumed session too`() async throws {
        let identity = try Self.identity("redis.test")
        let redis = try TestRedis(tls: identity)
        var definition = try Self.definition(redis.port, trusting: identity.chain)
        definition.timeout = .seconds(5)
        let client = RedisClient(definition)
        let seat = try TestLoop()
        var answers = 0
        for round in 0..<3 {
            try await eventually { await seat.beginTask { await client.commands([["PING"]])[0].isSuccess }.value }
            answers += await seat.beginTask { await client.commands([["PING"]])[0].isSuccess ? 1 : 0 }.value
            if round < 2 {
                redis.kill()
                try redis.start()
            }
        }
        #expect(answers == 3)
        client.close()
    }

    @Test func `equal settings and equal files are equal, other content is not`() throws {
        let (one, other) = (try Self.identity("a.test"), try Self.identity("a.test"))
        #expect(try Self.definition(1, trusting: one.chain) == Self.definition(1, trusting: one.chain))
        #expect(try Self.definition(1, trusting: one.chain) != Self.definition(1, trusting: other.chain))
        #expect(try Self.definition(1, trusting: one.chain) != Self.definition(1, trusting: one.chain, name: nil))
        #expect(
            try Self.definition(1, trusting: one.chain, as: one) != Self.definition(1, trusting: one.chain, as: other))
    }
}

extension Result {
    fileprivate var isSuccess: Bool { if case .success = self { true } else { false } }
    fileprivate var problem: Failure? { if case .failure(let failure) = self { failure } else { nil } }
}
