import HttpWare
import Synchronization

/// Keeps stored responses. Used from every loop at once: it guards itself. If a store cannot answer, cannot write, or
/// finds damage, it reports nothing stored: a failing cache is a cache miss.
public protocol CacheStore: AnyObject, Sendable {
    /// The most recent response under the key that `isSelected` accepts, at once; or `mustWait`. RFC 9111 §4.1.
    func find(_ key: CacheKey, where isSelected: (StoredResponse) -> Bool) -> Found
    /// All responses under the key, the most recent first: for stores that answered `find` with `mustWait`, and for
    /// inspection. Awaited on a loop, and bounded in time by the store.
    func load(_ key: CacheKey) async -> [StoredResponse]
    /// Accepts a response's content as it arrives. `length` is the stated length; `nil` if it is not known. Returns
    /// `nil` if there is no room for it.
    func write(under key: CacheKey, length: Int?) -> (any StoreWriter)?
    /// Replaces the head of a response that is still stored; its content stays.
    func replace(_ response: StoredResponse, with update: StoredHead, under key: CacheKey)
    /// Removes one response, if it is still stored.
    func remove(_ response: StoredResponse, under key: CacheKey)
    /// Removes all responses for the key's URI, whatever the other parts of their keys, also in other gateways that share
    /// them. Responses that are being written are not affected. RFC 9111 §4.4.
    func invalidate(_ key: CacheKey)
    /// Removes all responses that `isSelected` accepts. Not for loops: it visits each response.
    func purge(where isSelected: @Sendable (CacheKey, StoredHead) -> Bool) async -> StorePurge
    /// The first responses that `isSelected` accepts, at most `limit`, in no particular order. Not for loops: it may visit
    /// each response.
    func list(limit: Int, where isSelected: @Sendable (CacheKey, StoredHead) -> Bool) async -> [StoredItem]
    /// The contents of the store, in numbers.
    var census: StoreCensus { get }
    /// The server that the store shares with other gateways; `nil` if it has none.
    var server: (any AnyObject & Sendable)? { get }
    /// Whether the store can be used. A store that must be opened starts that when it is asked, and reports nothing stored until
    /// it is open.
    var isReady: Bool { get }
    /// Writes waiting responses before the program ends; later ones are not stored. Not on a loop; may take seconds.
    func close()
}

extension CacheStore {
    public var server: (any AnyObject & Sendable)? { nil }

    /// The default, for stores that need no opening.
    public var isReady: Bool { true }

    /// The default, for stores that write at once.
    public func close() {}

    /// The default, for stores without a faster way: visits each response by a `purge` that removes nothing.
    public func list(limit: Int, where isSelected: @Sendable (CacheKey, StoredHead) -> Bool) async -> [StoredItem] {
        let found = ThreadLock<[StoredItem]>([])
        _ = await purge { key, head in
            guard found.withLock({ $0.count < limit }), isSelected(key, head) else { return false }
            found.withLock { $0.append(StoredItem(key: key, head: head, size: nil)) }
            return false
        }
        return found.withLock { $0 }
    }
}

/// The result of a purge.
public struct StorePurge: Sendable, Equatable {
    /// The number of removed responses.
    public var count: Int
    /// Whether the whole store was searched; if not, matching responses may be left.
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
    /// Its size in bytes, as counted against the limit; `nil` if the size is not known without reading the content.
    public let size: Int?

    public init(key: CacheKey, head: StoredHead, size: Int?) {
        self.key = key
        self.head = head
        self.size = size
    }
}

/// The immediate answer of a store.
public enum Found: Sendable {
    case response(StoredResponse)
    /// No matching response; `hasOthers` says whether there is any under the key.
    case none(hasOthers: Bool)
    /// The response must be loaded first, by `load`.
    case mustWait
}

/// A response on its way into a store. Used on one loop's thread.
public protocol StoreWriter: AnyObject {
    /// Accepts the next piece, of at most 256 KiB. Returns false if there is no room or the store fails: then nothing
    /// is stored, and no more pieces are needed.
    func append(_ piece: [UInt8]) -> Bool
    /// The content is complete. From now on, or soon, the response is found in place of the responses under the key
    /// that answer the same requests.
    func finish(_ head: StoredHead)
    /// The content was cut off: nothing is stored. Releasing the writer does the same.
    func cancel()
}

/// Whether the pieces of one response have been written so far. Shared by the writer on its loop and the thread that writes for
/// it.
public final class StoreWriting: Sendable {
    private let failed = Atomic(false)

    public init() {}

    public var hasFailed: Bool { failed.load(ordering: .acquiring) }

    /// Called when a piece could not be written.
    public func fail() { failed.store(true, ordering: .releasing) }
}

/// The contents of a store, in numbers.
public struct StoreCensus: Sendable, Equatable {
    public var responses = 0
    /// Bytes, as counted against the limit.
    public var bytes = 0
    public var limit = 0
    /// Responses that were removed to make room.
    public var evicted = 0
    /// Responses that were not stored because the store was too slow or could not write them.
    public var unwritten = 0

    public init() {}
}
