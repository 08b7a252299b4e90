public import FoundationEssentials

/// The address of a service, such as `https://api.example.com/v1`. A literal is checked at run time and traps; `init(_:)`
/// checks other texts and throws.
public struct BaseUrl: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The URL, without a slash at its end.
    public let text: String

    /// Throws if the text is not an `http` or `https` URI with a host, or has user information, a query or a fragment.
    public init(_ text: String) throws(HttpError) {
        var text = BaseUrl.withLowercaseScheme(text)
        let isAbsolute = text.hasPrefix("http://") || text.hasPrefix("https://")
        guard isAbsolute, let request = try? HttpRequest(.get, text), request.host != nil, request.query == nil else {
            throw HttpError(
                .client, .invalidRequest, .making,
                "\(text) is not a base URL; write a URL such as https://api.example.com/v1")
        }
        while text.hasSuffix("/") { text.removeLast() }
        self.text = text
    }

    /// The same check for a text that is written in code, where `BaseUrl("…")` would be a literal, which traps.
    public init(checking text: String) throws(HttpError) { try self.init(text) }

    /// Throws if the URL is not absolute with `http` or `https` and a host, or has user information, a query or a fragment.
    public init(_ url: URL) throws(HttpError) { try self.init(url.absoluteString) }

    /// A scheme has no case. RFC 3986 §3.1.
    static func withLowercaseScheme(_ text: String) -> String {
        for scheme in ["http://", "https://"] where text.prefix(scheme.count).lowercased() == scheme {
            return scheme + text.dropFirst(scheme.count)
        }
        return text
    }

    /// A URL in code. An invalid one is a mistake in the code and traps.
    public init(stringLiteral value: StaticString) {
        // A `StaticString` is always a literal in the program. Input from a peer, a file or a person therefore never reaches
        // this trap. It goes through `init(_:)`, which throws.
        guard let url = try? BaseUrl("\(value)") else { preconditionFailure("\(value) is not a base URL") }
        self = url
    }

    public var description: String { text }
}
