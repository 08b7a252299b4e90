// One file: the thread, its queues and its executor are one state, and their order in a turn is the loop.

import CLibevent
import CSystemShims
import Glibc
import Synchronization

/// One thread's loop over a libevent base: it waits for sockets, timers and signals, and runs the Swift tasks that prefer it.
///
/// A loop is a thread. Its sockets, timers and buffers are used on that thread only; other threads
/// reach it through `execute`, `submit`, `stop` and, as an executor, through `enqueue`.
// @unchecked Sendable: other threads use only the constants, `foreign` and `thread`, each behind a lock, and `running`,
// an atomic. Everything else is confined to the thread in `run()`, or before that to the thread that prepares the loop.
public final class EventLoop: TaskExecutor, SerialExecutor, @unchecked Sendable {
    /// The name of the loop and of its thread.
    public let name: String

    /// The source of the loop's time.
    public let clock: any LoopClock

    /// For reading from a descriptor: 256 KiB, shared by all connections of the loop, valid until the current callback returns.
    public let readBuffer: UnsafeMutableRawBufferPointer

    /// For composing output: 64 KiB, shared by all connections of the loop, valid until the current callback returns.
    public let writeBuffer: UnsafeMutableRawBufferPointer

    /// The libevent base.
    let base: OpaquePointer

    /// The transport that this loop's connections share, made by another room: for calls that have only a loop. Use it on the
    /// loop's thread only, or before the loop runs.
    ///
    /// The transport clears this when it ends. Not weak: one weak reference makes each retain of its object take three times
    /// as long.
    unowned(unsafe) var transport: AnyObject?

    /// The sockets with low priority, made with the first one; `nil` if the system gave no descriptor for them.
    private(set) lazy var lowPrioritySockets = LowPrioritySockets(self)

    /// The connections in memory that this loop uses in place of the system's; `nil` except in simulations, whose owner turns the loop.
    package var standInSockets: (any StandInSockets)?

    /// The timers in the loop's heap.
    var timers = TimerHeap<LoopTimer>()

    private struct Foreign {
        var work: [LoopWork] = []
        var isStopping = false
        var hasEnded = false
    }

    private let foreign = ThreadLock(Foreign())
    private let thread = Mutex<pthread_t?>(nil)
    private let running = Atomic(false)
    private let wakeDescriptor: Int32
    private var wakeEvent: OpaquePointer?
    private var timerEvent: OpaquePointer?
    private var turnEvent: OpaquePointer?
    private var turnHandlers: [any LoopTurnHandler] = []
    private var spareTurnHandlers: [any LoopTurnHandler] = []
    private var work = WorkQueue()
    private var spare: [LoopWork] = []
    private var isDraining = false
    private var isFiringTimers = false
    private var isStopping = false
    private var isTimeStale = true
    private var cachedNow = LoopInstant(nanoseconds: 0)
    private var isWallTimeStale = true
    private var cachedWallNow = WallTime(seconds: 0)
    private var armedDue: Int64 = .max
    private let isSystemClock: Bool
    /// If the loop runs again only after this time, there was a gap: the process was stopped, or the machine was too busy.
    private var missedDue: Int64 = .max
    /// After a gap: how many more times the timers wait for the sockets.
    private var turnsToCatchUp = 0
    /// The number of callbacks from libevent: in total, and when the timers last waited.
    private var callbacks: UInt64 = 0
    private var callbacksBefore: UInt64 = 0
    /// When the loop ran again after the last gap. A rate that is measured over a gap is meaningless. On the loop's thread only.
    private(set) var resumed = LoopInstant(nanoseconds: .min)

    /// The lateness of a timer that reveals a gap, in nanoseconds.
    private static let gap: Int64 = 250_000_000
    /// After a gap, the timers wait for the sockets at most this many times, for this many nanoseconds each.
    private static let catchUpPause: Int64 = 5_000_000
    private static let mostCatchUpTurns = 16

    /// How many pieces of work, or timers, run before the loop checks its sockets again, so that one task cannot starve the others.
    static let workPerTurn = 1024

    private static let bufferSize = 65536
    /// Needs fewer calls and wake-ups with large bodies than 64 KiB. CPU per MiB relative to nginx in the same run, three rounds
    /// each: downstream 1.73 with 64 KiB, 1.54 with 256; upstream 1.22 and 0.76. The rounds varied by up to 37 %.
    private static let readSize = 256 * 1024
    private static let sigpipeIgnored: Void = csystem_ignore_sigpipe()

