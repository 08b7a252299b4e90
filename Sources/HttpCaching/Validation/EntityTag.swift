import HttpWare

/// A validator that names one representation. RFC 9110 §8.8.3.
public struct EntityTag: Sendable, Hashable {
    public let isWeak: Bool
    /// What stands between the quotes.
    public let opaque: String

    public init(_ opaque: String, isWeak: Bool = false) {
        self.opaque = opaque
        self.isWeak = isWeak
    }

    /// Reads one entity tag: `"x"` or `W/"x"`; `nil` for anything else.
    public init?(reading text: some StringProtocol) {
        var rest = Array(text.utf8)[...]
        isWeak = rest.starts(with: [0x57, 0x2f])
        if isWeak { rest = rest.dropFirst(2) }
        guard rest.count >= 2, rest.first == 0x22, rest.last == 0x22 else { return nil }
        rest = rest.dropFirst().dropLast()
        guard rest.allSatisfy({ $0 == 0x21 || $0 >= 0x23 && $0 != 0x7f }) else { return nil }
        opaque = String(decoding: rest, as: UTF8.self)
    }

    /// Whether both name equal representations, perhaps not byte for byte. RFC 9110 §8.8.3.2.
    public func isWeaklyEqual(to other: EntityTag) -> Bool { opaque == other.opaque }

    /// Whether both name the same bytes. RFC 9110 §8.8.3.2.
    public func isStronglyEqual(to other: EntityTag) -> Bool { !isWeak && !other.isWeak && opaque == other.opaque }

    /// The members of `If-None-Match` or `If-Match` lines. A comma may be part of a tag. Members that are none are left out.
    static func list(_ lines: [String]) -> [EntityTag] {
        lines.flatMap { line -> [EntityTag] in
            var tags: [EntityTag] = []
            let text = Array(line.utf8)
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
                if let tag = EntityTag(reading: String(decoding: member, as: UTF8.self)) { tags.append(tag) }
                index = end + 1
            }
            return tags
        }
    }
}
