/// Where a service is: `https://api.example.com/v1`. What is written in code is checked when it runs; `init(_:)` checks what
/// comes from elsewhere.
public struct BaseUrl: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// Without a slash at its end.
    public let text: String

    /// Throws when the text is not an `http` or `https` URI of a host, or has user information, a query or a fragment.
    public init(_ text: String) throws(HttpError) {
        let isAbsolute = text.hasPrefix("http://") || text.hasPrefix("https://")
        guard isAbsolute, let request = try? HttpRequest(.get, text), request.host != nil, request.query == nil else {
            throw HttpError(
                .client, .invalidRequest, .making,
                "\(text) is not a base URL; write one such as https://api.example.com/v1")
        }
        var text = text
        while text.hasSuffix("/") { text.removeLast() }
        self.text = text
    }

    /// A URL in code; one that is none is a mistake of the code and traps.
    public init(stringLiteral value: StaticString) {
        // A `StaticString` is a literal that stands in the program: no input of the running program is ever one, so nothing that
        // a peer, a file or a person writes reaches this trap. What comes from there goes through `init(_:)`, which throws.
        guard let url = try? BaseUrl("\(value)") else { preconditionFailure("\(value) is not a base URL") }
        self = url
    }

    public var description: String { text }
}
