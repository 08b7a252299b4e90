/// Elements that never change, read in place: an array's would be counted as references, each time.
///
/// Unchecked: written in `init` only. Its owner frees it, and is held while it is read.
struct FixedList<Element: Sendable>: @unchecked Sendable {
    private let base: UnsafeMutablePointer<Element>
    let count: Int

    init(_ elements: [Element]) {
        count = elements.count
        base = .allocate(capacity: max(1, elements.count))
        base.initialize(from: elements, count: elements.count)
    }

    var isEmpty: Bool { count == 0 }

    subscript(index: Int) -> Element {
        @inline(__always) _read {
            precondition(index >= 0 && index < count)
            yield base[index]
        }
    }

    /// Gives each element up, then the memory: once, by the owner.
    func free(_ each: (Element) -> Void) {
        for index in 0..<count { each(base[index]) }
        base.deinitialize(count: count)
        base.deallocate()
    }
}
