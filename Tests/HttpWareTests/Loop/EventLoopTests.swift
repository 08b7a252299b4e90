import Glibc
import HttpWareTesting
import Synchronization
import Testing

@testable import HttpWare

@Suite(.timeLimit(.minutes(10))) struct EventLoopTests {
    @Test func `work from another thread runs on the loop, in order`() async throws {
        try await withLoop { loop in
            let seen = Mutex<[Int]>([])
            for index in 0..<1000 {
                loop.execute { [loop] in
                    #expect(loop.isCurrent && EventLoop.current === loop)
                    seen.withLock { $0.append(index) }
                }
            }
            let count = await loop.submit { 1000 }
            #expect(seen.withLock { $0 } == Array(0..<count))
            #expect(!loop.isCurrent)
            #expect(EventLoop.current == nil)
        }
    }

    @Test func `an error thrown on the loop reaches who submitted`() async throws {
        struct Failure: Error {}
        try await withLoop { loop in
            await #expect(throws: Failure.self) { try await loop.submit { throw Failure() } }
        }
    }

    @Test func `a task that prefers the loop stays there, whatever it awaits`() async throws {
        try await withLoop { loop in
            try await loop.task { [loop] in
                #expect(loop.isCurrent)
                let step: any Step = SomeStep()
                #expect(await step.run() === loop)
                #expect(await step.runConcurrently() === loop)
                async let child = EventLoop.current
                #expect(await child === loop)
                let group = await withTaskGroup(of: Bool.self) { group in
                    for _ in 0..<3 { group.addTask { loop.isCurrent } }
                    return await group.reduce(true) { $0 && $1 }
                }
                #expect(group)
                await withUnsafeContinuation { continuation in
                    Task.detached {
                        #expect(!loop.isCurrent)
                        continuation.resume()
                    }
                }
                #expect(loop.isCurrent)
                await Task.yield()
                #expect(loop.isCurrent)
                try await loop.sleep(for: .microseconds(10))
                #expect(loop.isCurrent)
                await withTaskExecutorPreference(globalConcurrentExecutor) { #expect(!loop.isCurrent) }
                #expect(loop.isCurrent)
            }
        }
    }

    @Test func `a task that waits does not hold up other work of the loop`() async throws {
        try await withLoop { loop in
            let gate = LoopWait<Int>()
            let waiting = Task(executorPreference: loop) {
                let value = try await gate.value()
                #expect(loop.isCurrent)
                return value
            }
            let other = try await loop.task { 7 }
            #expect(other == 7)
            gate.resume(returning: 8)
            #expect(try await waiting.value == 8)
        }
    }

    @Test func `an actor on the loop is isolated in a plain callback`() async throws {
        try await withLoop { loop in
            let counter = Counter(loop: loop)
            await loop.submit { counter.assumeIsolated { $0.count += 1 } }
            await counter.check()
            #expect(await counter.count == 1)
        }
    }

    @Test func `tasks that never wait leave room for timers and for the end`() async throws {
        try await withLoop { loop in
            let ends = Atomic(false)
            let busy = Task(executorPreference: loop) {
                while !ends.load(ordering: .relaxed) { await Task.yield() }
            }
            try await loop.sleep(for: .milliseconds(2))
            ends.store(true, ordering: .relaxed)
            await busy.value
        }
    }

    @Test func `a stop before the run ends it at once, after the work that waited`() throws {
        let loop = try EventLoop(name: "test")
        let ran = Mutex(false)
        loop.execute { ran.withLock { $0 = true } }
        loop.stop()
        loop.stop()
        loop.run()
        #expect(ran.withLock { $0 })
        #expect(EventLoop.current == nil)
        loop.join()
    }

    @Test func `after a gap of the clock all sockets come before any timer`() async throws {
        // More of them than libevent takes at a time.
        try await withLoop { loop in
            let told = await loop.submit { [loop] in
                let watchers = (0..<300).map { _ in Watcher(loop) }
                // The process is stopped; what was waited for comes meanwhile.
                usleep(400_000)
                for watcher in watchers { watcher.write() }
                return watchers
            }
            try await loop.sleep(for: .milliseconds(300))
            let late = await loop.submit { told.count { $0.wasLate } }
            #expect(late == 0)
            await loop.submit { for watcher in told { watcher.close() } }
        }
    }

    @Test func `a loop that is never quiet still judges its timers`() async throws {
        try await withLoop { loop in
            let fired = Atomic(false)
            await loop.submit { [loop] in
                let busy = Watcher(loop)
                busy.write()
                loop.schedule(after: .milliseconds(100)) {
                    fired.store(true, ordering: .relaxed)
                    busy.close()
                }
                usleep(500_000)
            }
            try await eventually { fired.load(ordering: .relaxed) }
        }
    }

    @Test func `a loop that has ended holds nothing`() async throws {
        final class Witness: Sendable {}
        let loop = try EventLoop.start(name: "test")
        var witness: Witness? = Witness()
        weak let gone = witness
        await loop.submit { [loop, witness] in
            loop.schedule(after: .seconds(60)) { _ = (witness, loop) }
            return
        }
        loop.stop()
        loop.join()
        loop.execute { [loop, witness] in _ = (witness, loop) }
        witness = nil
        #expect(gone == nil)
    }

    @Test func `work put off on the loop runs after the present callback`() async throws {
        try await withLoop { loop in
            let order = await loop.submit { [loop] in
                let order = Mutex<[Int]>([])
                loop.later { order.withLock { $0.append(2) } }
                order.withLock { $0.append(1) }
                loop.drain()
                return order.withLock { $0 }
            }
            #expect(order == [1])  // a drain within work does nothing
        }
    }

    @Test func `sleep ends when the clock says so`() async throws {
        let clock = ManualClock()
        try await withLoop(clock: clock) { loop in
            let started = LoopWait<Void>()
            let sleeper = Task(executorPreference: loop) { [loop] in
                let start = loop.now
                started.resume(returning: ())
                try await loop.sleep(for: .seconds(60))
                return loop.now - start
            }
            try await started.value()
            await loop.submit {}
            clock.advance(by: .seconds(59))
            await loop.submit {}
            clock.advance(by: .seconds(1))
            #expect(try await sleeper.value == .seconds(60))
            let filed = await loop.submit { [loop] in loop.timers.count }
            #expect(filed == 0)
        }
    }

    @Test(arguments: [true, false])
    func `sleep ends with an error when its task is cancelled, on the loop or off it`(onLoop: Bool) async throws {
        try await withLoop(clock: ManualClock()) { loop in
            let started = LoopWait<Void>()
            let sleeper = Task(executorPreference: onLoop ? loop : nil) {
                started.resume(returning: ())
                try await loop.sleep(for: .seconds(60))
            }
            try await started.value()
            sleeper.cancel()
            await #expect(throws: CancellationError.self) { try await sleeper.value }
            if onLoop {
                let filed = await loop.submit { [loop] in loop.timers.count }
                #expect(filed == 0)
            }
        }
    }

    @Test func `the time is read once in a callback and again in the next`() async throws {
        let clock = ManualClock()
        try await withLoop(clock: clock) { loop in
            let (before, cached, ticked) = await loop.submit { [loop] in
                (
                    loop.now,
                    {
                        clock.advance(by: .seconds(1)); return loop.now
                    }(), loop.tick()
                )
            }
            #expect(cached == before)
            #expect(ticked - before == .seconds(1))
            #expect(loop.wallNow() == WallTime(seconds: 1_767_225_601))
            let later = await loop.submit { [loop] in loop.now }
            #expect(later == ticked)
        }
    }

    @Test func `the buffers hold 256 KiB to read into and 64 KiB to write from`() throws {
        let loop = try EventLoop(name: "test")
        #expect(loop.readBuffer.count == 4 * 65536)
        #expect(loop.writeBuffer.count == 65536)
        #expect(loop.readBuffer.baseAddress != loop.writeBuffer.baseAddress)
    }
}

private protocol Step: Sendable {
    func run() async -> EventLoop?
    @concurrent func runConcurrently() async -> EventLoop?
}

private struct SomeStep: Step {
    func run() async -> EventLoop? { EventLoop.current }
    @concurrent func runConcurrently() async -> EventLoop? { EventLoop.current }
}

private actor Counter {
    let loop: EventLoop
    var count = 0

    init(loop: EventLoop) { self.loop = loop }

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    func check() { #expect(loop.isCurrent) }
}

/// A pipe that something comes on, and a timer for that. Used on its loop's thread only.
private final class Watcher: SocketEventHandler, LoopTimerHandler, @unchecked Sendable {
    private let events: SocketEvents
    private let far: Int32
    private let timer: LoopTimer
    private(set) var wasLate = false

    init(_ loop: EventLoop) {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        #expect(socketpair(AF_UNIX, type, 0, &ends) == 0)
        events = SocketEvents(loop: loop, descriptor: ends[0])
        far = ends[1]
        timer = LoopTimer(loop: loop)
        events.handler = self
        timer.handler = self
        events.enableReading()
        timer.set(after: .milliseconds(100))
    }

    func write() { _ = Glibc.write(far, "x", 1) }

    /// Bytes that came are left there: they come again.
    func socketReadable() { timer.clear() }
    func socketWritable() {}

    func timerFired(_ timer: LoopTimer) { wasLate = true }

    func close() {
        timer.cancel()
        events.close()
        Glibc.close(far)
    }
}
