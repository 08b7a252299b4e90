package import HttpWare

/// Joins parts of one representation. RFC 9111 §3.4.
package enum StoredParts {
    /// A part and its bytes.
    package typealias Part = (part: ContentRange, bytes: [UInt8])

    /// The part of the representation that a 206 contains; `nil` if it cannot be determined. RFC 9110 §14.4, §15.3.7.
    ///
    /// If the length of the content is unknown, it is checked at the end. Content may be shorter than a part that claims to
    /// reach the end of the representation. Then the origin server counted wrong: the representation ends with the content.
    package static func part(of response: HttpResponse) -> ContentRange? {
        guard let said = response.fields[.contentRange].flatMap({ ContentRange(reading: $0) }) else { return nil }
        guard let length = response.content.length, length != said.range.count else { return said }
        guard length > 0, length < said.range.count, said.range.upperBound == said.complete, said.range.lowerBound > 0
        else { return nil }
        let end = said.range.lowerBound + length
        return ContentRange(range: said.range.lowerBound..<end, complete: end)
    }

    /// Joins two parts; overlapping bytes are taken from the first. `nil` if there is a gap between them, or the lengths of
    /// their representations differ.
    package static func join(_ one: Part, _ other: Part) -> (part: ContentRange, bytes: [UInt8])? {
        guard one.part.complete == other.part.complete, one.bytes.count == one.part.range.count,
            other.bytes.count == other.part.range.count
        else { return nil }
        let (a, b) = (one.part.range, other.part.range)
        guard a.lowerBound <= b.upperBound, b.lowerBound <= a.upperBound else { return nil }
        var bytes: [UInt8] = []
        if b.lowerBound < a.lowerBound { bytes += other.bytes.prefix(a.lowerBound - b.lowerBound) }
        bytes += one.bytes
        if b.upperBound > a.upperBound { bytes += other.bytes.suffix(b.upperBound - a.upperBound) }
        let range = min(a.lowerBound, b.lowerBound)..<max(a.upperBound, b.upperBound)
        return (ContentRange(range: range, complete: one.part.complete), bytes)
    }
}
