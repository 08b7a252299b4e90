import HttpWareTesting
import Testing

@testable import HttpWare

@Suite(.timeLimit(.minutes(10))) struct LoopTimerTests {
    private final class Handler: LoopTimerHandler {
        let timer: LoopTimer
        var fired: [LoopInstant] = []
        var again: Duration?

        init(_ loop: EventLoop) {
            timer = LoopTimer(loop: loop)
            timer.handler = self
        }

        func timerFired(_ timer: LoopTimer) {
            #expect(timer === self.timer && !timer.isSet)
            fired.append(timer.loop.tick())
            if let again { timer.set(after: again) }
        }
    }

    /// A loop that does not run, moved by hand on the thread of the test.
    private struct Stand {
        let clock = ManualClock()
        let loop: EventLoop
        init() throws { loop = try EventLoop(name: "test", clock: clock) }

        func advance(_ seconds: Int) {
            clock.advance(by: .seconds(seconds))
            loop.tick()
            loop.fireTimers()
        }
    }

    private func instant(_ seconds: Int64) -> LoopInstant { LoopInstant(nanoseconds: seconds * 1_000_000_000) }

    @Test func `it fires once, when it is due`() throws {
        let stand = try Stand()
        let handler = Handler(stand.loop)
        handler.timer.set(after: .seconds(5))
        #expect(handler.timer.due == instant(5))
        stand.advance(4)
        #expect(handler.fired.isEmpty && handler.timer.isSet)
        stand.advance(1)
        stand.advance(10)
        #expect(handler.fired == [instant(5)])
        #expect(stand.loop.timers.count == 0)
    }

    @Test func `set later it stays filed and fires at the later time`() throws {
        let stand = try Stand()
        let handler = Handler(stand.loop)
        handler.timer.set(due: instant(5))
        handler.timer.set(due: instant(9))
        #expect(stand.loop.timers.earliestDue == 5_000_000_000)
        stand.advance(5)
        #expect(handler.fired.isEmpty)
        #expect(stand.loop.timers.earliestDue == 9_000_000_000)
        stand.advance(4)
        #expect(handler.fired == [instant(9)])
    }

    @Test func `set earlier it moves at once`() throws {
        let stand = try Stand()
        let handler = Handler(stand.loop)
        handler.timer.set(due: instant(9))
        handler.timer.set(due: instant(5))
        stand.advance(5)
        #expect(handler.fired == [instant(5)])
    }

    @Test func `cleared it does not fire and leaves when its time comes`() throws {
        let stand = try Stand()
        let handler = Handler(stand.loop)
        handler.timer.set(due: instant(5))
        handler.timer.clear()
        #expect(stand.loop.timers.count == 1 && handler.timer.due == nil)
        stand.advance(5)
        #expect(handler.fired.isEmpty && stand.loop.timers.count == 0)
    }

    @Test func `cancelled it is gone, and may be set again`() throws {
        let stand = try Stand()
        let handler = Handler(stand.loop)
        handler.timer.set(due: instant(5))
        handler.timer.cancel()
        #expect(stand.loop.timers.count == 0)
        handler.timer.set(due: instant(6))
        stand.advance(6)
        #expect(handler.fired == [instant(6)])
    }

    @Test func `a handler that goes takes its timer along`() throws {
        let stand = try Stand()
        var handler: Handler? = Handler(stand.loop)
        weak let gone = handler
        handler?.timer.set(due: instant(5))
        handler = nil
        #expect(gone == nil && stand.loop.timers.count == 0)
        stand.advance(5)
    }

    @Test func `a handler may set its timer again to now without end`() throws {
        let stand = try Stand()
        let handler = Handler(stand.loop)
        handler.again = .zero
        handler.timer.set(after: .zero)
        stand.loop.fireTimers()
        #expect(handler.fired.count == EventLoop.workPerTurn)
    }

    @Test func `closures run in the order in which they are due`() throws {
        let stand = try Stand()
        var order: [Int] = []
        for seconds in [3, 1, 2] { stand.loop.schedule(after: .seconds(seconds)) { order.append(seconds) } }
        let cancelled = stand.loop.schedule(after: .seconds(2)) { order.append(-1) }
        cancelled.cancel()
        cancelled.cancel()
        stand.advance(3)
        #expect(order == [1, 2, 3])
    }

    @Test func `a closure is released when it has run or is cancelled`() throws {
        final class Witness {}
        let stand = try Stand()
        var first: Witness? = Witness()
        var second: Witness? = Witness()
        weak let (weakFirst, weakSecond) = (first, second)
        stand.loop.schedule(after: .seconds(1)) { [first] in _ = first }
        let timer = stand.loop.schedule(after: .seconds(1)) { [second] in _ = second }
        (first, second) = (nil, nil)
        timer.cancel()
        #expect(weakSecond == nil && weakFirst != nil)
        stand.advance(1)
        #expect(weakFirst == nil)
    }

    @Test func `timers of the system's clock fire, not too early`() async throws {
        try await withLoop { loop in
            let start = SystemLoopClock().now()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for milliseconds in [3, 1, 2] {
                    group.addTask {
                        try await loop.sleep(for: .milliseconds(milliseconds))
                        #expect(SystemLoopClock().now() - start >= .milliseconds(milliseconds))
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test func `a clock that stands still fires what is due already`() async throws {
        try await withLoop(clock: ManualClock()) { loop in
            try await loop.task { [loop] in try await loop.sleep(for: .zero) }
        }
    }
}
