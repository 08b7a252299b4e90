import Testing

@testable import HttpWare
@testable import Wares

@Suite struct GcraTests {
    @Test func `a burst may come at once, then one in each interval`() {
        let limit = Gcra(Rate(2, per: .second), burst: 3)
        var full = Int64.min
        #expect(limit.countRequest(in: &full, at: 0, patience: 0) == .granted(left: 2, fullIn: 500_000_000))
        #expect(limit.countRequest(in: &full, at: 0, patience: 0) == .granted(left: 1, fullIn: 1_000_000_000))
        #expect(limit.countRequest(in: &full, at: 0, patience: 0) == .granted(left: 0, fullIn: 1_500_000_000))
        #expect(limit.countRequest(in: &full, at: 0, patience: 0) == .refused(for: 500_000_000))
        #expect(limit.countRequest(in: &full, at: 499_999_999, patience: 0) == .refused(for: 1))
        #expect(limit.countRequest(in: &full, at: 500_000_000, patience: 0) == .granted(left: 0, fullIn: 1_500_000_000))
        #expect(
            limit.countRequest(in: &full, at: 10_000_000_000, patience: 0) == .granted(left: 2, fullIn: 500_000_000))
    }

    @Test func `a request over the rate may be delayed, and takes its place then`() {
        let limit = Gcra(Rate(1, per: .second), burst: 1)
        var full = Int64.min
        #expect(
            limit.countRequest(in: &full, at: 0, patience: 2_000_000_000) == .granted(left: 0, fullIn: 1_000_000_000))
        #expect(limit.countRequest(in: &full, at: 0, patience: 2_000_000_000) == .delayed(by: 1_000_000_000))
        #expect(limit.countRequest(in: &full, at: 0, patience: 2_000_000_000) == .delayed(by: 2_000_000_000))
        #expect(limit.countRequest(in: &full, at: 0, patience: 2_000_000_000) == .refused(for: 3_000_000_000))
    }

    @Test func `however requests come, no time sees more than the burst and the rate`() {
        let limit = Gcra(Rate(100, per: .second), burst: 20)
        var generator = SplitMix(state: 42)
        var full = Int64.min
        var now: Int64 = 0
        var granted: [Int64] = []
        for _ in 0..<20_000 {
            now += Int64(generator.next() % 8_000_000)
            if case .granted = limit.countRequest(in: &full, at: now, patience: 0) { granted.append(now) }
        }
        var first = 0
        for last in granted.indices {
            while granted[last] - granted[first] > 1_000_000_000 { first += 1 }
            #expect(last - first + 1 <= 121)
        }
        // And no less than the rate, for there were more than enough.
        #expect(Double(granted.count) > Double(now) / 1e9 * 99)
    }

    @Test func `extremes do not overflow`() {
        var full = Int64.min
        let slow = Gcra(Rate(1, per: .hour), burst: .max)
        #expect(slow.countRequest(in: &full, at: 1 << 60, patience: 10) != .refused(for: 0))
        let fast = Gcra(Rate(.max, per: .second), burst: 1)
        #expect(fast.interval == 1)
        #expect(Gcra(Rate(0, per: .second), burst: 0).interval == 1_000_000_000)
    }

    private struct SplitMix: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state &+= 0x9e37_79b9_7f4a_7c15
            return (state ^ state >> 31) &* 0x94d0_49bb_1331_11eb >> 8
        }
    }
}