    /// Makes a loop that does not run yet. From the first one on, SIGPIPE is ignored in the whole process.
    ///
    /// Throws if the system has no descriptor left.
    public init(name: String, clock: any LoopClock = SystemLoopClock()) throws(SystemError) {
        _ = EventLoop.sigpipeIgnored
        guard let base = EventLoop.makeBase() else { throw SystemError("event_base_new") }
        let descriptor = csystem_eventfd()
        guard descriptor >= 0 else {
            let error = SystemError("eventfd")
            event_base_free(base)
            throw error
        }
        self.name = name
        self.clock = clock
        self.base = base
        wakeDescriptor = descriptor
        isSystemClock = clock is SystemLoopClock
        readBuffer = .allocate(byteCount: EventLoop.readSize, alignment: 64)
        writeBuffer = .allocate(byteCount: EventLoop.bufferSize, alignment: 64)
        let own = Unmanaged.passUnretained(self).toOpaque()
        wakeEvent = event_new(base, descriptor, Int16(EV_READ | EV_PERSIST), loopWoken, own)
        timerEvent = event_new(base, -1, 0, loopTimerDue, own)
        turnEvent = event_new(base, -1, 0, loopTurnEnded, own)
        guard wakeEvent != nil, timerEvent != nil, turnEvent != nil, event_add(wakeEvent, nil) == 0 else {
            throw SystemError("event_add")
        }
        clock.register(self)
    }

    deinit {
        // A thread that was not joined is detached.
        if let thread = thread.withLock({ $0.take() }) { pthread_detach(thread) }
        lowPrioritySockets = nil
        if let wakeEvent { event_free(wakeEvent) }
        if let timerEvent { event_free(timerEvent) }
        if let turnEvent { event_free(turnEvent) }
        event_base_free(base)
        close(wakeDescriptor)
        readBuffer.deallocate()
        writeBuffer.deallocate()
    }

    /// Makes a loop and runs it on its own thread, until `stop()`. The caller may join it; a thread that was not joined
    /// is detached when the loop is freed.
    public static func start(name: String, clock: any LoopClock = SystemLoopClock()) throws(SystemError) -> EventLoop {
        let loop = try EventLoop(name: name, clock: clock)
        let handed = Unmanaged.passRetained(loop)  // released by loopThread(_:)
        let code = loop.thread.withLock { thread -> Int32 in
            var started = pthread_t()
            let code = pthread_create(&started, nil, loopThread, handed.toOpaque())
            if code == 0 { thread = started }
            return code
        }
        guard code == 0 else {
            handed.release()
            throw SystemError("pthread_create", code: code)
        }
        return loop
    }

    /// Waits until the thread that `start` made has ended; returns at once if it was already joined. Not callable on the loop itself.
    public func join() {
        precondition(!isCurrent, "a loop cannot wait for its own end")
        guard let joined = thread.withLock({ $0.take() }) else { return }
        pthread_join(joined, nil)
    }

    /// Runs the loop on the calling thread until `stop()`. A loop runs once.
    public func run() {
        precondition(csystem_current_loop() == nil, "another loop runs on this thread")
        precondition(!running.exchange(true, ordering: .acquiringAndReleasing), "the loop runs already")
        precondition(!foreign.withLock { $0.hasEnded }, "the loop has run already")
        csystem_set_current_loop(Unmanaged.passUnretained(self).toOpaque())
        beginCallback()
        takeForeignWork()
        endCallback()
        while !isStopping {
            let result = event_base_loop(base, EVLOOP_NO_EXIT_ON_EMPTY)
            precondition(result >= 0, "libevent could not wait")  // fails only for an invalid descriptor
        }
        beginCallback()
        takeForeignWork()
        drain()
        end()
        csystem_set_current_loop(nil)
        running.store(false, ordering: .releasing)
    }

    /// Handles the events that are ready now on the calling thread, without waiting: for a loop that does not run, whose owner turns
    /// it manually.
    func turn() {
        precondition(!running.load(ordering: .acquiring), "the loop runs")
        event_base_loop(base, EVLOOP_NONBLOCK)
    }

    /// When the earliest timer is to be looked at; `nil` without a timer. It may have been set later meanwhile. On the loop's thread, or while it does not
    /// run.
    package var nextDue: LoopInstant? {
        timers.earliestDue == .max ? nil : LoopInstant(nanoseconds: timers.earliestDue)
    }

