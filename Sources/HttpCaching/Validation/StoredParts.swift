package import HttpWare

/// Puts parts of one representation together. RFC 9111 §3.4.
package enum StoredParts {
    /// A part and its bytes.
    package typealias Part = (part: ContentRange, bytes: [UInt8])

    /// The part of the representation that a 206 holds; `nil` where that cannot be told. RFC 9110 §14.4, §15.3.7.
    ///
    /// If its length is not known before, it must turn out to be the part's. A shorter one that is said to reach the end of the
    /// representation tells where the end is: the origin server counted wrong, and the part is not the whole of it.
    package static func part(of response: HttpResponse) -> ContentRange? {
        guard let said = response.fields[.contentRange].flatMap({ ContentRange(reading: $0) }) else { return nil }
        guard let length = response.content.length, length != said.range.count else { return said }
        guard length > 0, length < said.range.count, said.range.upperBound == said.complete, said.range.lowerBound > 0
        else { return nil }
        let end = said.range.lowerBound + length
        return ContentRange(range: said.range.lowerBound..<end, complete: end)
    }

    /// Both together, the first one's bytes where they overlap; `nil` where there is a gap between them, or they are of
    /// representations of different lengths.
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
