import HttpCaching
import HttpWare

/// The responses of a remote store that a gateway also holds in memory. They are used only while changes in the remote store
/// are reported.
///
/// A response that was requested before its key changed, and arrives afterwards, is not held. A `Ticket` marks the time of the
/// request.
final class NearCache: Sendable {
    private struct State {
        /// The held responses; `nil` while changes are not reported.
        var store: MemoryStore?
        /// The number of changes of keys, by a part of their hash.
        var changes = [UInt32](repeating: 0, count: 256)
    }

    /// Marks the time of a request.
    struct Ticket: Sendable {
        fileprivate let store: MemoryStore
        fileprivate let changes: UInt32
    }

    private let state = ThreadLock(State())
    private let limit: ByteCount

    /// Makes an empty cache, which is not used before changes are reported.
    init(limit: ByteCount) { self.limit = limit }

    /// The held responses; `nil` while they must not be used.
    var store: MemoryStore? { state.withLock { $0.store } }

    /// All keys of a URI have the same slot.
    private static func slot(_ key: CacheKey) -> Int { key.plain.hashed & 255 }

    /// Must be called before a response under the key is requested. `nil` while responses must not be held.
    func ticket(for key: CacheKey) -> Ticket? {
        state.withLock { state in
            state.store.map { Ticket(store: $0, changes: state.changes[NearCache.slot(key)]) }
        }
    }

    /// Holds a response, unless its key was changed since the ticket.
    func put(_ response: StoredResponse, under key: CacheKey, _ ticket: Ticket?) {
        guard let ticket, ticket.store.store(response, under: key) else { return }
        let isLate = state.withLock { state in
            state.store !== ticket.store || state.changes[NearCache.slot(key)] != ticket.changes
        }
        // A later change of the key removes the response itself. An earlier one could not see it, so it is removed here.
        if isLate { ticket.store.remove(response, under: key) }
    }

    /// Called when the key was changed elsewhere.
    func forget(_ key: CacheKey) { change(key)?.forget(key) }

    /// Called when all keys with the URI of this one were changed elsewhere.
    func invalidate(_ key: CacheKey) { change(key)?.invalidate(key) }

    private func change(_ key: CacheKey) -> MemoryStore? {
        state.withLock { state -> MemoryStore? in
            state.changes[NearCache.slot(key)] &+= 1
            return state.store
        }
    }

    /// Called when any response may have been changed elsewhere. `isTold` says whether changes are reported from now on.
    func clear(isTold: Bool) { state.withLock { $0.store = isTold ? MemoryStore(limit: limit) : nil } }

    /// Removes all responses. Whether the cache is in use does not change.
    func clear() {
        let limit = limit
        state.withLock { if $0.store != nil { $0.store = MemoryStore(limit: limit) } }
    }

    var census: StoreCensus {
        if let store { return store.census }
        var census = StoreCensus()
        census.limit = limit.bytes
        return census
    }
}
