import HttpWare

/// The head of a stored response, its key and the length of its content, as bytes for stores outside this process.
///
/// Integers are in little-endian order. Reading is strict: bytes that this code would not write are invalid. In order:
///
/// | part | bytes |
/// |---|---|
/// | version, flags, status | 1, 2, 2 |
/// | time of receipt: seconds, nanoseconds | 8, 4 |
/// | age at that time, in nanoseconds | 8 |
/// | date: seconds, nanoseconds | 8, 4 |
/// | lifetime, in seconds | 4 |
/// | the windows of RFC 5861 that the flags announce | 4 each |
/// | the bounds of the part that the flags announce, and its complete length | 8 each |
/// | length of the content | 8 |
/// | `Vary` values, tags, field lines, URI of the key | each after its count |
/// | the other parts of the key that the flags announce | flags, then each after its count |
/// | checksum of all that | 8 |
public struct StoredRecord: Sendable {
    public var key: CacheKey
    public var head: StoredHead
    /// The length of the content, which is kept elsewhere, in bytes.
    public var length: Int

    /// The maximum length of a record, in bytes.
    static let longest = 1 << 20
    private static let version: UInt8 = 1

    private struct Flags: OptionSet {
        let rawValue: UInt16
        static let staleWhileRevalidate = Flags(rawValue: 1)
        static let staleIfError = Flags(rawValue: 2)
        static let needsValidation = Flags(rawValue: 4)
        static let forbidsStale = Flags(rawValue: 8)
        static let isHeuristic = Flags(rawValue: 16)
        static let part = Flags(rawValue: 32)
        static let complete = Flags(rawValue: 64)
        static let keyParts = Flags(rawValue: 128)
        static let all = Flags(rawValue: 255)
    }

    public init(key: CacheKey, head: StoredHead, length: Int) {
        self.key = key
        self.head = head
        self.length = length
    }

    // MARK: Writing

    /// The record's bytes; `nil` if they are too long.
    public var bytes: [UInt8]? {
        var output = ByteWriter()
        var flags: Flags = []
        let rules = head.rules
        if rules.staleWhileRevalidate != nil { flags.insert(.staleWhileRevalidate) }
        if rules.staleIfError != nil { flags.insert(.staleIfError) }
        if rules.needsValidation { flags.insert(.needsValidation) }
        if rules.forbidsStale { flags.insert(.forbidsStale) }
        if rules.isHeuristic { flags.insert(.isHeuristic) }
        if head.part != nil { flags.insert(.part) }
        if head.part?.complete != nil { flags.insert(.complete) }
        if key.parts != nil { flags.insert(.keyParts) }
        output.add(StoredRecord.version)
        output.add(flags.rawValue)
        output.add(UInt16(head.status.code))
        output.add(head.received)
        output.add(UInt64(bitPattern: head.initialAge))
        output.add(head.date)
        output.add(rules.lifetime)
        if let window = rules.staleWhileRevalidate { output.add(window) }
        if let window = rules.staleIfError { output.add(window) }
        if let part = head.part {
            output.add(UInt64(part.range.lowerBound))
            output.add(UInt64(part.range.upperBound))
            if let complete = part.complete { output.add(UInt64(complete)) }
        }
        output.add(UInt64(length))
        output.add(UInt16(clamping: head.vary.names.count))
        for (name, value) in zip(head.vary.names, head.vary.values) {
            output.add(Array(name.text.utf8))
            output.add(UInt8(value == nil ? 0 : 1))
            if let value { output.add(value) }
        }
        output.add(UInt32(clamping: head.tags.count))
        for tag in head.tags { output.add(Array(tag.utf8)) }
        let fields = head.fields
        output.add(UInt32(clamping: fields.lineBytes))
        fields.appendWire(to: &output.bytes)
        output.add(key.uri)
        if key.parts != nil { key.addParts(to: &output) }
        guard output.bytes.count <= StoredRecord.longest - 8 else { return nil }
        output.add(Checksum.of(output.bytes))
        return output.bytes
    }

    // MARK: Reading

