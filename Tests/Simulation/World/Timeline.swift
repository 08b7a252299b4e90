import HttpWare
import Synchronization

/// The clock of a simulated world, and the events that wait for their time.
final class Timeline {
    /// The clock as loops see it. It stands still until the timeline moves it.
    final class Clock: LoopClock {
        private let time = Atomic<Int64>(0)

        func now() -> LoopInstant { LoopInstant(nanoseconds: time.load(ordering: .relaxed)) }
        func wallNow() -> WallTime { WallTime(seconds: Timeline.origin) + .nanoseconds(now().nanoseconds) }
        var advancesByItself: Bool { false }

        fileprivate func move(to nanoseconds: Int64) { time.store(nanoseconds, ordering: .relaxed) }
    }

    /// The wall clock time at which each world begins: 2026-01-01T00:00:00Z.
    static let origin: Int64 = 1_767_225_600

    let clock = Clock()
    private var events: [(due: Int64, number: Int, body: () -> Void)] = []
    private var count = 0

    /// Nanoseconds since the world began.
    private(set) var now: Int64 = 0

    /// The time of the next event.
    var nextDue: Int64? { events.first?.due }

    /// Runs the body after this many microseconds.
    func after(_ microseconds: Int, _ body: @escaping () -> Void) {
        at(now + Int64(max(0, microseconds)) * 1000, body)
    }

    private func at(_ due: Int64, _ body: @escaping () -> Void) {
        count += 1
        events.append((due, count, body))
        var child = events.count - 1
        while child > 0, isBefore(child, (child - 1) / 2) {
            events.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// Moves the clock, and runs the events that are due then, in the order of their times.
    func move(to nanoseconds: Int64) {
        now = max(now, nanoseconds)
        clock.move(to: now)
        while let first = events.first, first.due <= now {
            takeFirst()
            first.body()
        }
    }

    func clear() { events = [] }

    private func takeFirst() {
        events.swapAt(0, events.count - 1)
        events.removeLast()
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < events.count && isBefore(child, least) {
                least = child
            }
            guard least != parent else { return }
            events.swapAt(parent, least)
            parent = least
        }
    }

    private func isBefore(_ left: Int, _ right: Int) -> Bool {
        (events[left].due, events[left].number) < (events[right].due, events[right].number)
    }
}
