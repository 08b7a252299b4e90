import HttpWare

/// Keeps stored responses. Used from every loop at once: it guards itself.
///
/// A store that cannot answer, cannot write, or finds damage says that it has nothing: a cache that fails is a cache miss.
public protocol CacheStore: AnyObject, Sendable {
    /// The most recent response under the key that `isMeant` picks, at once; or that the store has to be waited for.
    /// RFC 9111 §4.1.
    func find(_ key: CacheKey, where isMeant: (StoredResponse) -> Bool) -> Found
    /// All responses under the key, the most recent first: for stores that answered `find` with `mustWait`, and to look at.
    /// Awaited on a loop, and bounded in time by the store.
    func load(_ key: CacheKey) async -> [StoredResponse]
    /// Takes a response's content as it comes. `length` is what the response says; `nil` when that is not known. Answers
    /// `nil` when there is no room for so much.
    func write(under key: CacheKey, length: Int?) -> (any StoreWriter)?
    /// Puts an updated head in the place of that of a response which is still there; its content stays.
    func replace(_ response: StoredResponse, with update: StoredHead, under key: CacheKey)
    /// Takes one response away, if it is still there.
    func remove(_ response: StoredResponse, under key: CacheKey)
    /// Takes all responses under the key away, in other gateways that share them too. What is being written is not affected.
    func invalidate(_ key: CacheKey)
    /// Takes all responses away that `isMeant` picks. Not for loops: it looks at each.
    func purge(where isMeant: @Sendable (CacheKey, StoredHead) -> Bool) async -> StorePurge
    /// The first responses that `isMeant` picks, at most `limit`, in no order. Not for loops: it may look at each.
    func list(limit: Int, where isMeant: @Sendable (CacheKey, StoredHead) -> Bool) async -> [StoredItem]
    /// What it holds.
    var census: StoreCensus { get }
}

extension CacheStore {
    /// For stores that have no shorter way: looks at each by `purge`, which takes nothing away then.
    public func list(limit: Int, where isMeant: @Sendable (CacheKey, StoredHead) -> Bool) async -> [StoredItem] {
        let found = ThreadLock<[StoredItem]>([])
        _ = await purge { key, head in
            guard found.withLock({ $0.count < limit }), isMeant(key, head) else { return false }
            found.withLock { $0.append(StoredItem(key: key, head: head, size: nil)) }
            return false
        }
        return found.withLock { $0 }
    }
}

/// What a purge did.
public struct StorePurge: Sendable, Equatable {
    /// How many responses it took away.
    public var count: Int
    /// Whether it reached all that is there; where it did not, some that are meant may be left.
    public var isWhole: Bool

    public init(count: Int, isWhole: Bool = true) {
        self.count = count
        self.isWhole = isWhole
    }
}

/// A stored response in a list.
public struct StoredItem: Sendable {
    public let key: CacheKey
    public let head: StoredHead
    /// The bytes that it takes, as counted against the limit; `nil` where that is not known without a look at its content.
    public let size: Int?

    public init(key: CacheKey, head: StoredHead, size: Int?) {
        self.key = key
        self.head = head
        self.size = size
    }
}

/// What a store answers at once.
public enum Found: Sendable {
    case response(StoredResponse)
    /// None that is meant; `hasOthers` says whether there is any under the key.
    case none(hasOthers: Bool)
    /// It is not at hand: `load` brings it.
    case mustWait
}

/// A response on its way into a store. Used on one loop's thread.
public protocol StoreWriter: AnyObject {
    /// Takes the next piece, of at most 256 KiB. Answers false when it gave up, because there is no room or the store
    /// fails: then nothing is stored, and no more is wanted.
    func append(_ piece: [UInt8]) -> Bool
    /// The content is whole: the response is found from now on, or soon, in place of those under the key that answer the
    /// same requests.
    func finish(_ head: StoredHead)
    /// The content did not come to its end: nothing is stored. To drop the writer does the same.
    func cancel()
}

/// What a store holds, for people to look at.
public struct StoreCensus: Sendable, Equatable {
    public var responses = 0
    /// Bytes, as counted against the limit.
    public var bytes = 0
    public var limit = 0
    /// Responses that went to make room.
    public var evicted = 0
    /// Responses that were not stored because the store did not write them as fast as they came, or could not write them.
    public var unwritten = 0

    public init() {}
}
