public import HttpWare

/// A request's preconditions, as decided by a cache that answers. RFC 9111 §4.3.2, RFC 9110 §13.
public enum Preconditions {
    /// The result for a stored response.
    public enum Outcome: Sendable, Equatable {
        /// The whole response is sent.
        case send
        /// The client already has it: 304.
        case notModified
    }

    /// Whether the request has conditions that only the origin server can decide. RFC 9111 §4.3.2.
    public static func areForOrigin(_ fields: HttpFields) -> Bool {
        fields.mayContain(originConditions) && (fields.contains(.ifMatch) || fields.contains(.ifUnmodifiedSince))
    }

    private static let originConditions = KnownFields(.ifMatch, .ifUnmodifiedSince)
    private static let conditions = KnownFields(.ifNoneMatch, .ifModifiedSince)

    /// Whether the client asks only for a response that differs from its own.
    public static func areConditional(_ fields: HttpFields) -> Bool {
        fields.mayContain(conditions) && (fields.contains(.ifNoneMatch) || fields.contains(.ifModifiedSince))
    }

    /// Decides about a stored response with status 200: `If-None-Match` takes precedence over `If-Modified-Since`, and
    /// tags compare weakly. RFC 9110 §13.1.2, §13.1.3, §13.2.2.
    ///
    /// `received` is the time when the response was stored. It replaces a missing `Last-Modified`: RFC 9111 §4.3.2.
    public static func decide(_ fields: HttpFields, stored: Validators, received: WallTime) -> Outcome {
        let lines = fields.rawValues(of: .ifNoneMatch)
        if !lines.isEmpty {
            if lines.contains(where: isAny) { return .notModified }
            guard let tag = stored.etag else { return .send }
            return EntityTag.list(lines).contains { $0.isWeaklyEqual(to: tag) } ? .notModified : .send
        }
        let since = fields.values(of: .ifModifiedSince)
        guard since.count == 1, let time = HttpDate.time(since[0], now: received) else { return .send }
        let changed = stored.lastModified ?? stored.date ?? received
        return changed.seconds <= time.seconds ? .notModified : .send
    }

    /// Whether an origin server may answer with a representation that has these validators. `If-Match` must name it; without that
    /// field, it must not have been modified after `If-Unmodified-Since`. Otherwise the answer is 412. RFC 9110 §13.1.1, §13.1.4,
    /// §13.2.2.
    public static func areMet(_ fields: HttpFields, current: Validators, now: WallTime) -> Bool {
        let lines = fields.rawValues(of: .ifMatch)
        if !lines.isEmpty {
            if lines.contains(where: isAny) { return true }
            guard let tag = current.etag else { return false }
            return EntityTag.list(lines).contains { $0.isStronglyEqual(to: tag) }
        }
        let since = fields.values(of: .ifUnmodifiedSince)
        guard since.count == 1, let time = HttpDate.time(since[0], now: now), let changed = current.lastModified else {
            return true
        }
        return changed.seconds <= time.seconds
    }

    /// Whether a range may be answered from the stored response: there is no `If-Range`, or it names these bytes.
    /// RFC 9110 §13.1.5.
    public static func allowsRange(_ fields: HttpFields, stored: Validators, now: WallTime) -> Bool {
        let lines = fields.rawValues(of: .ifRange)
        guard let line = lines.first else { return true }
        guard lines.count == 1 else { return false }
        if let tag = EntityTag(reading: line[...]) { return stored.etag?.isStronglyEqual(to: tag) ?? false }
        guard let time = HttpDate.time(String(decoding: line, as: UTF8.self), now: now) else { return false }
        return stored.isDateStrong && stored.lastModified == time
    }

    /// Whether a line of `If-None-Match` or `If-Match` is `*`. RFC 9110 §13.1.2.
    public static func isAny(_ line: [UInt8]) -> Bool {
        line.filter { $0 != 0x20 && $0 != 0x09 }.elementsEqual("*".utf8)
    }
}
