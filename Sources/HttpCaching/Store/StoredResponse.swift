public import HttpWare

/// A response as it was stored, with all that decides about its reuse. Never changed: an update puts another in its place.
public final class StoredResponse: Sendable {
    public let head: StoredHead
    /// Its content, whole; of a 206, its part.
    public let content: StoredContent

    /// What a stored response takes beside its fields and its content, roughly, in bytes.
    static let overhead = 512

    public init(_ head: StoredHead, content: StoredContent) {
        self.head = head
        self.content = content
    }

    public var status: HttpStatus { head.status }
    public var fields: HttpFields { head.fields }
    public var rules: ReuseRules { head.rules }
    public var vary: VaryKey { head.vary }
    public var part: ContentRange? { head.part }
    public var tags: [String] { head.tags }
    public var date: WallTime { head.date }
    public var validators: Validators { Validators(fields, now: head.received) }

    /// What it counts against a store's limit, in bytes.
    public var size: Int { content.count + fields.wireCount + StoredResponse.overhead }

    /// Nanoseconds. RFC 9111 §4.2.3.
    public func age(at now: WallTime) -> Int64 { head.age(at: now) }

    /// Seconds of freshness left, negative when it is stale.
    public func timeToLive(at now: WallTime) -> Int64 { Int64(rules.lifetime) - age(at: now) / 1_000_000_000 }
}
