import Testing

@testable import HttpWare

@Suite struct TimeBoundTests {
    /// Asks twice at a moment that the clock says is far ahead.
    private func ask(_ bound: inout TimeBound, between work: () -> Void) -> [Bool] {
        let later = ContinuousClock.now + .seconds(60)
        let first = bound.isOver(at: later)
        work()
        return [first, bound.isOver(at: later)]
    }

    @Test func `a limit lasts while another program has the CPU`() {
        var bound = TimeBound(.milliseconds(5))
        let answers = ask(&bound) {}
        #expect(answers == [false, false])
    }

    @Test func `a limit ends when the thread has worked as long`() {
        var bound = TimeBound(.milliseconds(5))
        let answers = ask(&bound) {
            let began = TimeBound.threadTime()
            while TimeBound.threadTime() - began < 10_000_000 {}
        }
        #expect(answers == [false, true])
    }

    @Test func `a limit lasts at least its time by the clock`() {
        var bound = TimeBound(.seconds(60))
        let isOver = bound.isOver()
        #expect(!isOver)
    }
}
