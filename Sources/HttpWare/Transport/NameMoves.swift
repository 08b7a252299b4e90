import Synchronization

/// Tells the monitor of a name that a connection to one of its addresses failed, or is slow: the server may have moved. Shared by all
/// loops.
final class NameMoves: Sendable {
    private let handler = ThreadLock<(@Sendable () -> Void)?>(nil)
    /// When the monitor may be told again, in nanoseconds of the loops' clock.
    private let due = Atomic<Int64>(.min)

    /// How often the monitor is told, at most.
    static let interval = Duration.milliseconds(250)

    /// Sets the function that looks the name up again; `nil` removes it. Any loop calls it, so it must pass the work on.
    func tell(_ handler: (@Sendable () -> Void)?) { self.handler.withLock { $0 = handler } }

    /// A connection to an address of the name failed, or is slow.
    func note(at now: LoopInstant) {
        let former = due.load(ordering: .relaxed)
        guard now.nanoseconds >= former else { return }
        let next = (now + NameMoves.interval).nanoseconds
        // Of several loops, one tells.
        guard due.compareExchange(expected: former, desired: next, ordering: .relaxed).exchanged else { return }
        handler.withLock { $0 }?()
    }
}
