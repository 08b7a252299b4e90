import Testing

@testable import HttpWare
@testable import Wares

@Suite struct CircuitStateTests {
    private func at(_ seconds: Int64) -> LoopInstant { LoopInstant(nanoseconds: seconds * 1_000_000_000) }

    @Test func `open, it refuses until its time ends, then lets the given number of probes through`() {
        var state = CircuitState()
        #expect(state.admitRequest(probes: 2, at: at(0)) == .passes)
        let opened = state.trip(until: at(10))
        #expect(opened)
        #expect(state.admitRequest(probes: 2, at: at(3)) == .refused(for: .seconds(7)))
        #expect(state.admitRequest(probes: 2, at: at(10)) == .probes(1))
        #expect(state.admitRequest(probes: 2, at: at(10)) == .probes(2))
        #expect(state.admitRequest(probes: 2, at: at(10)) == .refused(for: .seconds(1)))
        #expect(state.phase == .halfOpen)
    }

    @Test func `it closes when all have passed`() {
        var state = CircuitState()
        _ = state.trip(until: at(1))
        _ = state.admitRequest(probes: 2, at: at(1))
        _ = state.admitRequest(probes: 2, at: at(1))
        #expect(state.ended(2, hasFailed: false, probes: 2, reopensUntil: at(9)) == nil)
        #expect(state.ended(2, hasFailed: false, probes: 2, reopensUntil: at(9)) == nil)
        #expect(state.ended(1, hasFailed: false, probes: 2, reopensUntil: at(9)) == .closed)
        #expect(state.admitRequest(probes: 2, at: at(1)) == .passes)
    }

    @Test func `the first probe that fails opens it again, and those of before change nothing then`() {
        var state = CircuitState()
        _ = state.trip(until: at(1))
        _ = state.admitRequest(probes: 2, at: at(1))
        _ = state.admitRequest(probes: 2, at: at(1))
        #expect(state.ended(1, hasFailed: true, probes: 2, reopensUntil: at(9)) == .opened)
        #expect(state.ended(2, hasFailed: false, probes: 2, reopensUntil: at(9)) == nil)
        #expect(state.phase == .open(until: at(9)))
        #expect(state.admitRequest(probes: 1, at: at(9)) == .probes(3))
        #expect(state.ended(2, hasFailed: true, probes: 1, reopensUntil: at(20)) == nil)
        #expect(state.ended(3, hasFailed: false, probes: 1, reopensUntil: at(20)) == .closed)
    }

    @Test func `a probe that came to nothing makes room for another`() {
        var state = CircuitState()
        _ = state.trip(until: at(1))
        _ = state.admitRequest(probes: 1, at: at(1))
        state.gaveUp(1)
        #expect(state.admitRequest(probes: 1, at: at(1)) == .probes(2))
    }

    @Test func `an open circuit is not opened once more`() {
        var state = CircuitState()
        let first = state.trip(until: at(1))
        let second = state.trip(until: at(5))
        #expect(first && !second)
        #expect(state.phase == .open(until: at(1)))
    }
}
