import HttpWare

/// Content in separate pages, which the kernel sends directly.
final class MemoryContent: StoredContentReader {
    private let memory: PageMemory

    /// Content in memory that is complete and no longer written.
    init(_ memory: PageMemory) { self.memory = memory }

    var count: Int { memory.count }
    var size: Int { memory.size }
    var inMemory: [UInt8]? { memory.bytes(0..<count) }

    func source(of part: Range<Int>) -> any ContentSource { Source(memory, part) }

    /// Unchecked: `left` is used only on the loop of the exchange.
    private final class Source: ContentSource, @unchecked Sendable {
        private let memory: PageMemory
        private var left: Range<Int>

        private static let piece = 64 * 1024

        init(_ memory: PageMemory, _ range: Range<Int>) {
            self.memory = memory
            left = range
        }

        var pages: (memory: PageMemory, range: Range<Int>)? { (memory, left) }

        func next(_ feed: ContentFeed) {
            guard !left.isEmpty else { return feed.finish() }
            let range = left.lowerBound..<min(left.upperBound, left.lowerBound + Source.piece)
            left = range.upperBound..<left.upperBound
            feed.supply(memory.bytes(range))
        }

        func cancelled() {}
    }
}
