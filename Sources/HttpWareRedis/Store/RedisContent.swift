import HttpCaching
import HttpWare
import Synchronization

/// The content of a response in Redis.
final class RedisContent: StoredContentReader {
    fileprivate let client: RedisClient
    /// The key of the hash with its pieces.
    fileprivate let key: RedisArgument
    let count: Int
    /// The first piece, if it came with the record.
    fileprivate let first: [UInt8]?

    init(_ client: RedisClient, key: RedisArgument, count: Int, first: [UInt8]?) {
        self.client = client
        self.key = key
        self.count = count
        self.first = first
    }

    func source(of part: Range<Int>) -> any ContentSource { RedisSource(self, part.clamped(to: 0..<count)) }
}

/// Supplies a part of the content, one piece at a time. If the server is unreachable, it waits for some seconds, because the
/// client has received the beginning already.
///
/// The mutex is never contended, because one piece is requested at a time.
private final class RedisSource: ContentSource {
    private let content: RedisContent
    private let end: Int
    private let place: Mutex<Int>
    private static let tries = 50
    private static let pause = Duration.milliseconds(100)
    private static let patience = Duration.seconds(1)

    init(_ content: RedisContent, _ part: Range<Int>) {
        self.content = content
        end = part.upperBound
        place = Mutex(part.lowerBound)
    }

    func next(_ feed: ContentFeed) {
        let start = place.withLock { $0 }
        guard start < end else { return feed.finish() }
        let number = start / RedisRecord.chunkSize
        if number == 0, let first = content.first { return supply(first, number, from: start, feed) }
        ask(number, from: start, feed, left: RedisSource.tries)
    }

    private func ask(_ number: Int, from start: Int, _ feed: ContentFeed, left: Int) {
        content.client.send(["HGET", content.key, RedisArgument(number)], within: RedisSource.patience) { result in
            switch result {
            case .success(let reply):
                guard let piece = RedisRecord.content(reply, at: number, of: self.content.count) else {
                    return feed.fail("the rest of a stored response is no longer in Redis, or damaged")
                }
                self.supply(piece, number, from: start, feed)
            case .failure(let failure):
                guard left > 1 else { return feed.fail("a stored response cannot be read from Redis: \(failure)") }
                feed.after(RedisSource.pause) { self.ask(number, from: start, $0, left: left - 1) }
            }
        }
    }

    /// Supplies the rest of a piece. `number` is the number of the piece, which contains the offset `start`.
    private func supply(_ piece: [UInt8], _ number: Int, from start: Int, _ feed: ContentFeed) {
        let first = number * RedisRecord.chunkSize
        let stop = min(end, first + piece.count)
        place.withLock { $0 = stop }
        feed.supply(stop - start == piece.count ? piece : Array(piece[(start - first)..<(stop - first)]))
    }

    func cancelled() {}
}
