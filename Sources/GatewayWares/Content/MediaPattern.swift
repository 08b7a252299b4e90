public import HttpWare

/// A pattern for media types: `text/html`, `text/*`, `application/*+json`. RFC 9110 §8.3.1, RFC 6839.
public struct MediaPattern: Sendable, Hashable {
    private let type: String
    /// The subtype; `nil` matches any.
    private let subtype: String?
    /// The required end of the subtype, such as `+json`, if any subtype matches.
    private let suffix: String

    /// Reads a pattern; `nil` if the text is invalid. Types are case-insensitive.
    public init?(_ text: String) {
        let parts = text.lowercased().split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2, HttpMethod(parts[0]) != nil, parts[0] != "*" else { return nil }
        type = parts[0]
        if parts[1] == "*" || parts[1].hasPrefix("*+") {
            subtype = nil
            suffix = String(parts[1].dropFirst())
        } else {
            subtype = parts[1]
            suffix = ""
        }
        // A type consists of tokens (§8.3.1), like a method.
        guard HttpMethod(subtype ?? "x\(suffix)") != nil, !(subtype ?? suffix).contains("*"), suffix != "+" else {
            return nil
        }
    }

    /// Whether the pattern matches exactly one type.
    public var isExact: Bool { subtype != nil }

    /// Whether the pattern matches a type, which must be in lower case and without parameters.
    public func matches(_ mediaType: String) -> Bool {
        guard mediaType.hasPrefix(type), let slash = mediaType.firstIndex(of: "/"),
            mediaType[..<slash] == type
        else { return false }
        let rest = mediaType[mediaType.index(after: slash)...]
        guard let subtype else { return rest.hasSuffix(suffix) && rest.utf8.count > suffix.utf8.count }
        return rest == subtype
    }
}

extension MediaPattern: OptionValue {
    public static let optionType = "media type"
    public var optionText: String { "\(type)/\(subtype ?? "*\(suffix)")" }

    public init(optionText: String) throws(OptionMistake) {
        guard let pattern = MediaPattern(optionText) else {
            throw OptionMistake("write one such as text/html, text/* or application/*+json")
        }
        self = pattern
    }
}

extension HttpResponse {
    /// The media type of the content, in lower case and without parameters; empty if the content has none.
    var mediaType: String { fields.mediaType }
}

extension HttpFields {
    /// The media type of the content, in lower case and without parameters; empty if there is none.
    var mediaType: String {
        guard let value = self[.contentType] else { return "" }
        let type = value.prefix { $0 != ";" }
        let isBlank = { (character: Character) in character == " " || character == "\t" }
        return String(String(type.drop(while: isBlank).reversed().drop(while: isBlank).reversed())).lowercased()
    }
}
