import Glibc
import HttpWareTesting
import Testing

@Suite(.timeLimit(.minutes(10))) struct TestRedisTests {
    @Test func `the server has no descriptor of the test`() throws {
        var ends: [Int32] = [-1, -1]
        // As Foundation's pipes: a child process inherits them.
        try #require(pipe(&ends) == 0)
        defer { close(ends[0]) }
        let redis = try TestRedis()
        close(ends[1])
        var reader = pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)
        #expect(poll(&reader, 1, 10_000) == 1, "the pipe is at its end while \(redis.path) listens")
    }
}
