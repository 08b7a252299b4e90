import Synchronization

/// The hosts whose clients refuse our certificate, because they know the host's own. From any thread.
final class PinnedHosts: Sendable {
    /// A client, and the host that it asks for.
    struct Key: Hashable {
        let client: IPAddress?
        let principal: String?
        let host: String
    }

    private struct Entry {
        /// A handshake of that client to that host was completed.
        var hasSucceeded = false
        /// When it was refused, in nanoseconds of the clock that all loops share; 0 where it was not.
        var refused: Int64 = 0
        /// Until when the host is tunnelled for the client.
        var end: Int64 = 0
    }

    /// The entries, and their keys from the one that was added first; `first` is where that one stands.
    private struct Entries {
        var byKey: [Key: Entry] = [:]
        var keys: [Key] = []
        var first = 0

        subscript(key: Key) -> Entry? { byKey[key] }

        /// Adds or changes an entry; beyond the most, the oldest goes.
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
    /// The oldest of more than these is forgotten: a client then meets our certificate twice more.
    static let most = 10_000
    /// Two refusals within this time are one too many, in nanoseconds.
    private static let window: Int64 = 60_000_000_000

    /// Whether the host is tunnelled for the client.
    func isPinned(_ key: Key, at now: Int64) -> Bool { entries.withLock { ($0[key]?.end ?? 0) > now } }

    /// A handshake was completed.
    func accepted(_ key: Key) {
        entries.withLock { entries in
            if entries[key]?.hasSucceeded == true { return }
            var entry = entries[key] ?? Entry()
            entry.hasSucceeded = true
            entries.set(key, to: entry)
        }
    }

    /// The client refused the certificate. `isSure` says so by an alert; else it only closed the connection. Answers whether the
    /// host is tunnelled from now on, for so many nanoseconds.
    func refused(_ key: Key, isSure: Bool, at now: Int64, for duration: Int64) -> Bool {
        guard duration > 0 else { return false }
        return entries.withLock { entries in
            var entry = entries[key] ?? Entry()
            // A client that has trusted us before just went away.
            if !isSure, entry.hasSucceeded { return false }
            let isSecond = entry.refused != 0 && now &- entry.refused <= PinnedHosts.window
            entry.refused = isSecond ? 0 : now
            if isSecond { entry.end = now &+ duration }
            entries.set(key, to: entry)
            return isSecond
        }
    }
}
