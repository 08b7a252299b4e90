import Testing

import HttpWare

@Suite struct SecondCountsTests {
    private func at(_ seconds: Int64) -> LoopInstant { LoopInstant(nanoseconds: seconds * 1_000_000_000 + 5) }

    @Test func `it sums the present second and those before it`() {
        let counts = SecondCounts()
        for second in 0..<20 as Range<Int64> { counts.add(all: true, marked: second % 2 == 0, at: at(second)) }
        #expect(counts.sum(last: 1, at: at(19)) == .init(all: 1, marked: 0))
        #expect(counts.sum(last: 10, at: at(19)) == .init(all: 10, marked: 5))
        #expect(counts.sum(last: 10, at: at(24)) == .init(all: 5, marked: 2))
        #expect(counts.sum(last: 512, at: at(19)) == .init(all: 20, marked: 10))
    }

    @Test func `a second of an earlier round is not of this one`() {
        let counts = SecondCounts()
        counts.add(all: true, marked: true, at: at(3))
        #expect(counts.sum(last: 10, at: at(3 + 512)) == .init())
        counts.add(all: true, marked: false, at: at(3 + 512))
        #expect(counts.sum(last: 10, at: at(3 + 512)) == .init(all: 1, marked: 0))
        #expect(counts.sum(last: 10, at: at(3)) == .init())
    }

    @Test func `numbers stop at their largest, and never run into each other`() {
        let counts = SecondCounts()
        for _ in 0..<(1 << 20) + 10 { counts.add(all: true, marked: false, at: at(1)) }
        #expect(counts.sum(last: 1, at: at(1)) == .init(all: 1 << 20 - 1, marked: 0))
        counts.clear()
        #expect(counts.sum(last: 512, at: at(1)) == .init())
    }
}
