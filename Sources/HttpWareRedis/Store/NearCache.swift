import HttpCaching
import HttpWare

/// The responses that a gateway holds in memory of what a store elsewhere keeps, while it is told what becomes of them there.
///
/// A response that was asked for before its key was changed, and came after, is not taken: `Ticket` says when it was asked for.
final class NearCache: Sendable {
    private struct State {
        /// `nil` while changes are not told.
        var store: MemoryStore?
        /// How often keys were changed, by a part of their hash.
        var changes = [UInt32](repeating: 0, count: 256)
    }

    /// When something was asked for.
    struct Ticket: Sendable {
        fileprivate let store: MemoryStore
        fileprivate let changes: UInt32
    }

    private let state = ThreadLock(State())
    private let limit: ByteCount

    /// Empty, and not used before it is told that changes are told.
    init(limit: ByteCount) { self.limit = limit }

    /// What is held; `nil` while it may not be used.
    var store: MemoryStore? { state.withLock { $0.store } }

    private static func slot(_ key: CacheKey) -> Int { key.hashed & 255 }

    /// Before a response under the key is asked for; `nil` while nothing may be held.
    func ticket(for key: CacheKey) -> Ticket? {
        state.withLock { state in
            state.store.map { Ticket(store: $0, changes: state.changes[NearCache.slot(key)]) }
        }
    }

    /// Holds a response, unless its key was changed since it was asked for.
    func put(_ response: StoredResponse, under key: CacheKey, _ ticket: Ticket?) {
        guard let ticket, ticket.store.store(response, under: key) else { return }
        let isLate = state.withLock { state in
            state.store !== ticket.store || state.changes[NearCache.slot(key)] != ticket.changes
        }
        // Whoever changes the key from now on takes it away; who did before did not see it.
        if isLate { ticket.store.remove(response, under: key) }
    }

    /// The key was changed elsewhere.
    func forget(_ key: CacheKey) {
        let store = state.withLock { state -> MemoryStore? in
            state.changes[NearCache.slot(key)] &+= 1
            return state.store
        }
        store?.invalidate(key)
    }

    /// Anything may have changed elsewhere; `isTold` says whether changes are told from now on.
    func clear(isTold: Bool) { state.withLock { $0.store = isTold ? MemoryStore(limit: limit) : nil } }

    /// Forgets what it holds; it stays in use if it was.
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
