import Synchronization

/// The hosts whose clients refuse our certificate, because they pin the host's own. Usable from any thread.
final class PinnedHosts: Sendable {
    /// A client and a requested host.
    struct Key: Hashable {
        let client: IPAddress?
        let principal: String?
        let host: String
    }

    private struct Entry {
        /// Whether a handshake of that client for that host was completed.
        var hasSucceeded = false
        /// The time of the last refusal that did not pin the host, in nanoseconds of the clock that all loops share; 0 without one.
        var refused: Int64 = 0
        /// Until this time, the client's tunnels to the host pass unread.
        var end: Int64 = 0
    }

    /// The entries, and their keys in the order of insertion; `first` is the index of the oldest.
    private struct Entries {
        var byKey: [Key: Entry] = [:]
        var keys: [Key] = []
        var first = 0

        subscript(key: Key) -> Entry? { byKey[key] }

        /// Adds or changes an entry; beyond the maximum number, the oldest is removed.
        mutating func set(_ key: Key, to entry: Entry) {
            guard byKey.updateValue(entry, forKey: key) == nil else { return }
            keys.append(key)
            guard byKey.count > PinnedHosts.most else { return }
            byKey[keys[first]] = nil
            first += 1
            if first > PinnedHosts.most {
                keys.removeFirst(first)
                first = 0
            }
        }
    }

    private let entries = Mutex(Entries())
    /// The maximum number of entries. After an entry was removed, its client meets our certificate twice more.
    static let most = 10_000
    /// Two refusals within this time, in nanoseconds, pin the host.
    private static let window: Int64 = 60_000_000_000

    /// Whether the client's tunnels to the host pass unread.
    func isPinned(_ key: Key, at now: Int64) -> Bool { entries.withLock { ($0[key]?.end ?? 0) > now } }

    /// Records a completed handshake.
    func accepted(_ key: Key) {
        entries.withLock { entries in
            if entries[key]?.hasSucceeded == true { return }
            var entry = entries[key] ?? Entry()
            entry.hasSucceeded = true
            entries.set(key, to: entry)
        }
    }

    /// Records that the client refused the certificate. `isSure` means that it sent an alert; otherwise it only closed the connection.
    /// Returns whether tunnels to the host pass unread from now on, for `duration` nanoseconds.
    func refused(_ key: Key, isSure: Bool, at now: Int64, for duration: Int64) -> Bool {
        guard duration > 0 else { return false }
        return entries.withLock { entries in
            var entry = entries[key] ?? Entry()
            // A client that accepted our certificate before probably just left.
            if !isSure, entry.hasSucceeded { return false }
            let isSecond = entry.refused != 0 && now &- entry.refused <= PinnedHosts.window
            entry.refused = isSecond ? 0 : now
            if isSecond { entry.end = now &+ duration }
            entries.set(key, to: entry)
            return isSecond
        }
    }
}
