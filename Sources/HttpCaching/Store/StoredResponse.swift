import Glibc
public import HttpWare

/// A stored response with the values that decide about its reuse. It never changes: an update replaces it. It uses few
/// bytes, because there may be millions: the key and the field lines are one array.
public final class StoredResponse: Sendable {
    /// The URI of the key, if the response holds it, followed by the packed field lines.
    private let packed: [UInt8]
    /// The whole content; for a 206, the part.
    public let content: StoredContent
    private let received: WallTime
    private let keyCount: Int32
    /// The `Date`, or the time of receipt. Of several matching responses, the most recent is used. RFC 9111 §4.1.
    public let date: WallTime
    private let code: UInt16
    private let flags: Flags
    private let initialAge: Int64
    private let rare: Rare?
    private let lifetime: UInt32

    private struct Flags: OptionSet {
        let rawValue: UInt8
        static let needsValidation = Flags(rawValue: 1)
        static let forbidsStale = Flags(rawValue: 2)
        static let isHeuristic = Flags(rawValue: 4)
    }

    /// The properties that most responses do not have.
    private final class Rare: Sendable {
        let vary: VaryKey
        let part: ContentRange?
        let tags: [String]
        let staleWhileRevalidate: UInt32?
        let staleIfError: UInt32?
        /// The field lines, if they cannot be packed.
        let fields: HttpFields?
        /// The parts of the key beside its URI, if the response holds the key.
        let keyParts: CacheKey.Parts?
        /// The approximate size of these properties, in bytes.
        var size: Int {
            let varying = zip(vary.names, vary.values).reduce(0) {
                $0 + 96 + $1.0.text.utf8.count + ($1.1?.count ?? 0)
            }
            return 160 + varying + tags.reduce(0) { $0 + 32 + $1.utf8.count } + (fields?.wireCount ?? 0)
                + (keyParts?.size ?? 0)
        }

        init?(_ head: borrowing StoredHead, fields: HttpFields?, keyParts: CacheKey.Parts?) {
            let rules = head.rules
            guard
                !head.vary.names.isEmpty || head.part != nil || !head.tags.isEmpty || fields != nil
                    || rules.staleWhileRevalidate != nil || rules.staleIfError != nil || keyParts != nil
            else { return nil }
            vary = head.vary
            part = head.part
            tags = head.tags
            staleWhileRevalidate = rules.staleWhileRevalidate
            staleIfError = rules.staleIfError
            self.fields = fields
            self.keyParts = keyParts
        }
    }

    /// The approximate memory of a stored response in bytes, without its key, fields and content.
    static let overhead = 300

    public convenience init(_ head: StoredHead, content: StoredContent) { self.init(head, content: content, key: nil) }

    /// A response that holds its key.
    public init(_ head: borrowing StoredHead, content: StoredContent, key: CacheKey?) {
        let lines = head.lines.areUnder(key) ? head.lines : StoredLines(head.fields, under: key)
        keyCount = Int32(clamping: lines.keyCount)
        packed = lines.bytes
        rare = Rare(head, fields: lines.unpackedFields, keyParts: key?.parts)
        self.content = content
        received = head.received
        date = head.date
        code = UInt16(clamping: head.status.code)
        var flags: Flags = []
        if head.rules.needsValidation { flags.insert(.needsValidation) }
        if head.rules.forbidsStale { flags.insert(.forbidsStale) }
        if head.rules.isHeuristic { flags.insert(.isHeuristic) }
        self.flags = flags
        initialAge = head.initialAge
        lifetime = head.rules.lifetime
    }

    /// The head, assembled again for updates and for stores that write it.
    public var head: StoredHead {
        StoredHead(
            status: status, lines: StoredLines(packed: packed, keyCount: Int(keyCount), unpacked: rare?.fields),
            received: received, initialAge: initialAge, date: date, rules: rules, vary: vary, part: part, tags: tags)
    }

    public var status: HttpStatus { HttpStatus(Int(code)) ?? .ok }
    /// A copy, with room for the fields that an answer adds.
    public var fields: HttpFields {
        rare?.fields ?? StoredLines.fields(packed, Int(keyCount))
    }
    public var rules: ReuseRules {
        ReuseRules(
            lifetime: lifetime, staleWhileRevalidate: rare?.staleWhileRevalidate, staleIfError: rare?.staleIfError,
            needsValidation: flags.contains(.needsValidation), forbidsStale: flags.contains(.forbidsStale),
            isHeuristic: flags.contains(.isHeuristic))
    }
    public var vary: VaryKey { rare?.vary ?? .none }
    public var part: ContentRange? { rare?.part }
    public var tags: [String] { rare?.tags ?? [] }
    public var validators: Validators { Validators(fields, now: received) }

    /// Its size in bytes, as counted against a store's limit.
    public var size: Int { content.size + packed.count + (rare?.size ?? 0) + StoredResponse.overhead }

    /// The current age in nanoseconds. RFC 9111 §4.2.3.
    public func age(at now: WallTime) -> Int64 { StoredHead.age(initialAge, received, at: now) }

    // MARK: The key

    /// The key that the response holds; an empty key if it holds none.
    var key: CacheKey {
        let (uri, parts) = (Array(packed[..<max(0, Int(keyCount))]), rare?.keyParts)
        return CacheKey(uri, identity: parts?.identity, share: parts?.share, variant: parts?.variant ?? [])
    }

    /// Whether the response has this key.
    @inline(__always)
    func isUnder(_ key: CacheKey) -> Bool {
        let count = Int(keyCount)
        guard count == key.uri.count, rare?.keyParts == key.parts else { return false }
        // Both arrays have at least `count` bytes: `init` put the URI at the front of `packed`.
        return packed.withUnsafeBytes { own in
            key.uri.withUnsafeBytes { other in
                guard let first = own.baseAddress, let second = other.baseAddress else { return count == 0 }
                return memcmp(first, second, count) == 0
            }
        }
    }
}
