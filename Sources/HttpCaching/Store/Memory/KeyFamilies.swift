import HttpWare
import Synchronization

/// The families of keys in a store: keys with the same URI that other parts tell apart. All responses of a family are
/// invalidated together, in one step, without a visit to each: a response belongs to the era in which it was stored, and an
/// invalidation begins a new era.
///
/// Keys that consist of a URI alone need no family. Safe from any thread: a lock guards each shard.
final class KeyFamilies: Sendable {
    /// The keys of one URI. It exists while a response is a member.
    fileprivate final class Family: Sendable {
        let era = Atomic<UInt64>(0)
    }

    /// The membership of one response.
    final class Member: Sendable {
        private let family: Family
        private let era: UInt64

        fileprivate init(_ family: Family) {
            self.family = family
            era = family.era.load(ordering: .acquiring)
        }

        /// Whether the family was not invalidated since.
        var isValid: Bool { family.era.load(ordering: .acquiring) == era }
    }

    private struct Place {
        weak var family: Family?
    }

    private struct Shard {
        var places: [Int: Place] = [:]
        /// The number of places at which those without a family are removed.
        var most = 64
    }

    private let shards = ThreadLocks(16) { Shard() }

    /// Makes a response with this key a member of its family; `nil` if the key is a URI alone.
    func join(_ key: CacheKey) -> Member? {
        guard key.hasParts else { return nil }
        return shards.withLock(of: key.family) { shard in
            if let family = shard.places[key.family]?.family { return Member(family) }
            if shard.places.count >= shard.most {
                shard.places = shard.places.filter { $0.value.family != nil }
                shard.most = max(64, 2 * shard.places.count)
            }
            let family = Family()
            shard.places[key.family] = Place(family: family)
            return Member(family)
        }
    }

    /// Ends the validity of all present members of the key's family.
    func invalidate(_ key: CacheKey) {
        shards.withLock(of: key.family) { shard in
            _ = shard.places[key.family]?.family?.era.add(1, ordering: .acquiringAndReleasing)
        }
    }

    /// The number of families, and of places whose family is gone.
    var count: Int {
        (0..<shards.count).reduce(0) { sum, shard in sum + shards.withLock(of: shard) { $0.places.count } }
    }
}
