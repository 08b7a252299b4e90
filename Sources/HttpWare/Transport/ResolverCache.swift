/// Answers that a resolver remembers until they expire, and addresses for longer, in case nothing better is to be had: a bounded
/// table that knows neither clock nor network.
struct ResolverCache {
    /// Addresses in the order to be tried, or why there are none.
    typealias Answer = Result<[IPAddress], ResolveError>

    /// How many names are remembered at most.
    let capacity: Int

    private struct Entry {
        let answer: Answer
        var expires: LoopInstant
        /// Until then it is better than nothing.
        let isKeptUntil: LoopInstant
    }

    private var entries: [String: Entry] = [:]

    /// Makes an empty cache for at least one name.
    init(capacity: Int) {
        precondition(capacity > 0)
        self.capacity = capacity
    }

    /// How many names are remembered, expired ones included.
    var count: Int { entries.count }

    /// What is remembered of a name and has not expired.
    mutating func answer(for name: String, at now: LoopInstant) -> Answer? {
        guard let entry = entries[name] else { return nil }
        if entry.expires > now { return entry.answer }
        if entry.isKeptUntil <= now { entries[name] = nil }
        return nil
    }

    /// When what is remembered of a name expires; `nil` where nothing is.
    func expiry(of name: String) -> LoopInstant? { entries[name]?.expires }

    /// Whether there are addresses of a name that have expired and are better than nothing.
    func hasStale(_ name: String, at now: LoopInstant) -> Bool {
        entries[name].map { $0.expires <= now && $0.isKeptUntil > now } ?? false
    }

    /// What is remembered of a name although it may have expired; it is good again until that time.
    mutating func renew(_ name: String, until expires: LoopInstant, at now: LoopInstant) -> Answer? {
        guard let entry = entries[name], max(entry.expires, entry.isKeptUntil) > now else { return nil }
        entries[name]?.expires = max(entry.expires, expires)
        return entry.answer
    }

    /// Remembers an answer, and keeps it for so long after it has expired. A full cache gives up what has expired, else the name that expires first.
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
