public import FoundationEssentials

/// A stored cookie. RFC 6265bis §5.7.
///
/// It can be encoded, for programs that keep cookies after they end: store `jar.cookies`, and restore them with `CookieJar(_:)`.
public struct Cookie: Sendable, Hashable, Codable {
    public let name: String
    public let value: String
    /// The host that set it, or the domain that the host named, in lower case.
    public let domain: String
    /// Whether it is sent to this host only, not to other hosts of the domain.
    public let isHostOnly: Bool
    /// The path prefix of requests with this cookie.
    public let path: String
    /// Whether it is sent over TLS only.
    public let isSecure: Bool
    /// Whether it is hidden from the scripts of a page. A client makes no use of this.
    public let isHttpOnly: Bool
    /// The expiry; `nil` for a session cookie.
    public let expires: Date?
    /// When it was first set.
    public internal(set) var created: Date

    public init(
        name: String, value: String, domain: String, isHostOnly: Bool = true, path: String = "/",
        isSecure: Bool = true, isHttpOnly: Bool = true, expires: Date? = nil, created: Date = Date()
    ) {
        self.name = name
        self.value = value
        self.domain = domain.lowercased()
        self.isHostOnly = isHostOnly
        self.path = path.hasPrefix("/") ? path : "/"
        self.isSecure = isSecure
        self.isHttpOnly = isHttpOnly
        self.expires = expires
        self.created = created
    }

    /// The text for `Cookie`. RFC 6265bis §5.8.3.
    var pair: String { name.isEmpty ? value : "\(name)=\(value)" }

    func isOver(_ now: Date) -> Bool { expires.map { $0 <= now } ?? false }

    /// Whether this cookie replaces the other one, because name, domain and path are the same.
    func replaces(_ other: Cookie) -> Bool {
        name == other.name && domain == other.domain && isHostOnly == other.isHostOnly && path == other.path
    }

    /// Whether it is sent to this address.
    func goes(to place: CookiePlace) -> Bool {
        (isHostOnly ? place.host == domain : CookiePlace.matches(place.host, domain: domain))
            && CookiePlace.matches(place.path, path: path) && (place.isSecure || !isSecure)
    }
}

/// The parts of a request's target that cookies depend on.
struct CookiePlace {
    let host: String
    let path: String
    let isSecure: Bool

    /// `nil` for a request without a host.
    init?(_ request: HttpRequest) {
        guard let host = request.host else { return nil }
        self.init(host: host, path: request.path, isSecure: request.scheme == "https")
    }

    init(host: String, path: String, isSecure: Bool) {
        self.host = host
        self.path = path
        self.isSecure = isSecure
    }

    /// The path up to its last slash, without that slash. RFC 6265bis §5.1.4.
    var defaultPath: String {
        guard path.hasPrefix("/"), let slash = path.lastIndex(of: "/"), slash > path.startIndex else { return "/" }
        return String(path[..<slash])
    }

    /// Whether the host equals the domain, or is below it. RFC 6265bis §5.1.3.
    static func matches(_ host: String, domain: String) -> Bool {
        host == domain || (host.hasSuffix("." + domain) && !isAddress(host))
    }

    /// Whether a path equals a cookie's path, or is below it. RFC 6265bis §5.1.4.
    static func matches(_ path: String, path prefix: String) -> Bool {
        guard path != prefix else { return true }
        return path.hasPrefix(prefix) && (prefix.hasSuffix("/") || path.dropFirst(prefix.count).hasPrefix("/"))
    }

    private static func isAddress(_ host: String) -> Bool {
        if host.hasPrefix("[") { return true }
        return host.utf8.allSatisfy { $0 == 0x2e || (0x30...0x39).contains($0) }
    }

    /// Whether anyone can register a name directly below this one. Addresses count too.
    static func isPublicSuffix(_ domain: String) -> Bool { isAddress(domain) || PublicSuffixes.contains(domain) }
}
