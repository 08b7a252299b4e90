import HttpWare
import Synchronization

/// The map of a store's servers, as all loops know it: found on the client's own thread, read on each.
final class RedisDirectory: Sendable {
    private struct Known {
        var map: RedisMap?
        /// Whether the last search found nothing.
        var hasFailed = false
    }

    private let known: ThreadLock<Known>
    private let versions = Atomic(0)
    private let isOutdated = Atomic(false)

    /// With the map of a server that never changes, or without one.
    init(_ map: RedisMap? = nil) { known = ThreadLock(Known(map: map)) }

    /// Changes with the map.
    var version: Int { versions.load(ordering: .acquiring) }

    var map: RedisMap? { known.withLock { $0.map } }

    /// Whether there is no map, and the last search found none.
    var hasFailed: Bool { known.withLock { $0.map == nil && $0.hasFailed } }

    /// A search ended: with a map, or without one, which leaves the last one. Answers whether it changed.
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

    /// A server did not do what the map promises. Answers whether nobody said so since the last search began.
    func doubt() -> Bool { !isOutdated.exchange(true, ordering: .relaxed) }

    func searchBegins() { isOutdated.store(false, ordering: .relaxed) }
}
