import HttpWare
import Synchronization

/// The map of a store's servers, shared by all loops: it is found on the client's own thread, and read on each loop.
final class RedisDirectory: Sendable {
    private struct Known {
        var map: RedisMap?
        /// Whether the last search found nothing.
        var hasFailed = false
    }

    private let known: ThreadLock<Known>
    private let versions = Atomic(0)
    private let isOutdated = Atomic(false)

    /// Makes a directory with the map of a server that never changes, or without a map.
    init(_ map: RedisMap? = nil) { known = ThreadLock(Known(map: map)) }

    /// A number that changes with the map.
    var version: Int { versions.load(ordering: .acquiring) }

    var map: RedisMap? { known.withLock { $0.map } }

    /// Whether there is no map because the last search found none.
    var hasFailed: Bool { known.withLock { $0.map == nil && $0.hasFailed } }

    /// Notes the result of a search: a map, or `nil`, which keeps the last map. Returns whether the map changed.
    func found(_ map: RedisMap?) -> Bool {
        let isNew = known.withLock { known -> Bool in
            known.hasFailed = map == nil
            guard let map, known.map != map else { return false }
            known.map = map
            return true
        }
        if isNew { versions.add(1, ordering: .releasing) }
        return isNew
    }

    /// Notes that a server did not do what the map promises. Returns whether this is the first time since the last
    /// search began.
    func doubt() -> Bool { !isOutdated.exchange(true, ordering: .relaxed) }

    func searchBegins() { isOutdated.store(false, ordering: .relaxed) }
}
