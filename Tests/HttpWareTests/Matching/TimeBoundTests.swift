import Testing

@testable import HttpWare

@Suite struct TimeBoundTests {
    @Test func `a limit lasts while another program has the CPU`() {
        var bound = TimeBound(.milliseconds(5))
        let later = ContinuousClock.now + .seconds(60)
        // The clock is far ahead, and the thread has not worked.
        #expect(!bound.isOver(at: later))
        #expect(!bound.isOver(at: later))
    }

    @Test func `a limit ends when the thread has worked as long`() {
        var bound = TimeBound(.milliseconds(5))
        let later = ContinuousClock.now + .seconds(60)
        #expect(!bound.isOver(at: later))
        let began = TimeBound.threadTime()
        while TimeBound.threadTime() - began < 10_000_000 {}
        #expect(bound.isOver(at: later))
    }

    @Test func `a limit lasts at least its time by the clock`() {
        var bound = TimeBound(.seconds(60))
        #expect(!bound.isOver())
    }
}
