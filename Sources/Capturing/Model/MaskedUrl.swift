import HttpWare

/// A URL with marks in place of masked values, for programs that take no other characters than those of RFC 3986 §2.
enum MaskedUrl {
    private static let encodedMark = "%E2%80%A6"

    /// With the mark percent-encoded.
    static func written(_ url: String) -> String { replacing(url, Redaction.mark, by: encodedMark) }

    /// The same with the mark itself.
    static func read(_ url: String) -> String { replacing(url, encodedMark, by: Redaction.mark) }

    private static func replacing(_ text: String, _ part: String, by other: String) -> String {
        // Nearly no URL has the first byte.
        guard let first = part.utf8.first, text.utf8.contains(first), text.contains(part) else { return text }
        var result = ""
        var rest = text[...]
        while let range = rest.firstRange(of: part) {
            result += rest[..<range.lowerBound] + other
            rest = rest[range.upperBound...]
        }
        return result + rest
    }
}
