import Authentication
import Credentials
import HttpCaching
public import HttpWare

extension OidcLogin: ConfigurableWare {
    public static let name: WareName = "oidcLogin"
    public static let chainPlace: ChainPlace? = .authentication
    public static let about = WareAbout(
        "Requires a login at an OpenID provider, such as Keycloak or Entra ID; keeps the session in a sealed cookie or in a store.",
        source: "OpenID Connect Core 1.0, RFC 7636, RFC 9207",
        example: #"""
            - oidcLogin:
                issuer: "https://login.example.com"
                clientId: app
                clientSecret: "${CLIENT_SECRET:-change me}"
                cookie: { secret: "${COOKIE_SECRET:-a random text of thirty-two bytes or more}" }
                claimsToHeaders: { sub: X-User, email: X-Email }
            """#,
        details: #"""
            A page load without a session is redirected to the provider: authorization code with PKCE (S256), state and nonce. The provider
            sends the browser back to `callback`, and the gateway redirects it to the page that it asked for. Register
            `https://HOST/oauth2/callback` there. A page load is a GET with `Sec-Fetch-Mode: navigate`, or without that field
            and with `text/html` in `Accept`. Any other request without a session is answered with 401, such as one of a script or a WebSocket.
            A browser never returns to another host.

            The provider is found by `issuer`: its metadata, keys and endpoints are read when they are first needed, so the gateway starts without it. While it is
            not available, logins are answered with 503 and `Retry-After`, and it is asked again after 1 to 30 seconds. Redirects are not followed. An
            endpoint at another host than the issuer must not have a private address. Of the ID token, signature, `iss`, `aud`, `azp`, `exp`, `nonce` and
            `at_hash` are checked. Claims come from the ID token; the userinfo endpoint is not asked.

            The session cookie is sealed with AES-256-GCM by the first secret of `cookie.secret`, and opened by each, so that secrets can be
            replaced: put the new one first. It is bound to `issuer` and `clientId`: entries with the same secret, name and client share their
            sessions. Over TLS its name begins with `__Host-`; it has `Secure`, `HttpOnly` and `SameSite=Lax`. A larger session is split into at most four cookies of 4 KiB. If
            that is not enough, write `store`: then the cookie holds only a sealed reference, and the store holds the session, sealed as well. The cookies of this ware
            never go upstream, and caches and limits do not see them: `iss` and `sub` identify the user.

            A session is valid as long as its ID token or its access token, whichever is later; with `passToken`, as long as the access token. If the provider
            gave a refresh token (many need the scope `offline_access`), it is renewed shortly before; otherwise the next page load goes to the
            provider again. One call renews a session, however many requests wait for it. For 30 seconds, requests with the cookie before it get the
            same result. With several gateways, write `lock`, or a `store` in Redis. If the provider is not available, a session is used until its tokens expire. `lifetime` ends
            every session.

            `logout` ends the session: a POST, or a request from a page of the same site. The browser is redirected to the provider's
            `end_session_endpoint`, if there is one. A copy of a cookie that was logged out is refused by this gateway until it restarts; with a
            `store`, by all gateways after at most ten seconds.

            Fields of `claimsToHeaders` are always removed from the client's request first, and with `passToken` also `Authorization`. List this ware before wares that
            change the path. Two entries that handle the same requests need a different `cookie.name`, `callback` and `logout` each. It cannot be used on forward listeners.
            """#,
        otherNames: ["oauth2Proxy", "oauth2", "openidConnect", "openid", "oidc", "login", "sso", "authOpenidConnect"])

    private static let leastSecret = 32
    private static let longestName = 64

    public init(options: inout OptionsReader) {
        var issuer: EndpointUrl?
        var clientId: String?
        var clientSecret: Secret?
        var scopes = ["openid"]
        var callback = "/oauth2/callback"
        var logout = "/oauth2/logout"
        var afterLogout: String?
        var secrets: [Secret] = []
        var name = OidcLogin.usualName
        var lifetime = Duration.seconds(12 * 3600)
        var store: NamedStore?
        var lock: NamedStore?
        var renews = true
        var claims: OptionMap<String, FieldName> = [:]
        var passesToken = false
        var unauthenticated = Unauthenticated.redirect
        var algorithms = OidcProvider.usualAlgorithms
        var clockSkew = Duration.seconds(60)
        var timeout = Duration.seconds(5)
        options.read("issuer", into: &issuer, doc: "URL of the provider, exactly as in its metadata and its tokens")
        options.require("issuer")
        options.read("clientId", into: &clientId, doc: "name of the gateway at the provider")
        options.require("clientId")
        options.readSecret(
            "clientSecret", into: &clientSecret, doc: "secret of the gateway at the provider; a public client has none")
        options.read("scopes", into: &scopes, doc: "scopes that are asked for; openid must be among them")
        options.read(
            "callback", into: &callback, doc: "path to which the provider sends browsers back; it never goes upstream")
        options.read("logout", into: &logout, doc: "path that ends the session; it never goes upstream")
        options.read(
            "afterLogout", into: &afterLogout,
            doc:
                "path or URL to which browsers go after a logout; the provider must know it; by default the provider's own page, or a short text"
        )
        options.read("cookie", doc: "the cookie of a session") {
            $0.readSecrets(
                "secret", into: &secrets, least: Self.leastSecret,
                doc: "random texts of 32 bytes or more: the first one seals cookies, each of them opens cookies")
            $0.require("secret")
            $0.refuseEmpty("secret", "write a random text, such as 32 letters and digits")
            var written: String? = name
            $0.readCookieName(
                "name", into: &written, such: "session", doc: "name of the cookie; over TLS it begins with __Host-")
            name = written ?? name
            if name.utf8.count > Self.longestName { $0.fail(at: "name", "is longer than \(Self.longestName) bytes") }
            if name.hasPrefix("__") {
                $0.fail(
                    at: "name", "\(name.quotedForErrors) has a prefix; write the name alone, it gets __Host- over TLS")
            }
        }
        options.require("cookie")
        options.read(
            "lifetime", into: &lifetime, in: .seconds(60) ... .seconds(90 * 86_400),
            doc: "maximum duration of a session, whatever its tokens say")
        options.read(
            "store", into: &store, of: "stores", doc: "store that holds the sessions; by default the cookies hold them")
        options.read("refresh", into: &renews, doc: "renews the tokens of a session by its refresh token")
        options.read(
            "lock", into: &lock, of: "stores",
            doc:
                "store in Redis by which only one of several gateways renews a session; by default that of store, if it is in Redis"
        )
        options.read(
            "claimsToHeaders", into: &claims,
            doc: "claims of the ID token to send to the origin server, each with the name of its header field")
        options.read(
            "passToken", into: &passesToken,
            doc: "sends the access token to the origin server, as Authorization: Bearer")
        options.read(
            "unauthenticated", into: &unauthenticated,
            doc: "the answer to a page without a session: a redirect to the provider, or 401 like any other request")
        options.read("algorithms", into: &algorithms, doc: "the only signature algorithms that ID tokens may have")
        options.read(
            "clockSkew", into: &clockSkew, in: .zero ... .seconds(600),
            doc: "tolerated difference between the clocks of the provider and the gateway")
        options.read(
            "timeout", into: &timeout, in: .milliseconds(100) ... .seconds(60),
            doc: "maximum duration of one call to the provider")

        if let issuer, !issuer.isSecure, !issuer.isLoopback {
            options.warn(at: "issuer", "codes, tokens and the client secret are sent in clear text; write https")
        }
        if let issuer, issuer.text.contains("?") { options.fail(at: "issuer", "has a query; an issuer has none") }
        if let clientId, clientId.isEmpty || clientId.utf8.count > 256 {
            options.fail(at: "clientId", "is empty or longer than 256 bytes")
        }
        Self.check(scopes, algorithms, &options)
        Self.check(callback, logout, afterLogout, &options)
        for entry in claims {
            let field = entry.value
            if field.isGatewayOwned || field == .host || field == .cookie || field == .authorization {
                options.fail(at: "claimsToHeaders", "\(field) is reserved; write a name such as X-User")
            }
        }
        let server = (lock ?? store)?.server as? any IdempotencyServer
        if let lock, !(lock.server is any IdempotencyServer) {
            options.fail(
                at: "lock", "\(lock.name.quotedForErrors) is not kept in Redis; name a store with redis: { url: … }")
        }
        options.only("lock", with: "refresh", renews, is: true)

        let fields = claims.map { (claim: $0.key, field: $0.value) }
        // Without an issuer the options have an error, and the ware is never used.
        let provider = OidcProvider(
            issuer: issuer ?? Self.nowhere, clientId: clientId ?? "", clientSecret: clientSecret,
            algorithms: algorithms,
            clockSkew: clockSkew, timeout: timeout)
        let cookies = OidcCookies(name, secrets: secrets, issuer: provider.issuer.text, clientId: provider.clientId)
        self.init(
            OidcSessions(
                provider, cookies, claims: fields, lifetime: lifetime, renews: renews, passesToken: passesToken,
                store: store?.records, lock: renews ? server : nil),
            claimsToHeaders: fields)
        self.scopes = scopes
        self.callback = callback
        self.logout = logout
        self.afterLogout = afterLogout
        self.unauthenticated = unauthenticated
    }

    private static func check(
        _ scopes: [String], _ algorithms: [VerifyingKey.Algorithm], _ options: inout OptionsReader
    ) {
        if !scopes.contains("openid") {
            options.fail(
                at: "scopes", "lacks openid, without which there is no ID token; write such as [openid, email]")
        }
        for scope in scopes
        where scope.isEmpty || !scope.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f && $0 != 0x22 && $0 != 0x5c }) {
            options.fail(at: "scopes", "\(scope.quotedForErrors) is not a scope; write such as [openid, email]")
        }
        options.refuseEmpty("algorithms", "write such as [RS256]")
        if let secret = algorithms.first(where: { $0.kind == .secret }) {
            options.fail(
                at: "algorithms",
                "\(secret.rawValue) is signed with the client secret, which proves too little; write such as [RS256]")
        }
    }

    private static func check(
        _ callback: String, _ logout: String, _ afterLogout: String?, _ options: inout OptionsReader
    ) {
        for (key, path) in [("callback", callback), ("logout", logout)] where !isPath(path) {
            options.fail(at: key, "is not a path of its own; write such as /oauth2/\(key)")
        }
        if callback == logout { options.fail(at: "logout", "is the path of callback; write another one") }
        guard let afterLogout else { return }
        let isPage =
            afterLogout.hasPrefix("/") ? !afterLogout.hasPrefix("//") : (try? HttpUrl(optionText: afterLogout)) != nil
        if !isPage || !afterLogout.utf8.allSatisfy({ (0x21...0x7e).contains($0) && $0 != 0x5c }) {
            options.fail(at: "afterLogout", "is neither a path nor a URL; write such as /goodbye")
        }
    }

    /// Whether this is a normalized path that a request can have, other than `/`.
    private static func isPath(_ path: String) -> Bool {
        guard path.count > 1, path.utf8.count <= 256, !path.contains("?"), !path.contains("#"),
            let request = try? HttpRequest(.get, path)
        else { return false }
        return request.path == path
    }

    // This literal is a valid URL.
    private static let nowhere = EndpointUrl("https://provider.invalid")!
}
