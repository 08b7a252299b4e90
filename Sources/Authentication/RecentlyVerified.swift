public import HttpWare
public import Synchronization

/// Values that were accepted before, by the digest of the credential, until they expire. Shared by all loops, and limited in
/// number and bytes. A look-up allocates nothing, and waits only for others in the same shard.
///
/// A shard has two generations. A value that is found in the older one moves to the younger. When the younger one is full, the
/// older one is dropped. So values in use stay, without any ordering.
public final class RecentlyVerified<Value: Sendable>: Sendable {
    @usableFromInline
    struct Item {
        @usableFromInline let value: Value
        /// The first moment at which the value is no longer valid, in the unit of the caller.
        @usableFromInline let until: Int64
        let bytes: Int
    }

    @usableFromInline
    struct Generations {
        @usableFromInline var younger: [Digest256: Item] = [:]
        @usableFromInline var older: [Digest256: Item] = [:]
        var bytes = 0
    }

    @usableFromInline
    final class Shard: Sendable {
        @usableFromInline let generations = Mutex(Generations())
    }

    @usableFromInline let shards: [Shard]
    /// The maximum of one generation of one shard.
    private let most: Int
    private let mostBytes: Int

    /// A memory of at most `most` values and `mostBytes` bytes, as their callers state them.
    public init(most: Int, mostBytes: ByteCount, shards: Int = 16) {
        self.shards = (0..<max(1, shards)).map { _ in Shard() }
        self.most = max(1, most / 2 / self.shards.count)
        self.mostBytes = mostBytes.bytes / 2 / self.shards.count
    }

    /// The value under the digest, if it is still valid. Inlinable, because an unspecialised look-up would ask for the types
    /// first.
    @inlinable
    public func value(_ key: Digest256, at now: Int64) -> Value? {
        shard(key).generations.withLock { generations in
            if let item = generations.younger[key] { return now < item.until ? item.value : nil }
            guard !generations.older.isEmpty, let item = generations.older.removeValue(forKey: key), now < item.until
            else { return nil }
            add(item, key, &generations)
            return item.value
        }
    }

    /// Remembers a value until that moment. A value above the limit of a generation is not kept.
    public func remember(_ value: Value, for key: Digest256, until: Int64, bytes: Int) {
        guard bytes <= mostBytes else { return }
        shard(key).generations.withLock { generations in
            add(Item(value: value, until: until, bytes: bytes), key, &generations)
        }
    }

    /// The number of remembered values, valid or not.
    var count: Int {
        shards.reduce(0) { sum, shard in
            sum + shard.generations.withLock { $0.younger.count + $0.older.count }
        }
    }

    @usableFromInline
    func add(_ item: Item, _ key: Digest256, _ generations: inout Generations) {
        if generations.younger.count >= most || generations.bytes + item.bytes > mostBytes {
            generations.older = generations.younger
            generations.younger = [:]
            generations.bytes = 0
        }
        generations.bytes += item.bytes - (generations.younger[key]?.bytes ?? 0)
        generations.younger[key] = item
        generations.older[key] = nil
    }

    @inlinable
    func shard(_ key: Digest256) -> Shard { shards[key.firstByte % shards.count] }
}
