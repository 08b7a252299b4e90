public import HttpWare

/// Stored responses in memory, with a limit in bytes and eviction by S3-FIFO.
///
/// Keys are distributed over shards. Each shard has its own lock, which is held only for a look-up or a change.
public final class MemoryStore: CacheStore {
    private let shards: ThreadLocks<MemoryShard>
    private let families = KeyFamilies()
    /// The maximum size of one response, in bytes: the room of one shard.
    let largest: Int

    /// `limit` is the maximum size of all responses together, by `StoredResponse.size`.
    public init(limit: ByteCount, shards count: Int = 16) {
        let each = max(1, limit.bytes / count)
        largest = each
        shards = ThreadLocks(count) { MemoryShard(limit: each) }
    }

    public func find(_ key: CacheKey, where isSelected: (StoredResponse) -> Bool) -> Found {
        shards.withLock(of: key.spread) { $0.find(key, where: isSelected) }
    }

    public func load(_ key: CacheKey) async -> [StoredResponse] { shards.withLock(of: key.spread) { $0.all(key) } }

    public func write(under key: CacheKey, length: Int?) -> (any StoreWriter)? {
        (length ?? 0) <= largest ? MemoryWriter(self, key, length: length) : nil
    }

    /// Stores a response whose content is in memory. Returns whether there was room.
    @discardableResult
    public func store(_ response: StoredResponse, under key: CacheKey) -> Bool {
        let member = families.join(key)
        let (isStored, grows) = shards.withLock(of: key.spread) { shard in
            (shard.store(response, under: key, member), shard.takesMoreMemory())
        }
        if grows { HeapRoom.take() }
        return isStored
    }

    public func replace(_ response: StoredResponse, with update: StoredHead, under key: CacheKey) {
        shards.withLock(of: key.spread) { $0.replace(response, with: update, under: key) }
    }

    public func remove(_ response: StoredResponse, under key: CacheKey) {
        _ = shards.withLock(of: key.spread) { $0.remove(response, under: key) }
    }

    public func invalidate(_ key: CacheKey) {
        families.invalidate(key)
        let plain = key.plain
        shards.withLock(of: plain.spread) { $0.invalidate(plain) }
    }

    /// Removes the responses under this key, but not those under other keys of its URI.
    package func forget(_ key: CacheKey) { shards.withLock(of: key.spread) { $0.invalidate(key) } }

    public func purge(where isSelected: @Sendable (CacheKey, StoredHead) -> Bool) async -> StorePurge {
        var count = 0
        scan { key, response in
            guard isSelected(key, response.head) else { return true }
            // If the response was updated meanwhile, another object has taken its place.
            let others = shards.withLock(of: key.spread) { $0.remove(response, under: key) ? nil : $0.all(key) }
            if others == nil { count += 1 }
            for other in others ?? [] where isSelected(key, other.head) {
                if shards.withLock(of: key.spread, { $0.remove(other, under: key) }) { count += 1 }
            }
            return true
        }
        return StorePurge(count: count)
    }

    public func list(limit: Int, where isSelected: @Sendable (CacheKey, StoredHead) -> Bool) async -> [StoredItem] {
        var items: [StoredItem] = []
        guard limit > 0 else { return [] }
        scan { key, response in
            let head = response.head
            if isSelected(key, head) { items.append(StoredItem(key: key, head: head, size: response.size)) }
            return items.count < limit
        }
        return items
    }

    /// Passes each response that stays in the store during the scan to `body`, until that returns false. No lock is held
    /// while `body` runs, and each lock only while it takes a batch.
    private func scan(_ body: (CacheKey, StoredResponse) -> Bool) {
        for shard in 0..<shards.count {
            var place = 0
            while let batch = shards.withLock(of: shard, { $0.next(&place, most: MemoryStore.batch) }) {
                for (key, response) in batch where !body(key ?? response.key, response) { return }
            }
        }
    }

    private static let batch = 256

    public var census: StoreCensus {
        (0..<shards.count).reduce(into: StoreCensus()) { sum, shard in
            let part = shards.withLock(of: shard) { $0.census }
            sum.responses += part.responses
            sum.bytes += part.bytes
            sum.limit += part.limit
            sum.evicted += part.evicted
        }
    }
}
