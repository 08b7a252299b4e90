/// Provides a part of a file as content.
///
/// Parts in memory are sent directly, by sendfile if the connection can, or else read on the loop. Parts that must be read from the
/// disk are read on other threads. If the file becomes shorter meanwhile, the response fails: the missing part is not replaced.
///
/// Unchecked: `next` is used on the loop of the exchange only.
public final class FileSource: ContentSource, @unchecked Sendable {
    let file: OpenedFile
    /// The rest of the part.
    private(set) var left: Range<Int>
    private let queue: OffloadQueue

    /// The maximum sent at once, before checking whether the next bytes are in memory.
    private static let sentAtOnce = 2 << 20
    /// The minimum size to check, if a part is only partly in memory.
    private static let leastSent = 64 << 10
    /// The amounts read at once: on a loop, and on another thread.
    private static let readAtOnce = 64 << 10
    private static let readOffLoop = 256 << 10
    /// How many times to try while the disk queue is full, and the pause between tries.
    private static let tries = 500
    private static let pause = Duration.milliseconds(10)

    /// Makes a source for that part of the file; `queue` reads the bytes that are not in memory.
    public init(_ file: OpenedFile, _ part: Range<Int>, queue: OffloadQueue) {
        self.file = file
        self.queue = queue
        left = part
    }

    public var fileSource: FileSource? { self }

    /// The next part that can be sent without waiting for the disk; `nil` if it has to be read.
    var sendable: Range<Int>? {
        var most = FileSource.sentAtOnce
        while most >= FileSource.leastSent {
            let part = left.prefix(most)
            if !part.isEmpty, file.isCached(part) { return part }
            most /= 4
        }
        return nil
    }

    /// This many bytes were sent.
    func passed(_ count: Int) { left = left.dropFirst(count) }

    public func next(_ feed: ContentFeed) {
        guard !left.isEmpty else { return feed.finish() }
        switch file.readCached(at: left.lowerBound, atMost: min(left.count, FileSource.readAtOnce)) {
        case .bytes(let bytes):
            passed(bytes.count)
            feed.supply(bytes)
        case .end: feed.fail(FileSource.shorter)
        case .failed(let code): feed.fail(FileSource.unreadable(code))
        case .wouldWait: readElsewhere(feed, left: FileSource.tries)
        }
    }

    private func readElsewhere(_ feed: ContentFeed, left tries: Int) {
        let (file, part) = (self.file, left.prefix(FileSource.readOffLoop))
        let isTaken = queue.submit({ file.read(at: part.lowerBound, atMost: part.count) }) { read in
            switch read {
            case .bytes(let bytes) where bytes.count == part.count: feed.supply(bytes)
            case .failed(let code): feed.fail(FileSource.unreadable(code))
            case .bytes, .end, .wouldWait: feed.fail(FileSource.shorter)
            }
        }
        if isTaken { return passed(part.count) }
        guard tries > 0 else { return feed.fail("too many reads wait for the disk") }
        feed.after(FileSource.pause) { self.readElsewhere($0, left: tries - 1) }
    }

    public func cancelled() {}

    private static let shorter = "the file became shorter while it was sent"

    private static func unreadable(_ code: Int32) -> String { "the file cannot be read: \(SystemError.text(of: code))" }
}

/// Supplies parts of a file as content, with other bytes before each part and after the last one.
///
/// Unchecked: its state is used on the loop of the exchange only.
public final class FileParts: ContentSource, @unchecked Sendable {
    private enum Piece {
        case bytes([UInt8])
        case file(FileSource)
    }

    /// The remaining pieces, the next one last.
    private var left: [Piece] = []

    /// Supplies these parts, each after its head; `queue` reads bytes that are not in memory.
    public init(_ file: OpenedFile, _ parts: [(head: [UInt8], range: Range<Int>)], end: [UInt8], queue: OffloadQueue) {
        left = [.bytes(end)]
        for part in parts.reversed() {
            left += [.file(FileSource(file, part.range, queue: queue)), .bytes(part.head)]
        }
    }

    public var fileSource: FileSource? {
        guard case .file(let source)? = left.last, !source.left.isEmpty else { return nil }
        return source
    }

    public func next(_ feed: ContentFeed) {
        switch left.last {
        case .file(let source)? where !source.left.isEmpty: source.next(feed)
        case .file?:
            left.removeLast()
            next(feed)
        case .bytes(let bytes)?:
            left.removeLast()
            feed.supply(bytes)
        case nil: feed.finish()
        }
    }

    public func cancelled() {}
}
