public import HttpWare

/// An absolute `http` or `https` URI of a server that the gateway calls itself, as an option.
public struct EndpointUrl: Sendable, Hashable, CustomStringConvertible {
    /// The URI as written.
    public let text: String
    /// The host, in lower case.
    public let host: String
    /// Whether the scheme is `https`.
    public let isSecure: Bool

    /// Accepts an absolute URI without fragment and user information; `nil` for anything else.
    public init?(_ text: String) {
        guard let request = try? HttpRequest(.get, text), request.hasPath, let host = request.host,
            text.hasPrefix("http://") || text.hasPrefix("https://")
        else { return nil }
        self.text = text
        self.host = host
        isSecure = request.scheme == "https"
    }

    public var description: String { text }

    /// Whether requests to this host stay on this machine.
    public var isLoopback: Bool {
        let bare = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        return host == "localhost" || SocketAddress("\(bare.contains(":") ? "[\(bare)]" : bare):1")?.isLoopback == true
    }
}

extension EndpointUrl: OptionValue {
    public static let optionType = "URL"
    public static var optionForm: OptionForm { .pattern("https?://[^#\\s]+") }
    public var optionText: String { text }

    public init(optionText: String) throws(OptionMistake) {
        guard let url = EndpointUrl(optionText) else {
            throw OptionMistake("write such as https://login.example.com/oauth2/token")
        }
        self = url
    }
}
