import HttpWare

/// The part of a representation that a `Range` asks for. RFC 9110 §14.
public enum ByteRange: Sendable, Equatable {
    /// One part, of at least one byte.
    case part(Range<Int>)
    /// At least two parts, in the requested order. No two of them overlap.
    case parts([Range<Int>])
    /// No part of the representation: 416.
    case unsatisfiable

    /// With more parts than this, the representation is sent whole. RFC 9110 §14.2.
    public static let mostParts = 16
    /// The largest gap between two parts that costs less than the head of another part. RFC 9110 §15.3.7.2.
    private static let leastGap = 80

    /// The requested part of a representation of that length; `nil` if the field must be ignored: another unit, several
    /// lines, a syntax error, or too many parts. Parts that overlap, or almost touch, become one.
    public init?(_ lines: [String], length: Int) {
        guard lines.count == 1, let equals = lines[0].utf8.firstIndex(of: 0x3d),
            lines[0][..<equals].lowercased() == "bytes"
        else { return nil }
        let members = lines[0][lines[0].index(after: equals)...].split(separator: ",", omittingEmptySubsequences: false)
        guard members.count <= ByteRange.mostParts else { return nil }
        var ranges: [Range<Int>] = []
        for member in members {
            guard let spec = ByteRange.spec(member, length: length) else { return nil }
            if !spec.isEmpty { ranges.append(spec) }
        }
        if ranges.isEmpty {
            self = .unsatisfiable
        } else {
            ranges = ByteRange.coalesced(ranges)
            self = ranges.count == 1 ? .part(ranges[0]) : .parts(ranges)
        }
    }

    /// The same bytes in fewer parts: overlapping and close ranges are joined. A joined range takes the place of its first range.
    private static func coalesced(_ ranges: [Range<Int>]) -> [Range<Int>] {
        var joined: [(place: Int, range: Range<Int>)] = []
        for (place, range) in ranges.enumerated().sorted(by: { $0.element.lowerBound < $1.element.lowerBound }) {
            if let last = joined.last, range.lowerBound - last.range.upperBound < leastGap {
                let end = max(last.range.upperBound, range.upperBound)
                joined[joined.count - 1] = (min(last.place, place), last.range.lowerBound..<end)
            } else {
                joined.append((place, range))
            }
        }
        return joined.sorted { $0.place < $1.place }.map(\.range)
    }

    /// Reads `first-last`, `first-` or `-suffix`, cut to the length; empty if it begins after the end; `nil` if it is invalid.
    private static func spec(_ member: Substring, length: Int) -> Range<Int>? {
        var text = member[...]
        while text.first == " " || text.first == "\t" { text = text.dropFirst() }
        while text.last == " " || text.last == "\t" { text = text.dropLast() }
        guard let dash = text.utf8.firstIndex(of: 0x2d) else { return nil }
        let first = text[..<dash]
        let last = text[text.index(after: dash)...]
        if first.isEmpty {
            guard let suffix = number(last) else { return nil }
            return max(0, length - suffix)..<length
        }
        guard let from = number(first) else { return nil }
        if last.isEmpty { return min(from, length)..<length }
        guard let to = number(last), to >= from else { return nil }
        return min(from, length)..<min(to == .max ? .max : to + 1, length)
    }

    /// Reads digits only; a number that is too large counts as the largest.
    private static func number(_ text: Substring) -> Int? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int(text) ?? .max
    }
}

/// The part in a 206. RFC 9110 §14.4.
public struct ContentRange: Sendable, Equatable {
    public let range: Range<Int>
    /// The length of the whole representation; `nil` if it is unknown.
    public let complete: Int?

    public init(range: Range<Int>, complete: Int?) {
        self.range = range
        self.complete = complete
    }

    /// Reads `bytes first-last/length`; `nil` for anything else.
    public init?(reading text: String) {
        let parts = text.split(separator: " ", omittingEmptySubsequences: true)
        guard parts.count == 2, parts[0].lowercased() == "bytes" else { return nil }
        let sides = parts[1].split(separator: "/", omittingEmptySubsequences: false)
        guard sides.count == 2 else { return nil }
        let ends = sides[0].split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, ContentRange.isNumber(ends[0]), ContentRange.isNumber(ends[1]), let first = Int(ends[0]),
            let last = Int(ends[1]), last >= first, last < .max
        else { return nil }
        var complete: Int?
        if sides[1] != "*" {
            guard ContentRange.isNumber(sides[1]), let length = Int(sides[1]), last < length else { return nil }
            complete = length
        }
        self.init(range: first..<(last + 1), complete: complete)
    }

    /// The field's value.
    public var text: String {
        "bytes \(range.lowerBound)-\(range.upperBound - 1)/" + (complete.map { "\($0)" } ?? "*")
    }

    private static func isNumber(_ text: Substring) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }
}
