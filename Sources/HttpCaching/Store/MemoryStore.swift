internal import DequeModule
public import HttpWare

/// Stored responses in memory, up to a number of bytes, evicted by S3-FIFO.
///
/// Keys are spread over shards, each behind a lock of its own that is held for a look-up or a change only.
public final class MemoryStore: CacheStore {
    private let shards: [ThreadLock<MemoryShard>]

    /// `limit` is what all responses together may take, by `StoredResponse.size`.
    public init(limit: ByteCount, shards count: Int = 16) {
        let each = max(1, limit.bytes / count)
        shards = (0..<count).map { _ in ThreadLock(MemoryShard(limit: each)) }
    }

    private func shard(_ key: CacheKey) -> ThreadLock<MemoryShard> {
        shards[Int(truncatingIfNeeded: UInt(bitPattern: key.hashed) >> 40) % shards.count]
    }

    public func find(
        _ key: CacheKey, where isMeant: (StoredResponse) -> Bool
    ) -> (response: StoredResponse?, hasOthers: Bool) {
        shard(key).withLock { $0.find(key, where: isMeant) }
    }

    public func store(_ response: StoredResponse, under key: CacheKey) -> Bool {
        shard(key).withLock { $0.store(response, under: key) }
    }

    public func replace(_ response: StoredResponse, with update: StoredResponse, under key: CacheKey) {
        shard(key).withLock { $0.replace(response, with: update, under: key) }
    }

    public func remove(_ response: StoredResponse, under key: CacheKey) {
        shard(key).withLock { $0.remove(response, under: key) }
    }

    public func invalidate(_ key: CacheKey) -> Bool { shard(key).withLock { $0.invalidate(key) } }

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
