import HttpWare

/// A URL whose masks are written for programs that accept only the characters of RFC 3986 §2.
enum MaskedUrl {
    private static let encodedMark = "%E2%80%A6"

    /// The URL with its masks percent-encoded.
    static func written(_ url: String) -> String { replacing(url, Redaction.mark, by: encodedMark) }

    /// The URL with its masks decoded.
    static func read(_ url: String) -> String { replacing(url, encodedMark, by: Redaction.mark) }

    private static func replacing(_ text: String, _ part: String, by other: String) -> String {
        // Almost no URL contains the first byte.
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
