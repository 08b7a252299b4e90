public import HttpWare

/// A stored response without its content: the head, and what decides about its reuse.
public struct StoredHead: Sendable {
    public var status: HttpStatus
    /// What is stored of its fields, without `Age`, which is written anew for every answer.
    public var fields: HttpFields
    /// When it was received, or last validated.
    public var received: WallTime
    /// How old it was then, in nanoseconds. RFC 9111 §4.2.3.
    public var initialAge: Int64
    /// Its `Date`, or when it was received: of several that match, the most recent is used. RFC 9111 §4.1.
    public var date: WallTime
    public var rules: ReuseRules
    /// Which requests it answers, beside the key.
    public var vary: VaryKey
    /// The part that its content is, of a response with status 206. RFC 9111 §3.3.
    public var part: ContentRange?
    /// Names by which it can be purged.
    public var tags: [String]

    /// The head of a response as it was received then, with what of its fields may be stored.
    public init(
        status: HttpStatus, fields: consuming HttpFields, times: MessageTimes, directives: ResponseDirectives,
        lifetime: FreshnessLifetime, vary: VaryKey, mode: CacheMode, part: ContentRange? = nil, tags: [String] = [],
        keepsCookies: Bool = true
    ) {
        self.status = status
        self.fields = StoredFields.kept(fields, directives: directives, mode: mode, keepsCookies: keepsCookies)
        self.fields.remove(.age)
        received = times.received
        initialAge = times.initialAge
        date = times.date
        rules = ReuseRules(directives, lifetime, mode: mode)
        self.vary = vary
        self.part = part
        self.tags = tags
    }

    /// A part that is all there is, is the whole.
    public mutating func becomeWhole() {
        guard let part, part.range.count == part.complete else { return }
        self.part = nil
        status = .ok
        fields.remove(.contentRange)
    }

    /// The head as it was stored.
    init(
        status: HttpStatus, fields: HttpFields, received: WallTime, initialAge: Int64, date: WallTime,
        rules: ReuseRules, vary: VaryKey, part: ContentRange?, tags: [String]
    ) {
        self.status = status
        self.fields = fields
        self.received = received
        self.initialAge = initialAge
        self.date = date
        self.rules = rules
        self.vary = vary
        self.part = part
        self.tags = tags
    }

    /// Nanoseconds. RFC 9111 §4.2.3.
    public func age(at now: WallTime) -> Int64 { StoredHead.age(initialAge, received, at: now) }

    static func age(_ initialAge: Int64, _ received: WallTime, at now: WallTime) -> Int64 {
        let resident = max(0, MessageTimes.nanoseconds(from: received, to: now))
        let (age, overflow) = initialAge.addingReportingOverflow(resident)
        return overflow ? .max : age
    }

    /// The head, updated by a 304 or a HEAD's response that was asked for and received then. RFC 9111 §3.2. `mayGuess` says whether
    /// its lifetime may be guessed.
    public func updated(
        by update: HttpFields, requested: WallTime, received: WallTime, policy: CachePolicy, mayGuess: Bool = true
    ) -> StoredHead {
        let all = StoredFields.updated(fields, by: update)
        let (directives, isTargeted) = policy.directives(of: all)
        let times = MessageTimes(update.contains(.date) ? update : all, requested: requested, received: received)
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
