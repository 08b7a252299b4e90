public import HttpWare

/// A response as it was stored, with all that decides about its reuse. Never changed: an update puts another in its place.
public final class StoredResponse: Sendable {
    public let status: HttpStatus
    /// What is stored of its fields, without `Age`, which is written anew for every answer.
    public let fields: HttpFields
    /// Its content, whole.
    public let content: [UInt8]
    public let times: MessageTimes
    public let directives: ResponseDirectives
    public let lifetime: FreshnessLifetime
    public let validators: Validators
    /// Which requests it answers, beside the key.
    public let vary: VaryKey
    /// Names by which it can be purged.
    public let tags: [String]

    /// What a stored response takes beside its fields and its content, roughly, in bytes.
    static let overhead = 512

    public init(
        status: HttpStatus, fields: HttpFields, content: [UInt8], times: MessageTimes, directives: ResponseDirectives,
        lifetime: FreshnessLifetime, vary: VaryKey, tags: [String] = []
    ) {
        self.status = status
        var fields = fields
        fields.remove(.age)
        self.fields = fields
        self.content = content
        self.times = times
        self.directives = directives
        self.lifetime = lifetime
        self.vary = vary
        self.tags = tags
        validators = Validators(fields, now: times.received)
    }

    /// What it counts against a store's limit, in bytes.
    public var size: Int { content.count + fields.wireCount + StoredResponse.overhead }

    /// Nanoseconds. RFC 9111 §4.2.3.
    public func age(at now: WallTime) -> Int64 { times.currentAge(at: now) }

    /// Seconds of freshness left, negative when it is stale.
    public func timeToLive(at now: WallTime) -> Int64 { lifetime.seconds - age(at: now) / 1_000_000_000 }

    /// The stored response, updated by a 304 or a HEAD's response that was asked for and received then. RFC 9111 §3.2.
    public func updated(
        by update: HttpFields, requested: WallTime, received: WallTime, policy: CachePolicy
    ) -> StoredResponse {
        let all = StoredFields.updated(fields, by: update)
        let (directives, isTargeted) = policy.directives(of: all)
        let times = MessageTimes(
            update.contains(.date) ? update : all, requested: requested, received: received)
        let lifetime = FreshnessLifetime(
            status: status, fields: all, directives: directives, isTargeted: isTargeted,
            times: times, policy: policy)
        return StoredResponse(
            status: status, fields: StoredFields.kept(all, directives: directives, mode: policy.mode), content: content,
            times: times, directives: directives, lifetime: lifetime, vary: vary, tags: tags)
    }
}