    /// Reads a record; `nil` if the bytes are not a valid record.
    public init?(_ bytes: [UInt8]) {
        guard bytes.count > 8, bytes.count <= StoredRecord.longest else { return nil }
        var input = ByteReader(bytes)
        input.end -= 8
        guard let sum = ByteReader(bytes, from: bytes.count - 8).peek(UInt64.self),
            sum == Checksum.of(bytes[..<(bytes.count - 8)]), input.take(UInt8.self) == StoredRecord.version,
            let flags = input.take(UInt16.self).map(Flags.init), flags.isSubset(of: .all),
            let status = input.take(UInt16.self).flatMap({ HttpStatus(Int($0)) }), let received = input.takeTime(),
            let initialAge = input.take(UInt64.self), let date = input.takeTime(),
            let lifetime = input.take(UInt32.self)
        else { return nil }
        var whileRevalidate: UInt32?
        if flags.contains(.staleWhileRevalidate) {
            guard let window = input.take(UInt32.self) else { return nil }
            whileRevalidate = window
        }
        var ifError: UInt32?
        if flags.contains(.staleIfError) {
            guard let window = input.take(UInt32.self) else { return nil }
            ifError = window
        }
        var part: ContentRange?
        if flags.contains(.part) {
            guard let lower = input.takeInt(), let upper = input.takeInt(), lower < upper else { return nil }
            var complete: Int?
            if flags.contains(.complete) {
                guard let whole = input.takeInt(), whole >= upper else { return nil }
                complete = whole
            }
            part = ContentRange(range: lower..<upper, complete: complete)
        } else if flags.contains(.complete) {
            return nil
        }
        guard let length = input.takeInt(), part == nil || part?.range.count == length,
            let vary = StoredRecord.vary(&input), let tags = StoredRecord.tags(&input),
            let lines = input.takeRange(), let fields = HttpFields(wire: bytes, in: lines),
            let uri = input.takeBytes()
        else { return nil }
        // A URI has no control characters. Earlier versions wrote the other parts behind a line feed; such records are dropped.
        guard !uri.contains(where: { $0 < 0x20 || $0 == 0x7f }) else { return nil }
        var key = CacheKey(uri)
        if flags.contains(.keyParts) {
            guard let whole = CacheKey(uri, parts: &input) else { return nil }
            key = whole
        }
        guard input.isAtEnd else { return nil }
        self.init(
            key: key,
            head: StoredHead(
                status: status, lines: StoredLines(fields), received: received,
                initialAge: Int64(bitPattern: initialAge),
                date: date,
                rules: ReuseRules(
                    lifetime: lifetime, staleWhileRevalidate: whileRevalidate, staleIfError: ifError,
                    needsValidation: flags.contains(.needsValidation), forbidsStale: flags.contains(.forbidsStale),
                    isHeuristic: flags.contains(.isHeuristic)),
                vary: vary, part: part, tags: tags), length: length)
    }

    private static func vary(_ input: inout ByteReader) -> VaryKey? {
        guard let count = input.take(UInt16.self), count <= VaryKey.mostNames else { return nil }
        var names: [FieldName] = []
        var values: [[UInt8]?] = []
        for _ in 0..<count {
            guard let text = input.takeText(), let name = FieldName(text), !names.contains(name),
                let isThere = input.take(UInt8.self), isThere <= 1
            else { return nil }
            names.append(name)
            if isThere == 1 {
                guard let value = input.takeBytes() else { return nil }
                values.append(value)
            } else {
                values.append(nil)
            }
        }
        return VaryKey(names: names, values: values)
    }

    private static func tags(_ input: inout ByteReader) -> [String]? {
        // A tag takes at least four bytes, so that a wrong count cannot reserve much memory.
        guard let count = input.take(UInt32.self), Int(count) * 4 <= input.left else { return nil }
        var tags: [String] = []
        tags.reserveCapacity(Int(count))
        for _ in 0..<count {
            guard let tag = input.takeText() else { return nil }
            tags.append(tag)
        }
        return tags
    }

    // MARK: Variants

    /// A number that distinguishes the responses under one key, made from the values by which they vary.
    public static func variant(of vary: VaryKey) -> UInt64 {
        guard !vary.names.isEmpty else { return 0 }
        var bytes = ByteWriter()
        for (name, value) in zip(vary.names, vary.values) {
            bytes.add(Array(name.lowercased.utf8))
            bytes.add(UInt8(value == nil ? 0 : 1))
            bytes.add(value ?? [])
        }
        return Checksum.of(bytes.bytes)
    }
}