    /// The maximum time that `runUntilIdle` waits for offloaded work, in milliseconds.
    private static let longestSilence = 60_000

    /// Runs the loop on the calling thread until it has nothing more to do at the present time of its clock, and no work for it is
    /// offloaded: for a loop whose clock is moved manually. It may be called repeatedly, and the loop does not `run()` then.
    ///
    /// Returns false if there is still work after that many turns, or if an offloaded piece of work takes more than a minute.
    package func runUntilIdle(mostTurns: Int = 5000) -> Bool {
        precondition(csystem_current_loop() == nil, "another loop runs on this thread")
        precondition(!running.exchange(true, ordering: .acquiringAndReleasing), "the loop runs already")
        csystem_set_current_loop(Unmanaged.passUnretained(self).toOpaque())
        defer {
            csystem_set_current_loop(nil)
            running.store(false, ordering: .releasing)
        }
        var turns = 0
        var silence = 0
        while turns < mostTurns, silence < EventLoop.longestSilence {
            beginCallback()
            takeForeignWork()
            if timers.earliestDue <= tick().nanoseconds { fireTimers() }
            drain()
            // Once: otherwise a timer that is always due again would keep it there.
            event_base_loop(base, EVLOOP_NONBLOCK | EVLOOP_ONCE)
            // Read before the foreign work: offloaded work passes its result on before it is counted as done.
            let isAwaited = OffloadQueue.pendingCount > 0
            let hasWork =
                !work.isEmpty || readyCount > 0 || timers.earliestDue <= tick().nanoseconds
                || foreign.withLock { !$0.work.isEmpty }
            if hasWork {
                turns += 1
                continue
            }
            guard isAwaited else { return true }
            var wake = pollfd(fd: wakeDescriptor, events: CShort(POLLIN), revents: 0)
            poll(&wake, 1, 1)
            silence += 1
        }
        return false
    }

    /// Releases pending work and timers of a loop that was turned manually and is not used any more.
    package func endTurns() {
        precondition(!running.load(ordering: .acquiring), "the loop runs")
        end()
    }

    /// Releases pending work and timers, which will not run any more.
    private func end() {
        let (late, left) = foreign.withLock { foreign in
            foreign.hasEnded = true
            defer { foreign.work = [] }
            return (foreign.work, work)
        }
        work = WorkQueue()
        while let timer = timers.first { timer.cancel() }
        let turns = turnHandlers
        turnHandlers = []
        withExtendedLifetime((late, left, turns)) {}
    }

    /// Ends `run()` after the current callback and the pending work. Safe to call from any thread, also repeatedly.
    ///
    /// Waiting tasks are not resumed, and work that arrives later does not run: end tasks first.
    public func stop() {
        foreign.withLock { $0.isStopping = true }
        wake()
    }

    /// The version of libevent, such as `2.1.12-stable`.
    public static var libraryVersion: String { event_get_version().map { String(cString: $0) } ?? "" }

    // MARK: Thread

