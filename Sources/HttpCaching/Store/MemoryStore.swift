internal import DequeModule
public import HttpWare

/// Stored responses in memory, up to a number of bytes, evicted by S3-FIFO.
///
/// Keys are spread over shards, each behind a lock of its own that is held for a look-up or a change only.
public final class MemoryStore: CacheStore {
    private let shards: [ThreadLock<MemoryShard>]
    /// The most bytes that one response may take: what a shard has room for.
    let largest: Int

    /// `limit` is what all responses together may take, by `StoredResponse.size`.
    public init(limit: ByteCount, shards count: Int = 16) {
        let each = max(1, limit.bytes / count)
        largest = each
        shards = (0..<count).map { _ in ThreadLock(MemoryShard(limit: each)) }
    }

    private func shard(_ key: CacheKey) -> ThreadLock<MemoryShard> {
        shards[Int(truncatingIfNeeded: UInt(bitPattern: key.hashed) >> 40) % shards.count]
    }

    public func find(_ key: CacheKey, where isMeant: (StoredResponse) -> Bool) -> Found {
        shard(key).withLock { $0.find(key, where: isMeant) }
    }

    public func load(_ key: CacheKey) async -> [StoredResponse] { [] }

    public func write(under key: CacheKey, length: Int?) -> (any StoreWriter)? {
        (length ?? 0) <= largest ? MemoryWriter(self, key, length: length) : nil
    }

    /// Stores a response whose content is at hand. Answers whether it had room.
    @discardableResult
    public func store(_ response: StoredResponse, under key: CacheKey) -> Bool {
        shard(key).withLock { $0.store(response, under: key) }
    }

    public func replace(_ response: StoredResponse, with update: StoredHead, under key: CacheKey) {
        shard(key).withLock { $0.replace(response, with: update, under: key) }
    }

    public func remove(_ response: StoredResponse, under key: CacheKey) {
        shard(key).withLock { $0.remove(response, under: key) }
    }

    public func invalidate(_ key: CacheKey) { shard(key).withLock { $0.invalidate(key) } }

    public func purge(where isMeant: @Sendable (CacheKey, StoredHead) -> Bool) async -> Int {
        shards.reduce(0) { sum, shard in sum + shard.withLock { $0.purge(where: isMeant) } }
    }

    public var census: StoreCensus {
        shards.reduce(into: StoreCensus()) { sum, shard in
            let part = shard.withLock { $0.census }
            sum.responses += part.responses
            sum.bytes += part.bytes
            sum.limit += part.limit
            sum.evicted += part.evicted
        }
    }
}
