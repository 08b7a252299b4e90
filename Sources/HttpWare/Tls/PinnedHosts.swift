import Synchronization

/// The hosts whose clients refuse our certificate, because they pin the host's own. Usable from any thread.
///
/// All programs of a machine have one address. So a refusal counts only for the program that refused, as far as its TLS handshake
/// identifies it, and never for a host whose certificate was accepted from the same address before.
public final class PinnedHosts: Sendable {
    /// A client and a requested host.
    struct Key: Hashable {
        let client: IPAddress?
        let principal: String?
        /// The client's TLS implementation and its settings: see `ClientHello.program`.
        let program: UInt64
        let host: String
    }

    /// The result of a refusal.
    enum Refusal: Equatable {
        /// It is the first one, or too long after the first.
        case counted
        /// From now on, the program's tunnels to the host pass unread.
        case passes
        /// It has no effect, because the same address accepted our certificate for the host before.
        case acceptedBefore
    }

    /// A host whose tunnels pass unread for one program.
    public struct Passing: Sendable, Equatable {
        /// The number of the entry, unique in this process.
        public let id: Int
        public let host: String
        public let client: IPAddress?
        /// The principal that opened the tunnels; `nil` if no ware required credentials.
        public let principal: String?
        /// The remaining time, in nanoseconds.
        public let remaining: Int64
        /// The number of tunnels that have passed unread.
        public let tunnels: Int
    }

    private struct Entry {
        /// The time of the last refusal that did not pin the host, in nanoseconds of the clock that all loops share; 0 without one.
        var refused: Int64 = 0
        /// Until this time, the client's tunnels to the host pass unread.
        var end: Int64 = 0
        /// The number of the entry; 0 until the host is pinned.
        var id = 0
        var tunnels = 0
    }

    /// An address and a host whose certificate it accepted.
    private struct Acceptance: Hashable {
        let client: IPAddress?
        let host: String
    }

    /// The last entries under their keys, which are also kept in the order of insertion; `first` is the index of the oldest.
    private struct Recent<Key: Hashable, Value> {
        private(set) var byKey: [Key: Value] = [:]
        private var keys: [Key] = []
        private var first = 0

        subscript(key: Key) -> Value? { byKey[key] }

        /// Adds or changes an entry; beyond the maximum number, the oldest is removed.
        mutating func set(_ key: Key, to value: Value) {
            guard byKey.updateValue(value, forKey: key) == nil else { return }
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

    private struct State {
        var entries = Recent<Key, Entry>()
        var accepted = Recent<Acceptance, Void>()
        /// The latest end of any entry: before it, a tunnel may have to be looked up.
        var latest: Int64 = 0
    }

    private let state = Mutex(State())
    /// The maximum number of entries, and of acceptances. After an entry was removed, its client meets our certificate twice more.
    static let most = 10_000
    /// Two refusals within this time, in nanoseconds, pin the host.
    private static let window: Int64 = 60_000_000_000
    private static let lastId = Atomic(0)

    /// Whether the client's tunnel to the host passes unread. If it does, it is counted.
    func passes(_ key: Key, at now: Int64) -> Bool {
        state.withLock { state in
            guard state.latest > now, var entry = state.entries[key], entry.end > now else { return false }
            entry.tunnels += 1
            state.entries.set(key, to: entry)
            return true
        }
    }

    /// Records a completed handshake with a certificate of ours.
    func accepted(_ key: Key) {
        let acceptance = Acceptance(client: key.client, host: key.host)
        state.withLock { state in
            if state.accepted[acceptance] == nil { state.accepted.set(acceptance, to: ()) }
        }
    }

    /// Records that the client refused the certificate by an alert. If it has refused it twice, its tunnels to the host pass unread for
    /// `duration` nanoseconds.
    func refused(_ key: Key, at now: Int64, for duration: Int64) -> Refusal {
        guard duration > 0 else { return .counted }
        return state.withLock { state in
            if state.accepted[Acceptance(client: key.client, host: key.host)] != nil { return .acceptedBefore }
            var entry = state.entries[key] ?? Entry()
            let isSecond = entry.refused != 0 && now &- entry.refused <= PinnedHosts.window
            entry.refused = isSecond ? 0 : now
            if isSecond {
                entry.end = now &+ duration
                entry.tunnels = 0
                entry.id = PinnedHosts.lastId.add(1, ordering: .relaxed).newValue
                state.latest = max(state.latest, entry.end)
            }
            state.entries.set(key, to: entry)
            return isSecond ? .passes : .counted
        }
    }

    // MARK: Showing and ending

    /// The hosts that pass unread now, in the order in which they were pinned.
    public func passing(at now: Int64) -> [Passing] {
        let entries = state.withLock { state in
            state.latest > now ? state.entries.byKey.filter { $0.value.end > now } : [:]
        }
        return entries.map { key, entry in
            Passing(
                id: entry.id, host: key.host, client: key.client, principal: key.principal,
                remaining: entry.end - now, tunnels: entry.tunnels)
        }.sorted { $0.id < $1.id }
    }

    /// Reads the tunnels of an entry again; `nil` for all entries. Tunnels that are open stay as they are. Returns the number of ended
    /// entries.
    public func readAgain(_ id: Int?, at now: Int64) -> Int {
        state.withLock { state in
            let ended = state.entries.byKey.filter { $0.value.end > now && (id == nil || $0.value.id == id) }.keys
            for key in ended { state.entries.set(key, to: Entry()) }
            return ended.count
        }
    }
}
