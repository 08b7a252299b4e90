import Testing

@testable import HttpWare
@testable import HttpWareRedis

/// How the client of Redis looks names up.
@Suite(.timeLimit(.minutes(5))) struct RedisNamesTests {
    @Test func `the longest use of an answer is that of the configuration`() async throws {
        let home = try RedisHome()
        home.refreshNames(longestUse: .seconds(7))
        let found = ThreadLock<Duration?>(nil)
        await home.loop.submit { found.withLock { $0 = home.longestUse } }
        #expect(found.withLock { $0 } == .seconds(7))
        home.close()
    }
}
