/// Provides the content of a response while it is sent: events over time, or a stored response on a disk.
///
/// A source is asked for one piece at a time, and for the next only when the client accepts more: for a slow client, at most
/// one piece is buffered, whatever the total length is.
public protocol ContentSource: AnyObject, Sendable {
    /// Asks for the next piece: answer on the feed, once, now or later, from any thread. Called on the loop of the exchange,
    /// which must not be blocked: blocking work must run on another thread.
    func next(_ feed: ContentFeed)
    /// The rest is not needed: the client left, or another response replaced this one. Called on the loop of the
    /// exchange, at most once, and not after the source finished or failed. A later answer is dropped.
    func cancelled()
    /// The whole content, if it is in memory pages: then it may be sent directly, without asking the source for pieces.
    var pages: (memory: PageMemory, range: Range<Int>)? { get }
    /// This source, if it provides a part of a file, which may be sent without being read.
    var fileSource: FileSource? { get }
}

extension ContentSource {
    public var pages: (memory: PageMemory, range: Range<Int>)? { nil }
    public var fileSource: FileSource? { nil }
}

/// Takes the answers of a source.
///
/// Unchecked: `take` is used on the loop only.
public final class ContentFeed: @unchecked Sendable {
    /// The answer of a source.
    enum Piece: Sendable {
        case bytes([UInt8])
        case end
        case failed(String)
    }

    private let loop: EventLoop
    /// Receives the answer; `nil` if it is no longer needed. Changed on the loop only.
    var take: ((Piece) -> Void)?

    init(loop: EventLoop) { self.loop = loop }

    /// Answers with the next piece. A source is asked again when the client accepts more, also after an empty piece.
    public func supply(_ bytes: [UInt8]) { supplyPiece(.bytes(bytes)) }

    /// Answers that the content is complete.
    public func finish() { supplyPiece(.end) }

    /// Answers that the content failed: the client must not take the received part for complete. The reason goes to the log.
    public func fail(_ reason: String) { supplyPiece(.failed(reason)) }

    /// Calls `body` later, on the loop: for timed content. Call this on the loop of the exchange.
    public func after(_ duration: Duration, _ body: @escaping (ContentFeed) -> Void) {
        loop.schedule(after: duration) { body(self) }
    }

    private func supplyPiece(_ piece: Piece) {
        if loop.isCurrent { take?(piece) } else { loop.execute { self.take?(piece) } }
    }
}
