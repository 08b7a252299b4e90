public import HttpWare

/// How each client of a service stays with one endpoint.
public struct ServiceSticky: Sendable {
    /// The cookie that names the endpoint.
    public let cookie: StickyEndpoints.Cookie
    /// The secrets that seal the cookie. The first one seals, and all of them open. If empty, the process uses its own secret.
    public let keys: [Secret]

    /// Reads `sticky`; `nil` if it is missing or invalid.
    init?(_ options: inout OptionsReader, isGiven: Bool) {
        var name: String?
        options.read("cookie", into: &name, doc: "name of the cookie that keeps a client with its endpoint")
        var cookie = StickyEndpoints.Cookie(name ?? "")
        options.read(
            "ttl", into: &cookie.ttl, in: .seconds(1) ... .seconds(31_536_000),
            doc: "how long the cookie holds without a request; without it, until the browser ends its session")
        options.read("path", into: &cookie.path, doc: "attribute Path of the cookie")
        options.read(
            "domain", into: &cookie.domain, doc: "attribute Domain of the cookie; without it, the request's host")
        options.read("httpOnly", into: &cookie.isHttpOnly, doc: "whether scripts cannot read the cookie")
        options.read(
            "secure", into: &cookie.isSecure,
            doc: "whether the cookie has Secure; without it, for clients that use https")
        options.read("sameSite", into: &cookie.sameSite, doc: "attribute SameSite of the cookie")
        var keys: [Secret] = []
        options.read(
            "key", into: &keys,
            doc: "secrets that seal the cookie: the first one seals, all open; without any, one of the process")
        self.cookie = cookie
        self.keys = keys
        guard isGiven || options.isDescribing else { return nil }
        options.require("cookie")
        if let name, FieldName(name) == nil {
            options.fail(
                at: "cookie", "\(name.quotedForErrors) is not the name of a cookie; write a token such as server")
        }
        for (key, text) in [("domain", cookie.domain), ("path", cookie.path)] {
            guard let text, !text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f && $0 != 0x3b && $0 != 0x2c }) else {
                continue
            }
            options.fail(
                at: key, "contains a space, a semicolon, a comma or a character that no cookie attribute can have")
        }
        if !cookie.path.hasPrefix("/") { options.fail(at: "path", "does not begin with a slash") }
        if cookie.sameSite == .none, cookie.isSecure == false {
            options.fail(at: "secure", "browsers refuse sameSite: none without Secure; write secure: true, or omit it")
        }
        RouteSticky.check(keys, &options)
        if !options.isGiven("key") {
            options.warn(
                "has no key, so after a restart, and at other replicas, clients may get another endpoint; write key, such as ${file:/run/secrets/sticky}"
            )
        }
    }
}
