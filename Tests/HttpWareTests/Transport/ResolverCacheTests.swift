import Testing

@testable import HttpWare

@Suite struct ResolverCacheTests {
    private let one = ResolverCache.Answer.success([IPAddress(ipv4: 0xc000_0201)])
    private let other = ResolverCache.Answer.success([IPAddress(ipv4: 0xc000_0202)])

    private func at(_ seconds: Int64) -> LoopInstant { LoopInstant(nanoseconds: seconds * 1_000_000_000) }

    @Test func `an answer is given until it expires, and forgotten then`() {
        var cache = ResolverCache(capacity: 4)
        cache.store(one, for: "a.test", until: at(10), at: at(0))
        #expect(cache.answer(for: "a.test", at: at(9)) == one)
        #expect(cache.expiry(of: "a.test") == at(10))
        #expect(cache.answer(for: "a.test", at: at(10)) == nil)
        #expect(cache.count == 0)
    }

    @Test func `a failure is remembered as addresses are`() {
        var cache = ResolverCache(capacity: 4)
        cache.store(.failure(.notFound), for: "a.test", until: at(10), at: at(0))
        #expect(cache.answer(for: "a.test", at: at(9)) == .failure(.notFound))
        #expect(cache.answer(for: "b.test", at: at(9)) == nil)
    }

    @Test func `addresses that are kept are stale between their expiry and the end of that time`() {
        var cache = ResolverCache(capacity: 4)
        cache.store(one, for: "a.test", until: at(10), keeping: .seconds(20), at: at(0))
        #expect(!cache.hasStale("a.test", at: at(9)))
        #expect(cache.hasStale("a.test", at: at(10)))
        #expect(cache.answer(for: "a.test", at: at(10)) == nil)
        #expect(cache.hasStale("a.test", at: at(29)))
        #expect(!cache.hasStale("a.test", at: at(30)))
        #expect(cache.renew("a.test", until: at(40), at: at(30)) == nil)
    }

    @Test func `stale addresses that are renewed are given again until then`() {
        var cache = ResolverCache(capacity: 4)
        cache.store(one, for: "a.test", until: at(10), keeping: .seconds(20), at: at(0))
        #expect(cache.renew("a.test", until: at(15), at: at(12)) == one)
        #expect(cache.answer(for: "a.test", at: at(14)) == one)
        #expect(cache.answer(for: "a.test", at: at(15)) == nil)
        #expect(cache.hasStale("a.test", at: at(15)))
    }

    @Test func `renewing never shortens the life of an answer`() {
        var cache = ResolverCache(capacity: 4)
        cache.store(one, for: "a.test", until: at(10), at: at(0))
        #expect(cache.renew("a.test", until: at(5), at: at(1)) == one)
        #expect(cache.expiry(of: "a.test") == at(10))
    }

    @Test func `addresses in doubt expire at once, or when the pause since the last lookup ends`() {
        var cache = ResolverCache(capacity: 4)
        func isExpired(_ name: String, at seconds: Int64) -> Bool {
            cache.doubt(name, pause: .seconds(2), at: at(seconds))
        }
        cache.store(one, for: "a.test", until: at(10), keeping: .seconds(20), at: at(0))
        #expect(!isExpired("a.test", at: 1))
        #expect(cache.answer(for: "a.test", at: at(1)) == one)
        #expect(cache.answer(for: "a.test", at: at(2)) == nil)
        #expect(isExpired("a.test", at: 5))
        #expect(cache.hasStale("a.test", at: at(5)))
        // A lookup that failed counts.
        #expect(cache.renew("a.test", until: at(12), at: at(6)) == one)
        #expect(!isExpired("a.test", at: 7))
        #expect(isExpired("b.test", at: 7))
    }

    @Test func `when all answers expire their addresses are still a last resort`() {
        var cache = ResolverCache(capacity: 4)
        cache.store(one, for: "a.test", until: at(10), keeping: .seconds(20), at: at(0))
        cache.store(.failure(.notFound), for: "b.test", until: at(10), at: at(0))
        cache.expireAll(at: at(1))
        #expect(cache.answer(for: "b.test", at: at(1)) == nil)
        #expect(cache.hasStale("a.test", at: at(1)) && cache.answer(for: "a.test", at: at(1)) == nil)
        #expect(cache.renew("a.test", until: at(5), at: at(1)) == one)
    }

    @Test func `a full cache gives up what has expired first`() {
        var cache = ResolverCache(capacity: 2)
        cache.store(one, for: "old.test", until: at(5), keeping: .seconds(100), at: at(0))
        cache.store(one, for: "a.test", until: at(6), at: at(0))
        cache.store(other, for: "b.test", until: at(20), at: at(5))
        #expect(cache.count == 2)
        #expect(!cache.hasStale("old.test", at: at(5)))
        #expect(cache.answer(for: "a.test", at: at(5)) == one && cache.answer(for: "b.test", at: at(5)) == other)
    }

    @Test func `a full cache of fresh answers gives up the one that expires first`() {
        var cache = ResolverCache(capacity: 2)
        cache.store(one, for: "a.test", until: at(30), at: at(0))
        cache.store(one, for: "b.test", until: at(20), at: at(0))
        cache.store(other, for: "c.test", until: at(10), at: at(1))
        #expect(cache.count == 2)
        #expect(cache.answer(for: "b.test", at: at(1)) == nil)
        #expect(cache.answer(for: "a.test", at: at(1)) == one && cache.answer(for: "c.test", at: at(1)) == other)
    }

    @Test func `a name that is stored again takes no other name's place`() {
        var cache = ResolverCache(capacity: 2)
        cache.store(one, for: "a.test", until: at(10), at: at(0))
        cache.store(one, for: "b.test", until: at(20), at: at(0))
        cache.store(other, for: "b.test", until: at(30), at: at(1))
        #expect(cache.answer(for: "a.test", at: at(1)) == one && cache.answer(for: "b.test", at: at(1)) == other)
    }
}
