/// A member of a `TimerHeap`, which stores its own place in it.
protocol TimerHeapNode: AnyObject {
    /// The index in the heap, set by the heap; -1 outside.
    var heapIndex: Int32 { get set }
}

/// A four-ary heap of nodes by due time. Each node knows its index, so that moving or removing one is O(log n).
///
/// It does not retain its nodes: a node must remove itself before it is freed.
struct TimerHeap<Node: TimerHeapNode> {
    private struct Entry {
        var due: Int64
        let node: Unmanaged<Node>
    }

    private var entries: [Entry] = []

    /// The number of nodes in the heap.
    var count: Int { entries.count }

    /// The earliest due time in nanoseconds; `Int64.max` if the heap is empty.
    var earliestDue: Int64 { entries.isEmpty ? .max : entries[0].due }

    /// The node with the earliest due time; any of them if several are equal.
    var first: Node? { entries.first?.node.takeUnretainedValue() }

    /// The due time under which a node is filed.
    func due(of node: Node) -> Int64 { entries[Int(node.heapIndex)].due }

    /// Inserts a node that is not in a heap.
    mutating func insert(_ node: Node, due: Int64) {
        precondition(node.heapIndex < 0, "the node is in a heap already")
        entries.append(Entry(due: due, node: .passUnretained(node)))
        siftUp(from: entries.count - 1)
    }

    /// Files a node under another due time.
    mutating func move(_ node: Node, due: Int64) {
        let index = Int(node.heapIndex)
        let before = entries[index].due
        entries[index].due = due
        if due < before { siftUp(from: index) } else { siftDown(from: index) }
    }

    /// Removes a node.
    mutating func remove(_ node: Node) {
        let index = Int(node.heapIndex)
        node.heapIndex = -1
        let last = entries.removeLast()
        guard index < entries.count else { return }
        let removed = entries[index].due
        entries[index] = last
        if last.due < removed { siftUp(from: index) } else { siftDown(from: index) }
    }

    private mutating func siftUp(from start: Int) {
        let entry = entries[start]
        var index = start
        while index > 0 {
            let parent = (index &- 1) >> 2
            if entries[parent].due <= entry.due { break }
            place(entries[parent], at: index)
            index = parent
        }
        place(entry, at: index)
    }

    private mutating func siftDown(from start: Int) {
        let entry = entries[start]
        let count = entries.count
        var index = start
        while true {
            let firstChild = index &* 4 &+ 1
            if firstChild >= count { break }
            var least = firstChild
            for child in firstChild + 1..<Swift.max(firstChild + 1, Swift.min(firstChild + 4, count))
            where entries[child].due < entries[least].due {
                least = child
            }
            if entries[least].due >= entry.due { break }
            place(entries[least], at: index)
            index = least
        }
        place(entry, at: index)
    }

    private mutating func place(_ entry: Entry, at index: Int) {
        entries[index] = entry
        entry.node._withUnsafeGuaranteedRef { $0.heapIndex = Int32(truncatingIfNeeded: index) }
    }
}
