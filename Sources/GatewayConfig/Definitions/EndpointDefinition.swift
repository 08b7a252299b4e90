public import HttpWare

/// One origin server of a service.
public struct EndpointDefinition: Sendable, Hashable {
    /// The host: a name in lower case, an IPv4 address, or an IPv6 address in brackets.
    public let host: String
    /// The TCP port; by default 80, or 443 for `https`.
    public let port: UInt16
    /// Whether the endpoint uses TLS: `https`.
    public let isSecure: Bool
    /// The prefix for the path of every request: empty, or such as `/api`, without a slash at its end.
    public let basePath: String
    /// The endpoint's share of the requests, relative to the other endpoints.
    public var weight = 1
    /// Whether the endpoint gets requests only while all other endpoints are unavailable.
    public var isBackup = false
    /// The place of the URL.
    public var location: SourceLocation

    /// The value of `Host`: `host:port`, without the scheme's default port.
    public var authority: String { port == (isSecure ? 443 : 80) ? host : "\(host):\(port)" }

    /// The shortest form of the URL: `http://host:port/path` or `https://…`.
    public var url: String { (isSecure ? "https://" : "http://") + authority + basePath }

    init(_ url: OriginUrl, at location: SourceLocation) {
        host = url.authority.host
        port = url.authority.port ?? (url.isSecure ? 443 : 80)
        isSecure = url.isSecure
        basePath = url.path
        self.location = location
    }
}

/// A value of `baseUrl` or `url`: `http://host:port/path` or `https://…`.
struct OriginUrl: OptionValue {
    let optionText: String
    let authority: Authority
    let path: String
    let isSecure: Bool

    static let optionType = "URL of an origin server"
    static var optionForm: OptionForm { .pattern("[Hh][Tt][Tt][Pp][Ss]?://[^?#@]+") }

    init(optionText: String) throws(OptionMistake) {
        let hint = "write a URL such as http://127.0.0.1:3000 or https://example.com"
        let lower = optionText.lowercased()
        isSecure = lower.hasPrefix("https://")
        guard isSecure || lower.hasPrefix("http://") else {
            let isPlain = !optionText.contains("://") && Authority(optionText)?.port != nil
            throw isPlain
                ? OptionMistake("write http://\(optionText)", problem: "the scheme is missing") : OptionMistake(hint)
        }
        let rest = optionText.dropFirst(isSecure ? "https://".count : "http://".count)
        if rest.contains("?") || rest.contains("#") || rest.contains("@") {
            throw OptionMistake("it must not have a query, fragment or user name")
        }
        let slash = rest.firstIndex(of: "/") ?? rest.endIndex
        var path = rest[slash...]
        while path.hasSuffix("/") { path.removeLast() }
        if let mistake = PortText.mistake(in: rest[..<slash]) { throw mistake }
        guard let authority = Authority(String(rest[..<slash])), authority.port != 0,
            path.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { throw OptionMistake(hint) }
        self.optionText = optionText
        self.authority = authority
        self.path = String(path)
    }
}
