import Testing

@testable import HttpWare

/// The rate at which a client must send content.
@Suite struct MinimumRateTests {
    private var rate = MinimumRate()
    private static let never = LoopInstant(nanoseconds: .min)

    private func instant(_ seconds: Double) -> LoopInstant { LoopInstant(nanoseconds: Int64(seconds * 1e9)) }

    /// Whether `count` bytes that come at that second make it too slow, with 100 bytes a second wanted.
    private mutating func isTooSlow(_ count: Int, at seconds: Double, resumed: LoopInstant = never) -> Bool {
        rate.isTooSlow(count, rate: 100, now: instant(seconds), resumed: resumed)
    }

    @Test mutating func `content may be slow for five seconds`() {
        rate.start(at: instant(10))
        #expect(!isTooSlow(1, at: 10))
        #expect(!isTooSlow(1, at: 15))
        #expect(isTooSlow(1, at: 15.001))
    }

    @Test mutating func `the rate counts from the content's start`() {
        rate.start(at: instant(10))
        #expect(!isTooSlow(600, at: 10))
        #expect(!isTooSlow(400, at: 20))
        // 1000 bytes in more than ten seconds, then enough again.
        #expect(isTooSlow(0, at: 20.001))
        #expect(!isTooSlow(100, at: 21))
    }

    @Test mutating func `each request is measured from its own start`() {
        rate.start(at: instant(0))
        #expect(isTooSlow(1, at: 10))
        rate.start(at: instant(10))
        #expect(!isTooSlow(1, at: 15))
        #expect(isTooSlow(1, at: 16))
    }

    @Test mutating func `a gap of the loop does not count against the client`() {
        rate.start(at: instant(0))
        #expect(!isTooSlow(100, at: 1))
        // The loop did not run from then on until second 60.
        #expect(!isTooSlow(1, at: 60, resumed: instant(60)))
        // Nothing of before counts: 2 bytes in 5 seconds, and the time of grace has ended behind them.
        #expect(!isTooSlow(1, at: 65, resumed: instant(60)))
        #expect(isTooSlow(1, at: 65.001, resumed: instant(60)))
    }

    @Test func `the client is answered with 408`() {
        // RFC 9110 §15.5.9.
        #expect(MinimumRate.fault.status == .requestTimeout)
    }
}
