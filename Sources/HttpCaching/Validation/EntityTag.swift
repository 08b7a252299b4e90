import HttpWare

/// A validator that names one representation. RFC 9110 §8.8.3.
public struct EntityTag: Sendable, Hashable {
    public let isWeak: Bool
    /// The bytes between the quotes, which need not be UTF-8.
    private let bytes: [UInt8]

    /// The text between the quotes.
    public var opaque: String { String(decoding: bytes, as: UTF8.self) }

    public init(_ opaque: String, isWeak: Bool = false) {
        bytes = Array(opaque.utf8)
        self.isWeak = isWeak
    }

    /// Reads one entity tag: `"x"` or `W/"x"`; `nil` for anything else.
    public init?(reading text: some StringProtocol) { self.init(reading: Array(text.utf8)[...]) }

    /// Reads one entity tag that need not be UTF-8; `nil` for anything else.
    public init?(reading text: ArraySlice<UInt8>) {
        var rest = text
        isWeak = rest.starts(with: [0x57, 0x2f])
        if isWeak { rest = rest.dropFirst(2) }
        guard rest.count >= 2, rest.first == 0x22, rest.last == 0x22 else { return nil }
        rest = rest.dropFirst().dropLast()
        guard rest.allSatisfy({ $0 == 0x21 || $0 >= 0x23 && $0 != 0x7f }) else { return nil }
        bytes = Array(rest)
    }

    /// The tag of a response; `nil` if it has none or several.
    init?(_ fields: HttpFields) {
        let lines = fields.rawValues(of: .etag)
        guard lines.count == 1 else { return nil }
        self.init(reading: lines[0][...])
    }

    /// Whether both tags name equivalent representations, perhaps not byte for byte. RFC 9110 §8.8.3.2.
    public func isWeaklyEqual(to other: EntityTag) -> Bool { bytes == other.bytes }

    /// Whether both tags name the same bytes. RFC 9110 §8.8.3.2.
    public func isStronglyEqual(to other: EntityTag) -> Bool { !isWeak && !other.isWeak && bytes == other.bytes }

    /// The members of `If-None-Match` or `If-Match` lines. A comma may be part of a tag. Invalid members are ignored.
    public static func list(_ lines: [[UInt8]]) -> [EntityTag] {
        lines.flatMap { text -> [EntityTag] in
            var tags: [EntityTag] = []
            var index = 0
            while index < text.count {
                var end = index
                var isQuoted = false
                while end < text.count, isQuoted || text[end] != 0x2c {
                    if text[end] == 0x22 { isQuoted.toggle() }
                    end += 1
                }
                var member = text[index..<end]
                while let first = member.first, first == 0x20 || first == 0x09 { member = member.dropFirst() }
                while let last = member.last, last == 0x20 || last == 0x09 { member = member.dropLast() }
                if let tag = EntityTag(reading: member) { tags.append(tag) }
                index = end + 1
            }
            return tags
        }
    }
}
