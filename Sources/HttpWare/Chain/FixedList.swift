/// Elements that never change, read in place: each read of an array would count a reference.
///
/// Unchecked: written in `init` only. The owner frees the list, and must be alive while it is read.
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

    /// Calls `each` on every element, then frees the memory. Called once, by the owner.
    func free(_ each: (Element) -> Void) {
        for index in 0..<count { each(base[index]) }
        base.deinitialize(count: count)
        base.deallocate()
    }
}
