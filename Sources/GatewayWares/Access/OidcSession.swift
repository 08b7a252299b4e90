import Authentication
import HttpWare

/// The result of a login, kept sealed in the client's cookies or in a store.
struct OidcSession: Sendable, Equatable {
    /// A random id. It identifies the session and does not change when its tokens are renewed.
    var id: String
    /// The time of the login, in seconds since 1970.
    var began: Int64
    /// The times from which the tokens are renewed and at which they expire, in seconds since 1970.
    var due: Int64
    var expires: Int64
    var idToken: Secret
    /// The access token; `nil` unless it is sent to the origin server.
    var accessToken: Secret?
    var refreshToken: Secret?

    /// The approximate size in memory, in bytes.
    var size: Int {
        512 + idToken.revealed.utf8.count + (accessToken?.revealed.utf8.count ?? 0)
            + (refreshToken?.revealed.utf8.count ?? 0)
    }

    /// The key of the session's renewal: the same in every gateway, and a different one after the renewal.
    var renewalKey: Digest256 {
        Digest256(of: ["oidcLogin renewal", id, refreshToken?.revealed ?? "", String(expires)])
    }

    var json: [UInt8] {
        Json.object(given: [
            ("id", .text(id)), ("began", .digits(String(began))), ("due", .digits(String(due))),
            ("expires", .digits(String(expires))), ("idToken", .text(idToken.revealed)),
            ("accessToken", accessToken.map { .text($0.revealed) }),
            ("refreshToken", refreshToken.map { .text($0.revealed) }),
        ]).bytes
    }

    /// Reads a session from its JSON; `nil` if the bytes are not a session.
    init?(json bytes: [UInt8]) {
        guard let json = try? JsonValue(bytes), let id = json["id"]?.string, let began = json.seconds("began"),
            let due = json.seconds("due"), let expires = json.seconds("expires"), let idToken = json["idToken"]?.string
        else { return nil }
        self.init(
            id: id, began: began, due: due, expires: expires, idToken: Secret(idToken),
            accessToken: json["accessToken"]?.string.map { Secret($0) },
            refreshToken: json["refreshToken"]?.string.map { Secret($0) })
    }

    init(
        id: String, began: Int64, due: Int64, expires: Int64, idToken: Secret, accessToken: Secret? = nil,
        refreshToken: Secret? = nil
    ) {
        self.id = id
        self.began = began
        self.due = due
        self.expires = expires
        self.idToken = idToken
        self.accessToken = accessToken
        self.refreshToken = refreshToken
    }

    /// The session with these tokens, which were received at `now`, in seconds since 1970. `former` is the session that
    /// they renew.
    ///
    /// The tokens are valid until both the ID token and the access token have expired. If the access token is sent to
    /// the origin server, they are valid until it expires, or until the ID token expires if its lifetime is unknown.
    /// They are renewed when a tenth of this time is left, but at most one minute before the end.
    init(_ tokens: OidcProvider.Tokens, renewing former: OidcSession? = nil, keepsAccessToken: Bool, at now: Int64) {
        // The difference of two times of the provider's clock, which may differ from the gateway's clock.
        let stated = tokens.idToken.flatMap { token -> Double? in
            guard let claims = IdTokenClaims(token), let end = claims["exp"]?.double, let start = claims["iat"]?.double
            else { return nil }
            return end - start
        }
        let expiry = stated.map { now + Int64(max(1, min($0, 1e9))) }
        let access = tokens.lifetime.map { now + $0 }
        let known = keepsAccessToken ? access ?? expiry : [access, expiry].compactMap(\.self).max()
        let expires = known ?? now + OidcSession.usualLifetime
        self.init(
            id: former?.id ?? OidcSession.random(16), began: former?.began ?? now,
            due: expires - min(60, max(0, expires - now) / 10), expires: expires,
            idToken: tokens.idToken ?? former?.idToken ?? Secret(""),
            accessToken: keepsAccessToken ? tokens.accessToken : nil,
            refreshToken: tokens.refreshToken ?? former?.refreshToken)
    }

    /// The assumed lifetime of tokens, in seconds, if the provider does not state one.
    private static let usualLifetime: Int64 = 300

    /// Unpredictable bytes, in base64url. `count` is the number of bytes.
    static func random(_ count: Int) -> String {
        var random = SystemRandomNumberGenerator()
        return Base64.encodeUrl((0..<count).map { _ in random.next() })
    }
}

/// A login that a browser has begun. It is sealed in a cookie of that browser until the browser comes back.
struct OidcPendingLogin: Sendable, Equatable {
    /// The value that the provider sends back with the browser.
    var state: String
    /// The nonce that the ID token must contain.
    var nonce: String
    /// The secret whose digest was sent to the provider. RFC 7636 §4.1.
    var verifier: String
    /// The page that the browser requested: a path of this host.
    var target: String
    /// The time at which the login expires, in seconds since 1970.
    var until: Int64

    /// The maximum duration of a login, in seconds.
    static let lifetime: Int64 = 600

    /// `isAgain` marks the login of a browser that came back from the provider without the cookie of an earlier login.
    init(to target: String, at now: Int64, isAgain: Bool = false) {
        state = OidcSession.random(32) + (isAgain ? Self.mark : "")
        nonce = OidcSession.random(32)
        verifier = OidcSession.random(32)
        self.target = target
        until = now + OidcPendingLogin.lifetime
    }

    private static let mark = "."
    /// The maximum length of a state, in bytes: 32 random bytes in base64url, and the mark.
    static let longestState = 44

    /// Whether the state is that of a login that began again.
    static func isAgain(_ state: String) -> Bool { state.hasSuffix(mark) }

    /// The end of the name of its cookie.
    var suffix: String { OidcPendingLogin.suffix(of: state) }
    static func suffix(of state: String) -> String { String(state.prefix(8)) }

    /// The digest of the verifier. RFC 7636 §4.2.
    var challenge: String { Base64.encodeUrl(Array(verifier.utf8).withUnsafeBytes { Digest256(of: $0) }.bytes) }

    var json: [UInt8] {
        Json.object([
            ("state", .text(state)), ("nonce", .text(nonce)), ("verifier", .text(verifier)), ("target", .text(target)),
            ("until", .digits(String(until))),
        ]).bytes
    }

    /// Reads a login from its JSON; `nil` if the bytes are not a login.
    init?(json bytes: [UInt8]) {
        guard let json = try? JsonValue(bytes), let state = json["state"]?.string, let nonce = json["nonce"]?.string,
            let verifier = json["verifier"]?.string, let target = json["target"]?.string,
            let until = json.seconds("until")
        else { return nil }
        self.state = state
        self.nonce = nonce
        self.verifier = verifier
        self.target = target
        self.until = until
    }

    /// The page to which a browser returns, always as a path of this host; `/` if the target is too long or has other
    /// characters. Browsers treat a backslash like a slash, and two slashes as the beginning of a host.
    static func returnTarget(_ target: String) -> String {
        let path = "/" + target.drop { $0 == "/" || $0 == "\\" }
        let isPlain = path.utf8.count <= longestTarget && path.utf8.allSatisfy { (0x21...0x7e).contains($0) }
        return isPlain ? path : "/"
    }

    /// The maximum length in bytes, so that the target fits into the cookie.
    private static let longestTarget = 2000
}

extension JsonValue {
    /// The value of a member that is a whole number of seconds; `nil` for any other value.
    fileprivate func seconds(_ name: String) -> Int64? {
        guard case .number(let text)? = self[name] else { return nil }
        return Int64(text).flatMap { (0..<1 << 50).contains($0) ? $0 : nil }
    }
}
