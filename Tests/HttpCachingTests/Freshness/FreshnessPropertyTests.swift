import HttpCaching
import HttpWare
import StoreRig
import Testing

/// The freshness computation against a naive transcription of RFC 9111 §4.2, over messages at random.
@Suite struct FreshnessPropertyTests {
    private static let count: UInt64 = 30_000
    private static let seed: UInt64 = 0x9111_0402_0003_0000

    private func time(_ nanoseconds: Int128) -> WallTime {
        WallTime(
            seconds: Int64(nanoseconds / 1_000_000_000), nanoseconds: Int32(nanoseconds % 1_000_000_000))
    }

    /// The result of the code for a message at a time, and the result of the RFC; `nil` where they agree.
    private func difference(_ message: RandomMessage, at now: Int128) throws -> String? {
        let (naive, all) = (message.meaning, fields(message.lines))
        var policy = CachePolicy()
        policy.mode = naive.isShared ? .shared : .private
        let directives = policy.directives(of: all).directives
        let times = MessageTimes(all, requested: time(naive.requestTime), received: time(naive.responseTime))
        let lifetime = FreshnessLifetime(
            status: try #require(HttpStatus(message.status)), fields: all, directives: directives, times: times,
            policy: policy)
        let expected = naive.freshnessLifetime
        guard (lifetime.source == .none) == (expected == nil), Int128(lifetime.seconds) == expected ?? 0 else {
            return "a lifetime of \(lifetime), not \(expected.map { "\($0)" } ?? "none")"
        }
        let age = times.currentAge(at: time(now))
        let exact = naive.currentAge(at: now)
        // Beyond a century nothing is fresh, and ages need not be exact: they are clamped.
        let century: Int128 = 3_155_760_000_000_000_000
        guard Int128(age) == exact || Int128(age) >= century && exact >= century else {
            return "an age of \(age), not \(exact)"
        }
        let reuse = Reuse.decide(
            age: age, rules: ReuseRules(directives, lifetime, mode: policy.mode), request: RequestDirectives(),
            policy: policy)
        guard (reuse == .fresh) == naive.isFresh(at: now) else {
            return "\(reuse), and fresh is \(naive.isFresh(at: now))"
        }
        return nil
    }

    @Test func `lifetime, age and freshness are those of the RFC's own text, RFC 9111 §4.2`() throws {
        print("freshness: \(FreshnessPropertyTests.count) messages from seed \(FreshnessPropertyTests.seed)")
        var random = SplitMix(state: FreshnessPropertyTests.seed)
        var fresh = 0
        var sources: [FreshnessSource: Int] = [:]
        for index in 0..<FreshnessPropertyTests.count {
            var message = RandomMessage(seed: random.next())
            let now = message.makeNow()
            if let difference = try difference(message, at: now) {
                Issue.record("message \(index), \(message.status) \(message.lines) at \(now): \(difference)")
                return
            }
            if message.meaning.isFresh(at: now) { fresh += 1 }
            sources[FreshnessSource(message.meaning), default: 0] += 1
        }
        print("freshness: \(fresh) of them fresh; \(sources.map { "\($0) \($1)" }.sorted().joined(separator: ", "))")
        // A generator that makes one kind only would prove nothing.
        #expect(fresh > 3000 && fresh < Int(FreshnessPropertyTests.count) - 3000)
        #expect(FreshnessSource.allCases.allSatisfy { sources[$0, default: 0] > 500 }, "\(sources)")
    }
}

/// Where a message's lifetime comes from.
private enum FreshnessSource: CaseIterable, Hashable {
    case sharedMaxAge, maxAge, expires, heuristic, none

    init(_ naive: NaiveFreshness) {
        if naive.isShared, !naive.sharedMaxAge.isEmpty {
            self = .sharedMaxAge
        } else if !naive.maxAge.isEmpty {
            self = .maxAge
        } else if !naive.expires.isEmpty {
            self = .expires
        } else {
            self = naive.freshnessLifetime == nil ? .none : .heuristic
        }
    }
}
