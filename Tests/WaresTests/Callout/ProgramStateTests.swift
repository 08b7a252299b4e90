import HttpWare
import Testing

@testable import GatewayWares

@Suite struct ProgramStateTests {
    private func started() -> ProgramState {
        var state = ProgramState(seed: 1)
        #expect(state.handle(.wanted) == [.start])
        return state
    }

    @Test func `a program starts once`() {
        var state = started()
        #expect(state.handle(.wanted) == [])
        #expect(state.isUp)
    }

    @Test func `a program that ends is started again after pauses that double up to 30 seconds and vary`() {
        var state = started()
        var pauses: [Duration] = []
        for _ in 0..<12 {
            guard case .pause(let pause)? = state.handle(.ended(ran: .seconds(1))).first else { break }
            pauses.append(pause)
            #expect(!state.isUp)
            #expect(state.handle(.pauseEnded) == [.start])
        }
        #expect(pauses.count == 12)
        for (index, pause) in pauses.enumerated() {
            let base = min(Duration.seconds(30), .milliseconds(100) * (1 << index))
            #expect(pause >= base && pause <= base * 3 / 2, "\(index): \(pause)")
        }
        #expect(Set(pauses.map { $0 / .nanoseconds(1) }).count == 12)
    }

    @Test func `a program that ran for a while is started again at once`() {
        var state = started()
        for _ in 0..<5 {
            _ = state.handle(.ended(ran: .zero))
            _ = state.handle(.pauseEnded)
        }
        _ = state.handle(.answered)
        guard case .pause(let pause)? = state.handle(.ended(ran: .seconds(60))).first else {
            Issue.record("no pause")
            return
        }
        #expect(pause <= .milliseconds(150))
    }

    @Test func `a program that cannot be started is tried again`() {
        var state = started()
        guard case .pause? = state.handle(.startFailed).first else {
            Issue.record("no pause")
            return
        }
        #expect(state.handle(.pauseEnded) == [.start])
    }

    @Test func `a program without a first answer is killed and started again`() {
        var state = started()
        #expect(state.handle(.wasSilent) == [.kill])
        #expect(state.handle(.answered) == [])
        guard case .pause? = state.handle(.ended(ran: .seconds(10))).first else {
            Issue.record("no pause")
            return
        }
    }

    @Test func `a program is asked to end, and killed if it does not`() {
        var state = started()
        _ = state.handle(.answered)
        #expect(state.handle(.unwanted) == [.terminate])
        #expect(state.handle(.unwanted) == [])
        #expect(state.handle(.graceEnded) == [.kill])
        #expect(state.handle(.ended(ran: .seconds(1))) == [.finish])
        #expect(state.handle(.wanted) == [])
        #expect(state.handle(.pauseEnded) == [])
    }

    @Test func `a program that does not run needs no end`() {
        var idle = ProgramState(seed: 1)
        #expect(idle.handle(.unwanted) == [.finish])
        var pausing = started()
        _ = pausing.handle(.ended(ran: .zero))
        #expect(pausing.handle(.unwanted) == [.finish])
        #expect(pausing.handle(.pauseEnded) == [])
    }
}

@Suite struct ProgramOutputTests {
    private let now = LoopInstant(nanoseconds: 5_000_000_000)

    @Test func `output becomes lines, whatever its pieces`() {
        var output = ProgramOutput()
        var lines = output.take(Array("a\n\nb".utf8), now: now)
        lines += output.take(Array("c\nd\u{1b}[1m\n".utf8), now: now)
        lines += output.take(Array("rest".utf8), now: now)
        lines += output.finish(now: now)
        #expect(lines == ["a", "bc", "d [1m", "rest"])
        #expect(output.finish(now: now).isEmpty)
    }

    @Test func `a long line is cut`() {
        var output = ProgramOutput()
        let lines = output.take(Array(String(repeating: "x", count: 100_000).utf8) + [0x0a], now: now)
        #expect(lines.count == 1)
        #expect(lines.first?.utf8.count == ProgramOutput.longest + " …".utf8.count)
    }

    @Test func `too many lines in one second are counted only`() {
        var output = ProgramOutput()
        let many = Array(String(repeating: "x\n", count: 1000).utf8)
        #expect(output.take(many, now: now).count == ProgramOutput.most)
        let later = output.take(Array("y\n".utf8), now: now + .seconds(1))
        #expect(later == ["800 more lines in one second are left out", "y"])
    }
}
