import Foundation
import HttpWareTesting
import Testing

@testable import HttpWare
@testable import HttpWareRedis

/// A server of Redis whose name gets another address.
@Suite(.timeLimit(.minutes(5))) struct RedisNamesTests {
    /// The system's hosts file of one test.
    private final class HostsFile: Sendable {
        let path = FileManager.default.temporaryDirectory.appending(path: "hosts-\(UUID())").path

        func write(_ address: String) throws {
            try "\(address) redis.test\n".write(toFile: path, atomically: true, encoding: .utf8)
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }
    }

    private func client(of redis: TestRedis, _ hosts: HostsFile) throws -> RedisClient {
        var names = Resolver.Options()
        names.hostsFile = hosts.path
        let url = try RedisUrl(optionText: "redis://redis.test:\(redis.port)")
        return RedisClient(RedisDefinition(url: url), names: names)
    }

    @Test func `after a reload, commands from outside of the loops go to the new address of a name`() async throws {
        let redis = try TestRedis(replicaOf: nil)
        let hosts = HostsFile()
        // Nothing listens there.
        try hosts.write("127.0.0.9")
        let client = try client(of: redis, hosts)
        await #expect(throws: RedisFailure.self) { try await client.command(["PING"]) }
        try hosts.write("127.0.0.1")
        client.refreshNames(longestUse: .seconds(7))
        var reply: RedisReply?
        var failure: (any Error)?
        // After a failure, commands fail at once for a moment.
        let clock = ContinuousClock()
        let end = clock.now + .seconds(30)
        while reply == nil, clock.now < end {
            do { reply = try await client.command(["PING"]) } catch { failure = error }
            if reply == nil { await Task.yield() }
        }
        #expect(reply == .bytes(Array("PONG".utf8)), "\(failure.map { "\($0)" } ?? "")")
        client.close()
    }

    @Test func `the longest use of an answer is that of the configuration`() async throws {
        let home = try RedisHome()
        home.refreshNames(longestUse: .seconds(7))
        let found = ThreadLock<Duration?>(nil)
        await home.loop.submit { found.withLock { $0 = home.longestUse } }
        #expect(found.withLock { $0 } == .seconds(7))
        home.close()
    }
}
