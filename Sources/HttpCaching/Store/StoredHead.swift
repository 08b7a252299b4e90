public import HttpWare

/// A stored response without its content: the head, and the values that decide about its reuse.
public struct StoredHead: Sendable {
    public var status: HttpStatus
    /// The stored fields, without `Age`, which is written again for every answer. They are packed: each use makes a copy.
    public var fields: HttpFields {
        get { lines.fields }
        set { lines = StoredLines(newValue) }
    }
    private(set) var lines: StoredLines
    /// When it was received, or last validated.
    public var received: WallTime
    /// Its age at that time, in nanoseconds. RFC 9111 §4.2.3.
    public var initialAge: Int64
    /// Its `Date`, or the time when it was received: of several matching responses, the most recent is used. RFC 9111
    /// §4.1.
    public var date: WallTime
    public var rules: ReuseRules
    /// The request fields that it varies by, in addition to the key.
    public var vary: VaryKey
    /// For a response with status 206, the part that is its content. RFC 9111 §3.3.
    public var part: ContentRange?
    /// The tags by which the response can be purged.
    public var tags: [String]

    /// The head of a response that was received at that time, with the fields that may be stored. `key` is the key under which a
    /// store is going to hold it, if that is known.
    public init(
        status: HttpStatus, fields: consuming HttpFields, times: MessageTimes, directives: ResponseDirectives,
        lifetime: FreshnessLifetime, vary: VaryKey, mode: CacheMode, part: ContentRange? = nil, tags: [String] = [],
        keepsCookies: Bool = true, key: CacheKey? = nil
    ) {
        self.status = status
        var kept = StoredFields.kept(fields, directives: directives, mode: mode, keepsCookies: keepsCookies)
        kept.remove(.age)
        lines = StoredLines(kept, under: key)
        received = times.received
        initialAge = times.initialAge
        date = times.date
        rules = ReuseRules(directives, lifetime, mode: mode)
        self.vary = vary
        self.part = part
        self.tags = tags
    }

    /// Turns a part that contains all bytes into the whole.
    public mutating func becomeWhole() {
        guard let part, part.range.count == part.complete else { return }
        self.part = nil
        status = .ok
        fields.remove(.contentRange)
    }

    /// The head as it was stored.
    init(
        status: HttpStatus, lines: StoredLines, received: WallTime, initialAge: Int64, date: WallTime,
        rules: ReuseRules, vary: VaryKey, part: ContentRange?, tags: [String]
    ) {
        self.status = status
        self.lines = lines
        self.received = received
        self.initialAge = initialAge
        self.date = date
        self.rules = rules
        self.vary = vary
        self.part = part
        self.tags = tags
    }

    /// The current age in nanoseconds. RFC 9111 §4.2.3.
    public func age(at now: WallTime) -> Int64 { StoredHead.age(initialAge, received, at: now) }

    static func age(_ initialAge: Int64, _ received: WallTime, at now: WallTime) -> Int64 {
        let resident = max(0, MessageTimes.nanoseconds(from: received, to: now))
        let (age, overflow) = initialAge.addingReportingOverflow(resident)
        return overflow ? .max : age
    }

    /// The head, updated by a 304 or by the response to a HEAD with these times. RFC 9111 §3.2. `mayGuess` says whether
    /// a heuristic lifetime is allowed.
    ///
    /// The age and the date are those of the update, never those of the stored response: an update without `Date` is as
    /// of its receipt. RFC 9110 §6.6.1, RFC 9111 §4.2.3.
    public func updated(
        by update: HttpFields, requested: WallTime, received: WallTime, policy: CachePolicy, mayGuess: Bool = true
    ) -> StoredHead {
        var all = StoredFields.updated(fields, by: update)
        StoredFields.addDate(received, to: &all, statedBy: update)
        let (directives, isTargeted) = policy.directives(of: all)
        let times = MessageTimes(update, requested: requested, received: received)
        let lifetime = FreshnessLifetime(
            status: status, fields: all, directives: directives, isTargeted: isTargeted, times: times, policy: policy,
            mayGuess: mayGuess)
        var head = StoredHead(
            status: status, fields: all, times: times, directives: directives, lifetime: lifetime, vary: vary,
            mode: policy.mode, part: part, tags: tags,
            keepsCookies: policy.setCookie == .store || fields.contains(.setCookie))
        if !mayGuess, !lifetime.isExplicit { head.rules.forbidsStale = true }
        return head
    }
}
