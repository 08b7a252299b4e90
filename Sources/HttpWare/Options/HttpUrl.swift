/// The URL of a resource that the gateway itself requests: `https://login.example.com/keys`. RFC 9110 §4.2.
public struct HttpUrl: Sendable, Hashable, CustomStringConvertible {
    /// The URL as written.
    public let text: String
    /// Whether requests use TLS, or stay on this host.
    public let isSafe: Bool

    public var description: String { text }
}

extension HttpUrl: OptionValue {
    public static let optionType = "URL"
    public static var optionForm: OptionForm { .pattern("^[Hh][Tt][Tt][Pp][Ss]?://[^@#\\s]+$") }
    public var optionText: String { text }

    public init(optionText: String) throws(OptionMistake) {
        let hint = "write a URL such as https://login.example.com/keys"
        let authority = optionText.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false).last
        guard let request = try? HttpRequest(.get, optionText), let host = request.host,
            optionText.lowercased().hasPrefix("http"), request.port != 0
        else { throw OptionMistake(hint) }
        if authority?.prefix(while: { $0 != "/" && $0 != "?" }).contains("@") == true {
            throw OptionMistake("it must not have a user name")
        }
        text = optionText
        isSafe = request.scheme == "https" || host == "localhost" || IPAddress(host)?.isLoopback == true
    }
}
