import HttpCaching
import HttpWare
import Synchronization

/// The content of a response on the disk. While it is retained, the file keeps the content, even if the response is
/// removed.
final class DiskContent: StoredContentReader {
    let store: DiskStore
    let hash: UInt64
    let number: UInt64
    let version: UInt32
    let count: Int
    /// The content, if it came with the record.
    let atHand: [UInt8]?

    /// Made by the store, which counts the readers.
    init(_ store: DiskStore, hash: UInt64, item: DiskItem, count: Int, atHand: [UInt8]?) {
        self.store = store
        self.hash = hash
        number = item.number
        version = item.version
        self.count = count
        self.atHand = atHand
    }

    deinit { store.endReading(number) }

    func source(of part: Range<Int>) -> any ContentSource {
        DiskSource(self, part.clamped(to: 0..<count))
    }
}

/// Supplies a part of the content, one piece of the file at a time. Between two pieces it holds only its position.
///
/// The mutex is never contended, because one piece is requested at a time.
final class DiskSource: ContentSource {
    private let content: DiskContent
    private let part: Range<Int>
    private let next: Mutex<Int>
    /// The maximum number of tries while too many requests wait for the disk, and the pause between them.
    private static let tries = 500
    private static let pause = Duration.milliseconds(10)

    init(_ content: DiskContent, _ part: Range<Int>) {
        self.content = content
        self.part = part
        next = Mutex(part.lowerBound)
    }

    func next(_ feed: ContentFeed) {
        let start = next.withLock { $0 }
        guard start < part.upperBound else { return feed.finish() }
        if let bytes = content.atHand {
            next.withLock { $0 = part.upperBound }
            return feed.supply(Array(bytes[part]))
        }
        ask(feed, from: start, left: DiskSource.tries)
    }

    private func ask(_ feed: ContentFeed, from start: Int, left: Int) {
        let place = start / DiskChunk.size
        let first = place * DiskChunk.size
        let isAsked = content.store.read({ file in try? file.chunk(self.content.number, place) }) { chunk in
            let end = min(self.part.upperBound, first + DiskChunk.size)
            guard let chunk = chunk ?? nil, chunk.count >= end - first else {
                self.content.store.drop(self.content)
                return feed.fail("a stored response cannot be read from the disk")
            }
            self.next.withLock { $0 = end }
            feed.supply(chunk.count == end - start ? chunk : Array(chunk[(start - first)..<(end - first)]))
        }
        if isAsked { return }
        guard left > 0 else { return feed.fail("too many bytes wait for the disk") }
        feed.after(DiskSource.pause) { self.ask($0, from: start, left: left - 1) }
    }

    func cancelled() {}
}
