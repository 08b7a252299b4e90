/// Answers that a resolver remembers until they expire: a bounded table that knows neither clock nor network.
struct ResolverCache {
    /// Addresses in the order to be tried, or why there are none.
    typealias Answer = Result<[IPAddress], ResolveError>

    /// How many names are remembered at most.
    let capacity: Int

    private var entries: [String: (answer: Answer, expires: LoopInstant)] = [:]

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
        entries[name] = nil
        return nil
    }

    /// When what is remembered of a name expires; `nil` where nothing is.
    func expiry(of name: String) -> LoopInstant? { entries[name]?.expires }

    /// Remembers an answer. A full cache gives up what has expired, else the name that expires first.
    mutating func store(_ answer: Answer, for name: String, until expires: LoopInstant, at now: LoopInstant) {
        if entries.count >= capacity, entries[name] == nil {
            entries = entries.filter { $0.value.expires > now }
            if entries.count >= capacity, let first = entries.min(by: { $0.value.expires < $1.value.expires }) {
                entries[first.key] = nil
            }
        }
        entries[name] = (answer, expires)
    }

    /// Forgets everything.
    mutating func removeAll() { entries = [:] }
}
