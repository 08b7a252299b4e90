import Testing

@testable import HttpWare
@testable import HttpWareRedis

@Suite struct RedisUrlTests {
    private func read(_ text: String) -> RedisUrl? { try? RedisUrl(optionText: text) }

    @Test func `host, port, user and database are read`() {
        let all = read("redis://anna@cache.internal:6380/15")
        #expect(all?.place == .host("cache.internal", port: 6380))
        #expect(all?.user == "anna")
        #expect(all?.database == 15)
        let least = read("redis://localhost")
        #expect(least?.place == .host("localhost", port: 6379))
        #expect(least?.database == 0)
        #expect(least?.user == nil)
        #expect(read("redis://127.0.0.1/")?.place == .host("127.0.0.1", port: 6379))
        #expect(read("unix:/run/redis.sock")?.place == .path("/run/redis.sock"))
        #expect(read("redis://a")?.isSecure == false && read("unix:/run/redis.sock")?.isSecure == false)
        let secure = read("rediss://anna@a:7/3")
        #expect(secure?.isSecure == true && secure?.place == .host("a", port: 7) && secure?.database == 3)
        guard case .host(let address, 7)? = read("redis://[::1]:7")?.place else {
            Issue.record("no address")
            return
        }
        #expect(address.contains("::1"))
    }

    @Test(arguments: [
        "", "redis://", "localhost:6379", "http://a", "redisss://a", "rediss://", "redis://:secret@a",
        "redis://u:secret@a",
        "redis://a:0",
        "redis://a:99999", "redis://a/b", "redis://a/12345", "redis://a/1/2", "redis://a?db=1", "redis://@a",
        "unix:redis.sock",
        "redis://a b",
    ])
    func `an invalid URL is refused`(text: String) { #expect(read(text) == nil) }
}
