import HttpCaching

/// Puts parts of one representation together. RFC 9111 §3.4.
enum StoredParts {
    /// A part and its bytes.
    typealias Part = (part: ContentRange, bytes: [UInt8])

    /// Both together, the first one's bytes where they overlap; `nil` where there is a gap between them, or they are of
    /// representations of different lengths.
    static func join(_ one: Part, _ other: Part) -> (part: ContentRange, bytes: [UInt8])? {
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
