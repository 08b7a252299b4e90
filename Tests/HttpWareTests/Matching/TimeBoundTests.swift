import Testing

@testable import HttpWare

@Suite struct TimeBoundTests {
    private func work(_ milliseconds: Int64) {
        let began = TimeBound.threadTime()
        while TimeBound.threadTime() - began < milliseconds * 1_000_000 {}
    }

    /// The answers at moments that the clock says are far ahead.
    private func ask(_ bound: inout TimeBound, between work: () -> Void) -> [Bool] {
        _ = bound.isOver()
        let later = ContinuousClock.now + .seconds(60)
        let first = bound.isOver(at: later)
        work()
        return [first, bound.isOver(at: later)]
    }

    @Test func `a limit lasts while another program has the CPU`() {
        var bound = TimeBound(.seconds(5))
        let answers = ask(&bound) {}
        #expect(answers == [false, false])
    }

    @Test func `a limit ends when the thread has worked for its second half`() {
        var bound = TimeBound(.milliseconds(10))
        let answers = ask(&bound) { work(6) }
        #expect(answers == [false, true])
    }

    @Test func `a limit begins with the first question and lasts at least half of its time`() {
        var bound = TimeBound(.seconds(60))
        let answers = [bound.isOver(), bound.isOver(), bound.isOver(at: .now + .seconds(29))]
        #expect(answers == [false, false, false])
    }

    @Test func `all computations of one rest take together what it has`() {
        var rest = TimeBound.Rest(.milliseconds(20))
        var rounds = 0
        while !rest.isOver, rounds < 1000 {
            rounds += 1
            let bound = TimeBound(rest)
            work(1)
            rest = bound.left
        }
        // The half by the clock may pass while another program works; the half of the thread takes ten rounds.
        #expect((10...21).contains(rounds), "\(rounds)")
    }
}
