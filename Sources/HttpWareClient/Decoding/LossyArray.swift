/// An array that skips elements that cannot be decoded, and keeps their errors. Use it for lists from a server that
/// might contain faulty elements.
public struct LossyArray<Element: Decodable & Sendable>: Decodable, Sendable {
    /// The elements that could be decoded, in order.
    public let elements: [Element]
    /// The positions of the skipped elements, and their errors.
    public let skipped: [(index: Int, error: any Error)]

    public init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        var elements: [Element] = []
        var skipped: [(index: Int, error: any Error)] = []
        while !container.isAtEnd {
            let index = container.currentIndex
            do {
                elements.append(try container.decode(Element.self))
            } catch {
                skipped.append((index, error))
                // A failed decode does not advance, so any value is decoded to skip the element.
                if container.currentIndex == index { _ = try container.decode(Anything.self) }
            }
        }
        self.elements = elements
        self.skipped = skipped
    }

    private struct Anything: Decodable {
        init(from decoder: any Decoder) {}
    }
}

extension LossyArray: RandomAccessCollection {
    public var startIndex: Int { 0 }
    public var endIndex: Int { elements.count }
    public subscript(index: Int) -> Element { elements[index] }
}
