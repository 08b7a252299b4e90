import HttpCaching
import HttpWare

/// A response that is being written to Redis: pieces are joined to the size that Redis stores, and sent when they are
/// full.
final class RedisWriter: StoreWriter {
    private let store: RedisStore
    private let key: CacheKey
    private let mark = RedisRecord.makeMark()
    private let writing = StoreWriting()
    private var buffer: [UInt8] = []
    private var length = 0
    private var sent = 0
    private var hasEnded = false

    /// Unfinished content expires after this time.
    private static let unfinished = Duration.seconds(600)

    init(_ store: RedisStore, _ key: CacheKey) {
        self.store = store
        self.key = key
    }

    deinit { cancel() }

    func append(_ piece: [UInt8]) -> Bool {
        guard !hasEnded, !writing.hasFailed else {
            cancel()
            return false
        }
        length += piece.count
        buffer += piece
        while buffer.count > RedisRecord.chunkSize {
            send(buffer.prefix(RedisRecord.chunkSize))
            buffer.removeFirst(RedisRecord.chunkSize)
        }
        return !writing.hasFailed
    }

    private func send(_ content: ArraySlice<UInt8>) {
        let target = store.content(mark, of: key)
        let writing = writing
        let note: @Sendable (Result<RedisReply, RedisFailure>) -> Void = { if case .failure = $0 { writing.fail() } }
        let number = RedisArgument(sent)
        store.client.send(
            ["HSET", target, number, RedisRecord.chunk(content)], within: RedisStore.patience, completion: note)
        if sent == 0 {
            let time = RedisArgument(milliseconds: RedisWriter.unfinished)
            store.client.send(["PEXPIRE", target, time], within: RedisStore.patience, completion: note)
        }
        sent += 1
    }

    func finish(_ head: StoredHead) {
        guard !hasEnded, !writing.hasFailed, let record = RedisRecord.bytes(key, head, length: length) else {
            return cancel()
        }
        hasEnded = true
        let whole = sent == 0 ? buffer : nil
        if !buffer.isEmpty { send(buffer[...]) }
        buffer = []
        store.finish(key, head, mark: mark, record: record, chunks: sent, whole: whole)
    }

    func cancel() {
        guard !hasEnded else { return }
        hasEnded = true
        buffer = []
        if sent > 0 { store.client.send(["UNLINK", store.content(mark, of: key)], within: RedisStore.patience) }
    }
}
