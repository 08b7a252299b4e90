/// Receives a timer's event.
public protocol LoopTimerHandler: AnyObject {
    /// The timer has fired. It is cleared, and may be set again. Called on the loop's thread.
    func timerFired(_ timer: LoopTimer)
}

/// A timer of one loop that can be set repeatedly at no cost. Used on the loop's thread only.
///
/// Setting it later, or clearing it, only stores a value: the timer stays filed under the earlier time, and the loop files it again when
/// that time comes. So a deadline that moves with every read costs nothing. Only setting it earlier moves it at once.
///
/// The handler owns its timer, not the reverse. The reference back is `unowned`: when a handler is freed, so is its
/// timer, which then removes itself. Owners that close call `cancel()`.
public final class LoopTimer: TimerHeapNode {
    /// The loop on whose thread the timer fires.
    public let loop: EventLoop

    /// Receives the event. Set by the owner after its own initialisation, once.
    public unowned var handler: (any LoopTimerHandler)?

    /// When the timer fires, in nanoseconds; `Int64.max` if it is not set. May be later than the time that it is filed under.
    private(set) var dueNanoseconds: Int64 = .max

    /// The index in the loop's heap; -1 outside.
    var heapIndex: Int32 = -1

    /// Whether the handler is a `ScheduledWork`, retained until it has fired or is cancelled.
    private var ownsHandler = false

    /// Makes a timer that is not set.
    public init(loop: EventLoop, handler: (any LoopTimerHandler)? = nil) {
        self.loop = loop
        self.handler = handler
    }

    /// Makes a timer that retains its work until it has fired or is cancelled.
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

    /// When the timer fires; `nil` if it is not set.
    public var due: LoopInstant? { isSet ? LoopInstant(nanoseconds: dueNanoseconds) : nil }

    /// Sets the timer to an instant, replacing the previous one. A past instant fires as soon as the loop is free.
    public func set(due: LoopInstant) { set(dueNanoseconds: due.nanoseconds) }

    /// Sets the timer to fire after a duration, counted from the loop's current time.
    public func set(after duration: Duration) {
        set(dueNanoseconds: loop.now.advanced(byNanoseconds: duration.nanoseconds).nanoseconds)
    }

    /// Sets the timer in nanoseconds of the loop's clock; `Int64.max` clears it.
    func set(dueNanoseconds due: Int64) {
        let before = dueNanoseconds
        dueNanoseconds = due
        if heapIndex >= 0 {
            if due >= before { return }  // never filed later than its previous due time
            guard due < loop.timers.due(of: self) else { return }
            loop.timers.move(self, due: due)
        } else {
            guard due != .max else { return }
            loop.timers.insert(self, due: due)
        }
        loop.timersChanged()
    }

    /// Clears the timer: it does not fire until it is set again. This only stores a value; the timer stays filed until its time comes.
    public func clear() { dueNanoseconds = .max }

    /// Clears the timer and removes it from the loop: for an owner that closes.
    public func cancel() {
        dueNanoseconds = .max
        if heapIndex >= 0 { loop.timers.remove(self) }
        releaseHandler()
    }

    /// The time under which the timer is filed has come. Called by the loop.
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
    /// Runs a closure once after a duration, unless the returned timer is cancelled. For rare uses, because it allocates.
    ///
    /// The timer need not be kept. Call this on the loop's thread.
    @discardableResult
    public func schedule(after duration: Duration, _ body: @escaping () -> Void) -> LoopTimer {
        let work = ScheduledWork(body)
        let timer = LoopTimer(loop: self, owning: work)
        work.timer = timer
        timer.set(after: duration)
        return timer
    }
}
