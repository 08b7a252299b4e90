/// Brings the content of a response while it is sent: events that come over time, a stored response on a disk.
///
/// A source is asked for one piece at a time, and for the next only when the client takes more: what waits for a slow client
/// is one piece, whatever the length of the whole.
public protocol ContentSource: AnyObject, Sendable {
    /// The next piece is wanted: answer on the feed, once, now or later, from any thread. Called on the loop of the exchange,
    /// which must not wait: what blocks answers from a thread of its own.
    func next(_ feed: ContentFeed)
    /// Nothing more is wanted: the client left, or another response took this one's place. Called on the loop of the
    /// exchange, at most once, and not after the source finished or failed. An answer that is still given is dropped.
    func cancelled()
    /// All of its content, where it is in pages of its own: then it may be sent from there, and the source is not asked for a piece.
    var pages: (memory: PageMemory, range: Range<Int>)? { get }
    /// Itself, where it brings a part of a file, which may be sent without having been read.
    var fileSource: FileSource? { get }
}

extension ContentSource {
    public var pages: (memory: PageMemory, range: Range<Int>)? { nil }
    public var fileSource: FileSource? { nil }
}

/// Where a source answers.
///
/// Unchecked: `take` is touched on the loop only.
public final class ContentFeed: @unchecked Sendable {
    /// What a source answers.
    enum Piece: Sendable {
        case bytes([UInt8])
        case end
        case failed(String)
    }

    private let loop: EventLoop
    /// Who wants it; `nil` when nobody does any more. Changed on the loop only.
    var take: ((Piece) -> Void)?

    init(loop: EventLoop) { self.loop = loop }

    /// Answers with the next piece. A source is asked again when the client takes more, also after an empty piece.
    public func supply(_ bytes: [UInt8]) { supplyPiece(.bytes(bytes)) }

    /// Answers that the content is whole.
    public func finish() { supplyPiece(.end) }

    /// Answers that the content cannot be brought: the client must not take what it has for whole. The reason goes to the log.
    public func fail(_ reason: String) { supplyPiece(.failed(reason)) }

    /// Answers later, on the loop: for content that comes by the clock. Call it on the loop of the exchange.
    public func after(_ duration: Duration, _ body: @escaping (ContentFeed) -> Void) {
        loop.schedule(after: duration) { body(self) }
    }

    private func supplyPiece(_ piece: Piece) {
        if loop.isCurrent { take?(piece) } else { loop.execute { self.take?(piece) } }
    }
}
