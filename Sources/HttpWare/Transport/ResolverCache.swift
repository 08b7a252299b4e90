/// A bounded table of a resolver's answers, valid until they expire. Expired addresses are kept longer, as a last resort. It uses
/// neither clock nor network.
struct ResolverCache {
    /// Addresses in the order to try them, or the error.
    typealias Answer = Result<[IPAddress], ResolveError>

    /// The maximum number of names.
    let capacity: Int

    private struct Entry {
        let answer: Answer
        var expires: LoopInstant
        /// Until this time the expired answer may serve as a last resort.
        let isKeptUntil: LoopInstant
    }

    private var entries: [String: Entry] = [:]

    /// Makes an empty cache for at least one name.
    init(capacity: Int) {
        precondition(capacity > 0)
        self.capacity = capacity
    }

    /// The number of names, expired ones included.
    var count: Int { entries.count }

    /// The answer for a name, if it has not expired.
    mutating func answer(for name: String, at now: LoopInstant) -> Answer? {
        guard let entry = entries[name] else { return nil }
        if entry.expires > now { return entry.answer }
        if entry.isKeptUntil <= now { entries[name] = nil }
        return nil
    }

    /// The time at which the answer for a name expires; `nil` without one.
    func expiry(of name: String) -> LoopInstant? { entries[name]?.expires }

    /// Whether a name has expired addresses that may serve as a last resort.
    func hasStale(_ name: String, at now: LoopInstant) -> Bool {
        entries[name].map { $0.expires <= now && $0.isKeptUntil > now } ?? false
    }

    /// The answer for a name, even if it has expired; it then counts as valid until `expires`.
    mutating func renew(_ name: String, until expires: LoopInstant, at now: LoopInstant) -> Answer? {
        guard let entry = entries[name], max(entry.expires, entry.isKeptUntil) > now else { return nil }
        entries[name]?.expires = max(entry.expires, expires)
        return entry.answer
    }

    /// Stores an answer, and keeps it for `kept` after it has expired. A full cache removes expired answers, or else the one that
    /// expires first.
    mutating func store(
        _ answer: Answer, for name: String, until expires: LoopInstant, keeping kept: Duration = .zero,
        at now: LoopInstant
    ) {
        if entries.count >= capacity, entries[name] == nil {
            entries = entries.filter { $0.value.expires > now }
            if entries.count >= capacity, let first = entries.min(by: { $0.value.expires < $1.value.expires }) {
                entries[first.key] = nil
            }
        }
        entries[name] = Entry(answer: answer, expires: expires, isKeptUntil: expires + kept)
    }
}
