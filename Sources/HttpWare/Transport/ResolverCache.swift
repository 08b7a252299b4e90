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
        /// When the name was last looked up, even if that lookup failed.
        var asked: LoopInstant
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

    /// The time at which a name was last looked up; `nil` without an answer.
    func asked(for name: String) -> LoopInstant? { entries[name]?.asked }

    /// The addresses of a name do not work: they expire, but not before `pause` has passed since the name was last looked up. Returns
    /// whether the name has no valid answer now. Addresses that expire here still serve as a last resort.
    mutating func doubt(_ name: String, pause: Duration, at now: LoopInstant) -> Bool {
        guard let entry = entries[name] else { return true }
        let end = min(entry.expires, max(now, entry.asked + pause))
        entries[name]?.expires = end
        return end <= now
    }

    /// Makes every answer expire. Addresses still serve as a last resort.
    mutating func expireAll(at now: LoopInstant) {
        for name in entries.keys {
            guard let entry = entries[name] else { continue }
            entries[name]?.expires = min(entry.expires, now)
        }
    }

    /// Whether a name has expired addresses that may serve as a last resort.
    func hasStale(_ name: String, at now: LoopInstant) -> Bool {
        entries[name].map { $0.expires <= now && $0.isKeptUntil > now } ?? false
    }

    /// The answer for a name, even if it has expired; it then counts as valid until `expires`.
    mutating func renew(_ name: String, until expires: LoopInstant, at now: LoopInstant) -> Answer? {
        guard let entry = entries[name], max(entry.expires, entry.isKeptUntil) > now else { return nil }
        entries[name]?.expires = max(entry.expires, expires)
        entries[name]?.asked = now
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
        entries[name] = Entry(answer: answer, expires: expires, asked: now, isKeptUntil: expires + kept)
    }
}
