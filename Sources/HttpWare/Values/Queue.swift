/// Elements in order of arrival: appending at the end and removing the first element take constant time on average.
///
/// Removed elements are released at once. Their places are freed when they are more than half of all.
@frozen
public struct Queue<Element> {
    @usableFromInline var places: [Element?]
    /// The place of the first element.
    @usableFromInline var head = 0

    @inlinable public init() { places = [] }

    /// Removes the first element and returns it. Returns `nil` if the queue is empty.
    @inlinable
    public mutating func popFirst() -> Element? {
        guard head < places.count else { return nil }
        let element = places[head].take()
        head += 1
        if head == places.count {
            // The memory of a long queue is given back.
            places.removeAll(keepingCapacity: head <= 64)
            head = 0
        } else if head >= 32, head > places.count / 2 {
            places.removeFirst(head)
            head = 0
        }
        return element
    }
}

extension Queue: Sendable where Element: Sendable {}

extension Queue: RandomAccessCollection, RangeReplaceableCollection {
    @inlinable public var startIndex: Int { 0 }
    @inlinable public var endIndex: Int { places.count - head }

    @inlinable
    public subscript(position: Int) -> Element {
        // Never empty: only `popFirst` empties a place, and then the head is behind it. Positions are the queue's own, 0 to the
        // end; nothing that a peer or a file contains is one.
        guard let element = places[head + position] else { preconditionFailure("a place before the first element") }
        return element
    }

    @inlinable
    public mutating func remove(at position: Int) -> Element {
        if position == 0, let first = popFirst() { return first }
        defer { places.remove(at: head + position) }
        return self[position]
    }

    @inlinable public mutating func append(_ element: Element) { places.append(element) }

    @inlinable
    public mutating func replaceSubrange(_ range: Range<Int>, with elements: some Collection<Element>) {
        places.replaceSubrange(
            head + range.lowerBound..<head + range.upperBound, with: elements.map(Optional.some))
    }
}

extension Queue: ExpressibleByArrayLiteral {
    @inlinable public init(arrayLiteral elements: Element...) { places = elements.map(Optional.some) }
}