    /// The loop that runs on the calling thread; `nil` on any other thread.
    public static var current: EventLoop? {
        csystem_current_loop().map { Unmanaged<EventLoop>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Whether the calling thread is the loop's own.
    public var isCurrent: Bool { csystem_current_loop() == Unmanaged.passUnretained(self).toOpaque() }

    /// Traps unless the caller may use the loop's state: on its thread, or while it does not run.
    func preconditionOwned() {
        precondition(isCurrent || !running.load(ordering: .acquiring), "used outside its loop's thread")
    }

    // MARK: Time

    /// The current time, read at most once per callback. On the loop's thread only.
    public var now: LoopInstant { isTimeStale ? tick() : cachedNow }

    /// Reads the clock again, for use after long work, and returns the time. On the loop's thread only.
    @discardableResult
    public func tick() -> LoopInstant {
        cachedNow = isSystemClock ? SystemLoopClock().now() : clock.now()
        isTimeStale = false
        if cachedNow.nanoseconds > missedDue { noteGap() }
        return cachedNow
    }

    /// Records that the loop has not run for a while.
    private func noteGap() {
        missedDue = .max
        resumed = cachedNow
        turnsToCatchUp = EventLoop.mostCatchUpTurns
        callbacksBefore = callbacks
    }

    /// Whether the timers must wait for the sockets. After a gap, input that has arrived meanwhile is read before timeouts are
    /// judged. libevent reports few of many ready sockets at a time, so the timers wait until a check finds no ready socket.
    private func mustCatchUp() -> Bool {
        tick()
        guard turnsToCatchUp > 0 else { return false }
        let isFirst = turnsToCatchUp == EventLoop.mostCatchUpTurns
        turnsToCatchUp -= 1
        // Only this timer's callback was made.
        if !isFirst, callbacks &- callbacksBefore == 1 { turnsToCatchUp = 0 }
        callbacksBefore = callbacks
        return turnsToCatchUp > 0
    }

    /// The wall clock time, read again at every call.
    public func wallNow() -> WallTime { isSystemClock ? SystemLoopClock().wallNow() : clock.wallNow() }

    /// The wall clock time, read at most once per callback if the clock is the system's. On the loop's thread only.
    var turnWallNow: WallTime {
        guard isSystemClock else { return clock.wallNow() }
        if isWallTimeStale {
            cachedWallNow = SystemLoopClock().wallNow()
            isWallTimeStale = false
        }
        return cachedWallNow
    }

    // MARK: Callbacks

    /// Begins a libevent callback: cached times become stale.
    func beginCallback() {
        callbacks &+= 1
        isTimeStale = true
        isWallTimeStale = true
    }

    /// Ends a libevent callback: runs the work that it queued, before the loop waits again.
    func endCallback() {
        if !work.isEmpty { drain() }
    }

    /// Runs pending work, at most `workPerTurn` pieces; the rest runs after the next check of the sockets. On the loop's thread.
    ///
    /// Does nothing if called from such work.
    public func drain() {
        if isDraining { return }
        isDraining = true
        var left = EventLoop.workPerTurn
        while left > 0, let next = work.popFirst() {
            switch next {
            case .job(let job):
                job.runSynchronously(
                    isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
            case .body(let body): body()
            }
            left &-= 1
        }
        isDraining = false
        if !work.isEmpty { arm(afterNanoseconds: 0) }
    }

    /// The number of events that wait after the current one, before the loop checks its sockets again. On the loop's thread only.
    public var readyCount: Int { Int(event_base_get_num_events(base, UInt32(EVENT_BASE_COUNT_ACTIVE))) }

    // MARK: Work

    /// Runs a closure on the loop's thread: after the current callback if called there, otherwise as soon as the loop is free.
    public func execute(_ body: @escaping @Sendable () -> Void) {
        if isCurrent { work.append(.body(body)) } else { appendForeign(.body(body)) }
    }

    /// Runs a closure after the current callback's work. On the loop's thread only, so its captures need not be `Sendable`.
    public func later(_ body: @escaping () -> Void) {
        preconditionOwned()
        work.append(.body(body))
        if !isCurrent { wake() }
    }

    /// Runs a closure on the loop's thread and returns its result. Callable from any thread, but not for a stopped loop.
    public func submit<Value: Sendable, Failure: Error>(
        _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result: Result<Value, Failure> = await withUnsafeContinuation { continuation in
            execute {
                do throws(Failure) {
                    continuation.resume(returning: .success(try body()))
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
        }
        return try result.get()
    }

    /// Resumes after the loop has checked its sockets and timers: for a task with much work, so that others get a turn.
    public func nextTurn() async {
        await withUnsafeContinuation { continuation in appendForeign(.body { continuation.resume() }) }
    }

    /// Runs a closure after the loop has checked its sockets and timers. On the loop's thread only, so its captures need not be
    /// `Sendable`.
    func nextTurn(_ body: @escaping () -> Void) {
        preconditionOwned()
        appendForeign(.body(body))
    }

    /// Takes a part of a task. Called by the Swift runtime from any thread.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if isCurrent { work.append(.job(job)) } else { appendForeign(.job(job)) }
    }

    /// Whether the calling thread is isolated to this executor. Called by the Swift runtime, for instance for `assumeIsolated`.
    public func isIsolatingCurrentContext() -> Bool? { isCurrent }

    /// Traps outside the loop's thread. Called by the Swift runtime.
    public func checkIsolated() { precondition(isCurrent, "not on the thread of loop \(name)") }

    /// This loop as the executor of an actor.
    public func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    /// This loop as the preferred executor of a task.
    public func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }

    /// Calls the handler once after all events that are ready now, so that output of many events can be sent together.
    /// The handler is retained until then. On the loop's thread only.
    public func whenTurnEnds(_ handler: any LoopTurnHandler) {
        preconditionOwned()
        turnHandlers.append(handler)
        // Queued after all ready events: libevent runs them in the order in which they became ready.
        if turnHandlers.count == 1 { event_active(turnEvent, 0, 0) }
    }

    /// The earlier events have been handled.
    fileprivate func turnEnded() {
        beginCallback()
        swap(&turnHandlers, &spareTurnHandlers)
        for handler in spareTurnHandlers { handler.turnEnded() }
        spareTurnHandlers.removeAll(keepingCapacity: true)
        endCallback()
    }

    private func appendForeign(_ work: LoopWork) {
        let isFirst = foreign.withLock { foreign in
            if foreign.hasEnded { return false }
            foreign.work.append(work)
            return foreign.work.count == 1
        }
        if isFirst { wake() }
    }

    private func wake() {
        var one: UInt64 = 1
        // EAGAIN means that the counter is full, so the loop wakes anyway; no other error is possible.
        _ = write(wakeDescriptor, &one, 8)
    }

    private func takeForeignWork() {
        foreign.withLock { foreign in
            swap(&foreign.work, &spare)
            isStopping = foreign.isStopping
        }
        for next in spare { work.append(next) }
        spare.removeAll(keepingCapacity: spare.count <= EventLoop.workPerTurn)
    }

    /// Another thread woke the loop.
    fileprivate func woken() {
        var count: UInt64 = 0
        _ = read(wakeDescriptor, &count, 8)
        beginCallback()
        takeForeignWork()
        drain()
        if isStopping { event_base_loopbreak(base) }
    }

    // MARK: Timers

    /// A timer was filed or moved: ensures that the libevent timer fires no later than the earliest of ours.
    func timersChanged() {
        let earliest = timers.earliestDue
        guard earliest < armedDue, !isFiringTimers else { return }
        let now = self.now.nanoseconds
        guard isSystemClock || earliest <= now || clock.advancesByItself else { return }
        armedDue = earliest
        if isSystemClock { missedDue = max(earliest, now) &+ EventLoop.gap }
        arm(afterNanoseconds: earliest <= now ? 0 : earliest &- now)
    }

    /// Tells the loop that its clock was moved manually: due timers fire. Safe to call from any thread.
    public func clockMoved() {
        execute { self.fireTimers() }
    }

    /// Fires the due timers, after the libevent timer fired or a clock was moved manually.
    func fireTimers() {
        let now = tick().nanoseconds
        isFiringTimers = true
        armedDue = .max
        missedDue = .max
        var left = EventLoop.workPerTurn
        while left > 0, timers.earliestDue <= now, let timer = timers.first {
            timer.reached(now)
            left &-= 1
        }
        isFiringTimers = false
        timersChanged()
    }

    private func arm(afterNanoseconds nanoseconds: Int64) {
        event_add_after(timerEvent, nanoseconds / 1000 &+ (nanoseconds % 1000 == 0 ? 0 : 1))
    }

    /// The libevent timer fired.
    fileprivate func timerDue() {
        beginCallback()
        if mustCatchUp() { arm(afterNanoseconds: EventLoop.catchUpPause) } else { fireTimers() }
        drain()
    }

    private static func makeBase() -> OpaquePointer? {
        guard let configuration = event_config_new() else { return nil }
        defer { event_config_free(configuration) }
        event_config_set_flag(configuration, Int32(EVENT_BASE_FLAG_NOLOCK.rawValue))
        return event_base_new_with_config(configuration)
    }
}

// C callbacks are outside any isolated context: inside one, they would check for it at run time and trap.

private func loopWoken(_: Int32, _: Int16, _ argument: UnsafeMutableRawPointer?) {
    guard let argument else { return }
    Unmanaged<EventLoop>.fromOpaque(argument)._withUnsafeGuaranteedRef { $0.woken() }
}

private func loopTimerDue(_: Int32, _: Int16, _ argument: UnsafeMutableRawPointer?) {
    guard let argument else { return }
    Unmanaged<EventLoop>.fromOpaque(argument)._withUnsafeGuaranteedRef { $0.timerDue() }
}

private func loopThread(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let argument else { return nil }
    let loop = Unmanaged<EventLoop>.fromOpaque(argument).takeRetainedValue()  // retained by start(name:clock:)
    csystem_name_thread(loop.name)
    loop.run()
    return nil
}

private func loopTurnEnded(_: Int32, _: Int16, _ argument: UnsafeMutableRawPointer?) {
    guard let argument else { return }
    Unmanaged<EventLoop>.fromOpaque(argument)._withUnsafeGuaranteedRef { $0.turnEnded() }
}
