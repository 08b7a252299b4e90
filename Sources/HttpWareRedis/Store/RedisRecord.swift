import HttpCaching
import HttpWare

/// A stored response as Redis has it: the mark of its content, 32 hexadecimal digits, then its `StoredRecord`.
struct RedisRecord {
    let mark: [UInt8]
    let record: StoredRecord

    /// Bytes of content in each piece but the last, so that with its checksum it is 256 KiB.
    static let chunkSize = (256 << 10) - 8
    /// The longest record: what a head upstream may be, and its key.
    static let longest = 96 << 10
    private static let markBytes = 32

    /// A new mark: never used twice.
    static func makeMark() -> [UInt8] {
        let digits = Array("0123456789abcdef".utf8)
        return (0..<markBytes).map { _ in digits[Int.random(in: 0..<16)] }
    }

    /// Reads what Redis has; `nil` for what no gateway wrote.
    init?(_ bytes: [UInt8]) {
        let mark = Array(bytes.prefix(RedisRecord.markBytes))
        guard mark.count == RedisRecord.markBytes,
            mark.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }),
            let record = StoredRecord(Array(bytes.dropFirst(RedisRecord.markBytes)))
        else { return nil }
        self.mark = mark
        self.record = record
    }

    /// A response's record as Redis has it, without its mark; `nil` for one that is too long.
    static func bytes(_ key: CacheKey, _ head: StoredHead, length: Int) -> [UInt8]? {
        guard let bytes = StoredRecord(key: key, head: head, length: length).bytes, bytes.count <= longest else {
            return nil
        }
        return bytes
    }

    /// What tells the responses under one key apart, as the field of the hash in which they are.
    static func variant(of vary: VaryKey) -> RedisArgument {
        RedisArgument(String(StoredRecord.variant(of: vary), radix: 16))
    }

    /// How many pieces that content has.
    static func chunks(_ length: Int) -> Int { length / chunkSize + (length % chunkSize == 0 ? 0 : 1) }

    /// A piece as Redis has it, behind its checksum.
    static func chunk(_ content: ArraySlice<UInt8>) -> RedisArgument { RedisArgument(StoredChunk.bytes(content)) }

    /// The content of the piece in this place, of so many bytes in all; `nil` for what is damaged or has another length.
    static func content(_ reply: RedisReply, at place: Int, of length: Int) -> [UInt8]? {
        guard let bytes = reply.bytes, let content = bytes.withUnsafeBytes({ StoredChunk.content($0) }),
            content.count == min(chunkSize, length - place * chunkSize)
        else { return nil }
        return content
    }

    /// How long Redis keeps it: as long as it is fresh, and then for a day, or as long as it may be used stale, for questions
    /// whether it still holds. A year at most.
    static func lifetime(_ head: StoredHead, at now: WallTime) -> Duration {
        let day: Int64 = 86_400
        let fresh = max(0, Int64(head.rules.lifetime) - max(0, head.age(at: now)) / 1_000_000_000)
        let stale = max(day, Int64(head.rules.staleWhileRevalidate ?? 0), Int64(head.rules.staleIfError ?? 0))
        return .seconds(min(fresh + stale, 365 * day))
    }
}
