public import Authentication
import Credentials
public import HttpWare

/// Requires an access token that the authorization server reports as active; answers 401 otherwise. RFC 7662, RFC 6750.
public struct Introspect: Middleware {
    /// How long an active token is remembered, at most until it expires.
    public var cacheTtl = Duration.seconds(30)
    /// How long a token that is not active is remembered.
    public var negativeTtl = Duration.seconds(5)
    /// The members of the server's answer that identify a user. If one of them is missing, the token itself identifies the user.
    public var identity = TokenIdentity.usual
    /// `nil` only if the options are wrong; then every request is refused.
    private let introspector: Introspector?
    private let memory = RecentlyVerified<Known>(most: 32_768, mostBytes: .mebibytes(32))

    public var holdsState: Bool { true }

    public init(_ introspector: Introspector) { self.introspector = introspector }

    /// The server's answer about a token.
    private enum Known: Sendable {
        case active(Principal)
        case inactive
    }

    private enum Shown {
        case known(Known)
        case unknown([UInt8], Digest256)
        case malformed
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        let now = exchange.wallNow
        let found = BearerToken.withValue(request, in: exchange, from: [.bearer]) { token, _ -> Shown in
            guard token.count <= BearerToken.longest, Self.isToken(token) else { return .malformed }
            let key = Digest256(of: token)
            if let known = memory.value(key, at: Self.milliseconds(now)) { return .known(known) }
            return .unknown(Array(token), key)
        }
        switch found {
        case .one(.known(let known)): return decide(&request, known, exchange)
        case .one(.unknown(let token, let key)):
            return .wait { request, exchange in try await ask(&request, token, key, exchange) }
        case .one(.malformed): return BearerToken.invalid(exchange, "the token is malformed or too long")
        case .absent: return BearerToken.missing(exchange)
        case .several: return BearerToken.repeated(exchange)
        }
    }

    private func decide(_ request: inout HttpRequest, _ known: Known, _ exchange: Exchange) -> Verdict {
        switch known {
        case .active(let principal):
            exchange.authenticated(as: principal)
            if !exchange.isForward { request.fields.removeAccepted(.authorization) }
            return .pass
        case .inactive: return BearerToken.invalid(exchange, "the token is not active")
        }
    }

    private func ask(
        _ request: inout HttpRequest, _ token: [UInt8], _ key: Digest256, _ exchange: Exchange
    ) async throws -> Verdict {
        let unavailable = AuthenticationChallenge.tryLater("tokens cannot be checked at the moment", after: 5)
        guard let introspector else { return unavailable }
        let answer = try await introspector.ask(token, key)
        let now = exchange.wallNow
        switch answer {
        case .unknown: return unavailable
        case .inactive:
            remember(.inactive, key, until: now + negativeTtl, token)
            return decide(&request, .inactive, exchange)
        case .active(let members, let expiry):
            // The server must not report an expired token as active (§2.2). If it does, the token is still refused.
            if let expiry, now.seconds >= expiry { return decide(&request, .inactive, exchange) }
            let claims = members.compactMap { member in member.value.fieldText.map { (member.name, $0) } }
            let subject = members.first { $0.name == "sub" } ?? members.first { $0.name == "username" }
            let principal = Principal(
                method: "introspect", name: TokenIdentity.name(subject?.value, else: key), claims: claims,
                identity: TokenIdentity.digest(of: members, by: identity, else: key, method: "introspect"))
            var until = now + cacheTtl
            if let expiry { until = min(until, WallTime(seconds: expiry)) }
            remember(.active(principal), key, until: until, token)
            return decide(&request, .active(principal), exchange)
        }
    }

    private func remember(_ known: Known, _ key: Digest256, until: WallTime, _ token: [UInt8]) {
        memory.remember(known, for: key, until: Self.milliseconds(until), bytes: 512 + 2 * token.count)
    }

    private static func milliseconds(_ time: WallTime) -> Int64 {
        time.seconds &* 1000 &+ Int64(time.nanoseconds / 1_000_000)
    }

    /// Whether the text has the form `b64token`, RFC 6750 §2.1. Nothing else is sent to the server.
    private static func isToken(_ token: UnsafeRawBufferPointer) -> Bool {
        !token.isEmpty
            && token.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f, 0x7e, 0x2b, 0x2f, 0x3d: true
                default: false
                }
            }
    }
}

extension Introspect: AuthenticatingWare {
    public var givesClaims: Bool { true }
}

extension Introspect: AccessGuard {
    public var admitsOnlyKnown: Bool { true }
}

extension Introspect: ConfigurableWare {
    public static let name: WareName = "introspect"
    public static let chainPlace: ChainPlace? = .authentication
    public static let about = WareAbout(
        "Requires an access token that the authorization server reports as active; answers 401 otherwise.",
        source: "RFC 7662, RFC 6750",
        example: #"""
            - introspect: { url: "https://login.example.com/introspect", clientId: gateway, clientSecret: "${SECRET:-change me}" }
            """#,
        details: #"""
            The token is read from `Authorization` and removed from the request. The server's answer is remembered: for
            `cacheTtl` if the token is active, though not beyond its `exp`, and for `negativeTtl` if it is not. `0s`
            asks for each request. With `coalesce`, concurrent requests with the same token share one call. If the
            server does not answer, or not as the RFC requires, the client gets 503 with `Retry-After`. At most 1,000
            calls run at the same time. The members of the server's answer are available as `{jwt.CLAIM}`.

            Two tokens belong to the same user if the server reports the same values for all members listed in
            `identity`. If one of them is missing, each token counts as a user of its own.

            On a forward listener the token is in `Proxy-Authorization`, and the refusal is 407.
            """#,
        otherNames: [
            "auth", "authentication", "oauth2", "tokenIntrospection",
        ])

    public init(options: inout OptionsReader) {
        var url: HttpUrl?
        var clientId: String?
        var clientSecret: Secret?
        var timeout = Introspector.usualTimeout
        var coalesce = true
        options.read("url", into: &url, doc: "URL of the authorization server's introspection endpoint")
        options.require("url")
        options.read(
            "clientId", into: &clientId,
            doc: "user name with which the gateway authenticates to the introspection endpoint (Basic authentication)")
        options.readSecret(
            "clientSecret", into: &clientSecret,
            doc: "password with which the gateway authenticates to the introspection endpoint")
        options.read(
            "cacheTtl", into: &cacheTtl, in: .zero ... .seconds(3600),
            doc: "how long an active token is accepted without asking the server again")
        options.read(
            "negativeTtl", into: &negativeTtl, in: .zero ... .seconds(3600),
            doc: "how long a token that is not active is refused without asking the server again"
        )
        options.read(
            "timeout", into: &timeout, in: .milliseconds(10) ... .seconds(60),
            doc: "maximum duration of one call to the introspection endpoint")
        options.read("identity", into: &identity, doc: TokenIdentity.doc)
        options.read("coalesce", into: &coalesce, doc: "lets concurrent requests with the same token share one call")
        if clientSecret != nil, clientId == nil { options.fail(at: "clientSecret", "needs clientId") }
        if let url, !url.isSafe { options.warn(at: "url", "tokens are sent in clear text; write https") }
        introspector = url.flatMap {
            try? Introspector(
                url: $0.text, clientId: clientId, clientSecret: clientSecret, timeout: timeout, coalesce: coalesce)
        }
    }
}
