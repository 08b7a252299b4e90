import HttpWareTesting
import Synchronization
import Testing

@testable import HttpWare

/// Loops that their owner turns, in place of a thread.
@Suite struct TurnedLoopTests {
    private let clock = ManualClock()

    private final class Log: Sendable {
        private let lines = Mutex<[String]>([])
        var all: [String] { lines.withLock { $0 } }
        func add(_ line: String) { lines.withLock { $0.append(line) } }
    }

    @Test func `work runs until none is left, and timers wait for the clock`() throws {
        let loop = try EventLoop(name: "turned", clock: clock)
        let log = Log()
        loop.later {
            log.add("first")
            loop.later { log.add("second") }
            loop.schedule(after: .seconds(5)) { log.add("timer") }
        }
        #expect(loop.runUntilIdle())
        #expect(log.all == ["first", "second"])
        #expect(loop.nextDue == LoopInstant(nanoseconds: 5_000_000_000))
        clock.advance(by: .seconds(4))
        #expect(loop.runUntilIdle())
        #expect(log.all.count == 2)
        clock.advance(by: .seconds(1))
        #expect(loop.runUntilIdle())
        #expect(log.all.last == "timer" && loop.nextDue == nil)
        loop.endTurns()
    }

    @Test func `tasks of the loop run, and their sleep follows the clock`() throws {
        let loop = try EventLoop(name: "turned", clock: clock)
        let log = Log()
        Task(executorPreference: loop) {
            log.add("began")
            try await loop.sleep(for: .seconds(3))
            log.add("woke")
        }
        #expect(loop.runUntilIdle())
        #expect(log.all == ["began"])
        clock.advance(by: .seconds(3))
        #expect(loop.runUntilIdle())
        #expect(log.all == ["began", "woke"])
        loop.endTurns()
    }

    @Test func `offloaded work is waited for`() throws {
        let loop = try EventLoop(name: "turned", clock: clock)
        let log = Log()
        let queue = OffloadQueue(name: "test", threads: 1, most: 4)
        loop.later {
            _ = queue.submit({ (0..<100_000).reduce(0, +) }, completion: { sum in loop.execute { log.add("\(sum)") } })
        }
        #expect(loop.runUntilIdle())
        #expect(log.all == ["4999950000"])
        loop.endTurns()
    }

    @Test func `work that never ends is reported`() throws {
        let loop = try EventLoop(name: "turned", clock: clock)
        func again() { loop.schedule(after: .zero) { again() } }
        loop.later { again() }
        #expect(!loop.runUntilIdle(mostTurns: 20))
        loop.endTurns()
    }
}
