import HttpWare

/// The files that were asked for lately, so that they are not opened for each request. What is there is bounded in number, in bytes and
/// in open files.
///
/// Entries are in two generations. A new one, and an old one that is asked for, go to the young generation; when that is full, or a
/// minute old, it becomes the old one, and what was in that is let go. From any thread: a lock guards both.
final class FileTable: Sendable {
    /// An entry, and when it was looked at last, in nanoseconds of the loop's clock.
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
        /// When the young one began.
        var began: Int64?
    }

    private let state = ThreadLock(State())

    /// Of each generation.
    private static let mostEntries = 1024
    private static let mostBytes = 8 << 20
    private static let mostFiles = 128
    private static let lifetime: Int64 = 60_000_000_000
    private static let mostKeyBytes = 1024

    /// What is known under the key.
    func held(_ key: String) -> Held? {
        state.withLock { state in
            if let held = state.young.entries[key] { return held }
            return state.old.entries[key]
        }
    }

    /// Remembers an entry that was looked at just now.
    func remember(_ entry: FileEntry, _ key: String, at now: Int64) {
        guard entry.isKept, key.utf8.count <= FileTable.mostKeyBytes else { return forget(key) }
        let cost = entry.cost
        // Freed behind the lock: to close files takes time.
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

    /// There is no such file any more.
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
