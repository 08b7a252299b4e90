public import HttpWare

/// The validators of a stored response. RFC 9110 §8.8.
public struct Validators: Sendable, Equatable {
    public var etag: EntityTag?
    public var lastModified: WallTime?
    /// The `Date` field, if there is a valid one.
    public var date: WallTime?

    public init(etag: EntityTag? = nil, lastModified: WallTime? = nil, date: WallTime? = nil) {
        self.etag = etag
        self.lastModified = lastModified
        self.date = date
    }

    /// The validators in a header section.
    public init(_ fields: HttpFields, now: WallTime) {
        etag = EntityTag(fields)
        lastModified = fields.time(of: .lastModified, now: now)
        date = fields.time(of: .date, now: now)
    }

    public var isEmpty: Bool { etag == nil && lastModified == nil }

    /// Whether the modification date identifies the bytes: it is at least a second before the response's date, so a
    /// second change within its second would be noticed. RFC 9110 §8.8.2.2.
    public var isDateStrong: Bool {
        guard let lastModified, let date else { return false }
        return lastModified.seconds + 1 <= date.seconds
    }

    /// Whether two sets of validators name the same bytes, so that parts may be combined. RFC 9111 §3.4.
    public func areStronglyEqual(to other: Validators) -> Bool {
        if let etag, let others = other.etag { return etag.isStronglyEqual(to: others) }
        guard etag == nil, other.etag == nil, let lastModified else { return false }
        return lastModified == other.lastModified && isDateStrong && other.isDateStrong
    }

    /// Whether a 304 with `other` validators concerns the stored response with these. RFC 9111 §4.3.4.
    public func arePicked(by other: Validators) -> Bool {
        if let tag = other.etag {
            return etag.map { tag.isWeak ? tag.isWeaklyEqual(to: $0) : tag.isStronglyEqual(to: $0) } ?? false
        }
        if let date = other.lastModified { return lastModified == date }
        return true
    }
}
