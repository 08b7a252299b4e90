/// A piece of work that waits for its loop.
// @unchecked Sendable: a job may cross threads by its nature. A body comes from another thread only as a @Sendable closure
// (EventLoop.execute); any other body is added by the loop's own thread, which runs it (EventLoop.later, EventLoop.nextTurn).
enum LoopWork: @unchecked Sendable {
    /// A part of a Swift task, up to its next suspension.
    case job(UnownedJob)

    /// A closure given to `execute`.
    case body(() -> Void)
}

/// A ring-buffer queue that grows as needed and never shrinks: first in, first out, without allocation once it is large enough.
struct WorkQueue {
    private var slots: [LoopWork?]
    private var head = 0

    /// The number of pending pieces.
    private(set) var count = 0

    /// Makes an empty queue with room for `capacity` pieces, a power of two.
    init(capacity: Int = 64) {
        precondition(capacity > 0 && capacity & (capacity - 1) == 0)
        slots = Array(repeating: nil, count: capacity)
    }

    /// Whether no work is pending.
    var isEmpty: Bool { count == 0 }

    /// Appends a piece at the end.
    mutating func append(_ work: LoopWork) {
        if count == slots.count { grow() }
        slots[(head &+ count) & (slots.count &- 1)] = work
        count &+= 1
    }

    /// Takes the first piece; `nil` if none is pending.
    mutating func popFirst() -> LoopWork? {
        guard count > 0 else { return nil }
        let work = slots[head].take()
        head = (head &+ 1) & (slots.count &- 1)
        count &-= 1
        return work
    }

    private mutating func grow() {
        var larger: [LoopWork?] = []
        larger.reserveCapacity(slots.count * 2)
        larger.append(contentsOf: slots[head...])
        larger.append(contentsOf: slots[..<head])
        larger.append(contentsOf: repeatElement(nil, count: slots.count))
        slots = larger
        head = 0
    }
}
