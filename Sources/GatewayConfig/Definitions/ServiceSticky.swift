public import HttpWare

/// How each client of a service stays with one endpoint.
public struct ServiceSticky: Sendable {
    /// The cookie that names the endpoint.
    public let cookie: StickyEndpoints.Cookie
    /// The secrets that seal the cookie. The first one seals, and all of them open. If empty, the process uses its own secret.
    public let keys: [Secret]

    /// Reads `sticky`; `nil` if it is missing or invalid.
    init?(_ options: inout OptionsReader) {
        var name: String?
        options.readCookieName(
            "cookie", into: &name, such: "server", doc: "name of the cookie that keeps a client with its endpoint")
        var cookie = StickyEndpoints.Cookie(name ?? "")
        options.read(
            "ttl", into: &cookie.ttl, in: .seconds(1) ... .seconds(31_536_000),
            doc: "how long the cookie holds without a request; without it, until the browser ends its session")
        var path: String? = cookie.path
        options.readCookiePlace(
            domain: &cookie.domain, path: &path,
            docs: ("attribute Domain of the cookie; without it, the request's host", "attribute Path of the cookie"))
        cookie.path = path ?? cookie.path
        options.read("httpOnly", into: &cookie.isHttpOnly, doc: "whether scripts cannot read the cookie")
        options.read(
            "secure", into: &cookie.isSecure,
            doc: "whether the cookie has Secure; without it, for clients that use https")
        options.read("sameSite", into: &cookie.sameSite, doc: "attribute SameSite of the cookie")
        var keys: [Secret] = []
        options.readSecrets(
            "key", into: &keys,
            doc: "secrets that seal the cookie: the first one seals, all open; without any, one of the process")
        self.cookie = cookie
        self.keys = keys
        options.require("cookie")
        guard options.isWritten else { return nil }
        if cookie.sameSite == .none, cookie.isSecure == false {
            options.fail(at: "secure", "browsers refuse sameSite: none without Secure; write secure: true, or omit it")
        }
        if !options.isGiven("key") {
            options.warn(
                "has no key, so after a restart, and at other replicas, clients may get another endpoint; write key, such as ${file:/run/secrets/sticky}"
            )
        }
    }
}
