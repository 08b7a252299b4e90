import HttpWare

/// The recently requested files, kept so that they are not opened for each request. Their number, their bytes and the number of
/// open files are limited.
///
/// Entries have two generations. New entries, and old entries that are checked again, go into the young generation. When it is
/// full or older than a minute, it becomes the old generation, and the previous old one is dropped. Safe to use from any
/// thread: a lock guards both.
final class FileTable: Sendable {
    /// An entry, with the time of its last check in nanoseconds of the loop's clock.
    struct Held: Sendable {
        let entry: FileEntry
        let lookedAt: Int64
    }

    private struct Generation {
        var entries: [String: Held] = [:]
        var bytes = 0
        var files = 0
    }

    private struct State {
        var young = Generation()
        var old = Generation()
        /// When the young generation began.
        var began: Int64?
    }

    private let state = ThreadLock(State())

    /// The limits of each generation.
    private static let mostEntries = 1024
    private static let mostBytes = 8 << 20
    private static let mostFiles = 128
    private static let lifetime: Int64 = 60_000_000_000
    private static let mostKeyBytes = 1024

    /// The entry under the key, from either generation.
    func held(_ key: String) -> Held? {
        state.withLock { state in
            if let held = state.young.entries[key] { return held }
            return state.old.entries[key]
        }
    }

    /// Stores an entry that was just checked.
    func remember(_ entry: FileEntry, _ key: String, at now: Int64) {
        guard entry.isKept, key.utf8.count <= FileTable.mostKeyBytes else { return forget(key) }
        let cost = entry.cost
        // Dropped entries are freed outside the lock, because closing files takes time.
        let dropped = state.withLock { state -> [String: Held] in
            var dropped: [String: Held] = [:]
            FileTable.remove(key, &state.young)
            let isOld = state.began.map { now - $0 > FileTable.lifetime } ?? false
            if isOld || state.young.entries.count >= FileTable.mostEntries
                || state.young.bytes + cost.bytes > FileTable.mostBytes
                || state.young.files + cost.files > FileTable.mostFiles
            {
                dropped = state.old.entries
                state.old = state.young
                state.young = Generation()
                state.began = now
            }
            if state.began == nil { state.began = now }
            state.young.entries[key] = Held(entry: entry, lookedAt: now)
            state.young.bytes += cost.bytes
            state.young.files += cost.files
            return dropped
        }
        withExtendedLifetime(dropped) {}
    }

    /// Removes the entry under the key.
    func forget(_ key: String) {
        state.withLock { state in
            FileTable.remove(key, &state.young)
            FileTable.remove(key, &state.old)
        }
    }

    private static func remove(_ key: String, _ generation: inout Generation) {
        guard let held = generation.entries.removeValue(forKey: key) else { return }
        generation.bytes -= held.entry.cost.bytes
        generation.files -= held.entry.cost.files
    }
}
