import HttpCaching
import HttpWare

/// A stored response in Redis: the mark of its content, 32 hexadecimal digits, followed by its `StoredRecord`.
struct RedisRecord {
    let mark: [UInt8]
    let record: StoredRecord

    /// The content of each piece but the last, in bytes. With its checksum, a piece has 256 KiB.
    static let chunkSize = (256 << 10) - 8
    /// The maximum length of a record, in bytes: enough for a head from upstream and its key.
    static let longest = 96 << 10
    private static let markBytes = 32

    /// A new random mark, which is never used twice.
    static func makeMark() -> [UInt8] {
        (0..<markBytes).map { _ in Hex.lower(UInt8.random(in: 0..<16)) }
    }

    /// Reads a value from Redis; `nil` if no gateway wrote it.
    init?(_ bytes: [UInt8]) {
        let mark = Array(bytes.prefix(RedisRecord.markBytes))
        guard mark.count == RedisRecord.markBytes,
            mark.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }),
            let record = StoredRecord(Array(bytes.dropFirst(RedisRecord.markBytes)))
        else { return nil }
        self.mark = mark
        self.record = record
    }

    /// The record of a response without its mark; `nil` if it is too long.
    static func bytes(_ key: CacheKey, _ head: StoredHead, length: Int) -> [UInt8]? {
        guard let bytes = StoredRecord(key: key, head: head, length: length).bytes, bytes.count <= longest else {
            return nil
        }
        return bytes
    }

    /// The name of the hash field of a response, which distinguishes the responses under one key.
    static func variant(of vary: VaryKey) -> RedisArgument {
        RedisArgument(String(StoredRecord.variant(of: vary), radix: 16))
    }

    /// The number of pieces of content of that length.
    static func chunks(_ length: Int) -> Int { length / chunkSize + (length % chunkSize == 0 ? 0 : 1) }

    /// A piece in Redis: the checksum, then the content.
    static func chunk(_ content: ArraySlice<UInt8>) -> RedisArgument { RedisArgument(StoredChunk.bytes(content)) }

    /// The content of the piece at this index, if the whole content has `length` bytes; `nil` if the piece is damaged or has
    /// a wrong length.
    static func content(_ reply: RedisReply, at place: Int, of length: Int) -> [UInt8]? {
        guard let bytes = reply.bytes, let content = bytes.withUnsafeBytes({ StoredChunk.content($0) }),
            content.count == min(chunkSize, length - place * chunkSize)
        else { return nil }
        return content
    }

    /// How long Redis keeps the response: while it is fresh, and then for a day or as long as it may be used stale. In this
    /// time it can be validated. At most one year.
    static func lifetime(_ head: StoredHead, at now: WallTime) -> Duration {
        let day: Int64 = 86_400
        let fresh = max(0, Int64(head.rules.lifetime) - max(0, head.age(at: now)) / 1_000_000_000)
        let stale = max(day, Int64(head.rules.staleWhileRevalidate ?? 0), Int64(head.rules.staleIfError ?? 0))
        return .seconds(min(fresh + stale, 365 * day))
    }
}
