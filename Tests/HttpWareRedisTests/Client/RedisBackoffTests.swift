import Testing

@testable import HttpWare
@testable import HttpWareRedis

@Suite struct RedisBackoffTests {
    @Test func `a server is left alone for longer each time, up to a bound, and by chance`() {
        var backoff = RedisBackoff()
        let times = (0..<12).map { _ in backoff.fail(share: 1) }
        #expect(times[..<4] == [.milliseconds(100), .milliseconds(200), .milliseconds(400), .milliseconds(800)])
        #expect(times.last == RedisBackoff.longest)
        #expect(backoff.failures == 12)
        backoff.succeed()
        #expect(backoff.fail(share: 0) == .milliseconds(50))
        let chances = Set(
            (0..<20).map { _ in
                var other = RedisBackoff()
                return other.fail().nanoseconds
            })
        #expect(chances.count > 1)
        #expect(chances.allSatisfy { (50_000_000...100_000_000).contains($0) })
    }
}
