/// What a timer tells when its time has come.
public protocol LoopTimerHandler: AnyObject {
    /// The timer is due. It is not set any more and may be set again. Called on the loop's thread.
    func timerFired(_ timer: LoopTimer)
}

/// A timer of one loop, set again and again without cost. Used on the loop's thread only.
///
/// To set it later, or to clear it, is one store: it stays filed under the earlier time, and the loop files it anew when
/// that comes. So a deadline that moves with every read costs nothing. Only setting it earlier moves it at once.
///
/// The handler owns its timer and not the other way round. The reference back is `unowned`: a handler that goes takes its
/// timer along, which then removes itself. Owners that close call `cancel()`.
public final class LoopTimer: TimerHeapNode {
    /// The loop on whose thread the timer fires.
    public let loop: EventLoop

    /// Who is told. Set by the owner after its own initialisation, once.
    public unowned var handler: (any LoopTimerHandler)?

    /// When the timer shall fire, in nanoseconds; `Int64.max` when it is not set. May be later than what it is filed under.
    private(set) var dueNanoseconds: Int64 = .max

    /// The place in the loop's heap; -1 outside.
    var heapIndex: Int32 = -1

    /// Whether the handler is a `ScheduledWork`, retained until it has fired or is cancelled.
    private var ownsHandler = false

    /// Makes a timer that is not set.
    public init(loop: EventLoop, handler: (any LoopTimerHandler)? = nil) {
        self.loop = loop
        self.handler = handler
    }

    /// Makes a timer that keeps its work alive until it has fired or is cancelled.
    fileprivate init(loop: EventLoop, owning work: ScheduledWork) {
        self.loop = loop
        handler = work
        ownsHandler = true
        _ = Unmanaged.passRetained(work)  // released by releaseHandler()
    }

    deinit {
        guard heapIndex >= 0 else { return }
        loop.preconditionOwned()
        loop.timers.remove(self)
    }

    /// Whether the timer is set.
    public var isSet: Bool { dueNanoseconds != .max }

    /// When the timer fires; `nil` when it is not set.
    public var due: LoopInstant? { isSet ? LoopInstant(nanoseconds: dueNanoseconds) : nil }

    /// Sets the timer to an instant, in place of what was set before. One that is past fires as soon as the loop is free.
    public func set(due: LoopInstant) { set(dueNanoseconds: due.nanoseconds) }

    /// Sets the timer to fire after a duration, counted from the loop's present time.
    public func set(after duration: Duration) {
        set(dueNanoseconds: loop.now.advanced(byNanoseconds: duration.nanoseconds).nanoseconds)
    }

    /// Sets the timer in nanoseconds of the loop's clock; `Int64.max` clears it.
    func set(dueNanoseconds due: Int64) {
        let before = dueNanoseconds
        dueNanoseconds = due
        if heapIndex >= 0 {
            if due >= before { return }  // never filed later than it was due before
            guard due < loop.timers.due(of: self) else { return }
            loop.timers.move(self, due: due)
        } else {
            guard due != .max else { return }
            loop.timers.insert(self, due: due)
        }
        loop.timersChanged()
    }

    /// Clears the timer: it does not fire until it is set again. One store; it stays filed until its time comes.
    public func clear() { dueNanoseconds = .max }

    /// Clears the timer and removes it from the loop: for an owner that closes.
    public func cancel() {
        dueNanoseconds = .max
        if heapIndex >= 0 { loop.timers.remove(self) }
        releaseHandler()
    }

    /// Called by the loop when the time under which the timer is filed has come.
    func reached(_ now: Int64) {
        if dueNanoseconds == .max {
            loop.timers.remove(self)
        } else if dueNanoseconds > now {
            loop.timers.move(self, due: dueNanoseconds)
        } else {
            loop.timers.remove(self)
            dueNanoseconds = .max
            let handler = self.handler
            releaseHandler()
            handler?.timerFired(self)
        }
    }

    private func releaseHandler() {
        guard ownsHandler, let work = handler else { return }
        ownsHandler = false
        handler = nil
        Unmanaged.passUnretained(work as AnyObject).release()  // retained by init(loop:owning:)
    }
}

/// A closure that runs once.
private final class ScheduledWork: LoopTimerHandler {
    let body: () -> Void
    var timer: LoopTimer?

    init(_ body: @escaping () -> Void) { self.body = body }

    func timerFired(_ timer: LoopTimer) {
        self.timer = nil
        body()
    }
}

extension EventLoop {
    /// Runs a closure once after a duration, unless the timer answered is cancelled. For rare uses: it allocates.
    ///
    /// The timer need not be kept. Call it on the loop's thread.
    @discardableResult
    public func schedule(after duration: Duration, _ body: @escaping () -> Void) -> LoopTimer {
        let work = ScheduledWork(body)
        let timer = LoopTimer(loop: self, owning: work)
        work.timer = timer
        timer.set(after: duration)
        return timer
    }
}
