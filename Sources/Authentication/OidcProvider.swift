public import Credentials
public import HttpWare
import Synchronization

/// An OpenID provider, as one of its clients sees it: metadata, token endpoint and keys. Shared by all loops.
///
/// The provider is not called before it is needed, so a gateway starts while its provider is down. If it cannot be reached, does not
/// answer, or says that it is busy, no request makes another call for 1 to 30 seconds. An answer that is unusable for one login pauses
/// nothing. Metadata that were read once stay in use, even if they cannot be
/// read again.
public final class OidcProvider: Sendable {
    /// The reason why there are no tokens.
    public enum Failure: Error, Equatable, Sendable {
        /// The provider cannot be reached, its answer is unusable, or the session cannot be stored. A later try may
        /// succeed.
        case unavailable(String)
        /// The provider refused, or the login is unknown, expired or already used.
        case refused(String)
        /// The provider's answer, or the session made of it, cannot be accepted.
        case invalid(String)
    }

    /// The tokens that the provider returned for a code or a refresh token.
    public struct Tokens: Sendable {
        public let accessToken: Secret
        public let refreshToken: Secret?
        /// The lifetime of the access token, in seconds; `nil` if the provider does not state it.
        public let lifetime: Int64?
        /// The verified ID token; `nil` only after a refresh.
        public let idToken: Secret?
    }

    /// The values that an ID token must have, besides issuer, audience and times.
    struct Expectation {
        /// The nonce of the login.
        var nonce: String?
        /// Whether an ID token without a nonce is accepted, as after a refresh.
        var mayLackNonce = false
        /// The subject of the login, after a refresh; `nil` accepts any subject.
        var subject: JsonValue?
    }

    private struct State {
        var metadata: ProviderMetadata?
        var failures = 0
    }

    /// The URL by which the provider identifies itself.
    public let issuer: EndpointUrl
    /// The gateway's client identifier at the provider.
    public let clientId: String
    private let clientSecret: Secret?
    private let verifier: JwtVerifier
    private let timeout: Duration
    private let client: any HttpClient
    private let keys: KeySource
    private let state = Mutex(State())
    private let flights = SingleFlight<Int, Result<ProviderMetadata, Failure>>()
    /// The time at which the metadata are next read, in nanoseconds of the loops' clock.
    private let due = Atomic<Int64>(.min)
    /// The time until which the provider is not called, in nanoseconds of the loops' clock.
    private let pausedUntil = Atomic<Int64>(.min)
    private let underWay = Atomic(0)

    /// The time for which metadata are used before they are read again.
    private static let metadataLifetime = Duration.seconds(3600)
    private static let mostContent = ByteCount.kibibytes(256)
    private static let longestPause = 30
    /// The maximum number of concurrent calls to the token endpoint.
    private static let mostCalls = 1000

    /// The provider with this issuer, for one client. Without a secret, the gateway is a public client. An ID token
    /// must be signed with one of the `algorithms`. The two clocks may differ by at most `clockSkew`.
    public init(
        issuer: EndpointUrl, clientId: String, clientSecret: Secret?,
        algorithms: [VerifyingKey.Algorithm] = OidcProvider.usualAlgorithms, clockSkew: Duration = .seconds(60),
        timeout: Duration = .seconds(5), client: any HttpClient = SideCaller()
    ) {
        self.issuer = issuer
        self.clientId = clientId
        self.clientSecret = clientSecret
        self.timeout = timeout
        self.client = client
        var verifier = JwtVerifier()
        verifier.issuer = issuer.text
        verifier.audience = [clientId]
        // The provider's keys are public, so HS256 would prove nothing. RFC 8725 §2.1.
        verifier.algorithms = algorithms.filter { $0.kind != .secret }
        verifier.clockSkew = clockSkew
        self.verifier = verifier
        keys = KeySource(.issuer(issuer.text), timeout: timeout, for: "oidcLogin", client: client)
    }

    /// The default algorithms of ID tokens.
    public static let usualAlgorithms: [VerifyingKey.Algorithm] = [.rs256, .ps256, .es256, .edDSA]

    // MARK: Metadata

    /// The current metadata; `nil` if none have been read. Starts reading them again if that is due, without waiting
    /// for it. Must be called on a loop's thread.
    public func metadata(at now: LoopInstant) -> ProviderMetadata? {
        let found = state.withLock { $0.metadata }
        let expected = due.load(ordering: .relaxed)
        if found != nil, now.nanoseconds >= expected, !isPaused(at: now),
            // One loop reads; the others continue.
            due.compareExchange(
                expected: expected, desired: (now + timeout + timeout).nanoseconds, ordering: .relaxed
            ).exchanged
        {
            read(at: now) { _ in }
        }
        return found
    }

    /// The metadata. If none have been read, they are read now; concurrent callers wait for the same call.
    public func readMetadata(at now: LoopInstant) async throws -> ProviderMetadata {
        if let found = metadata(at: now) { return found }
        guard !isPaused(at: now) || flights.isUnderWay(0) else {
            throw Failure.unavailable("the provider failed just now")
        }
        return try await flights.value(for: 0) { finish in read(at: now, finish) }.get()
    }

    /// The metadata, once the provider's keys are available as well. A code can be redeemed only once, so its ID token
    /// must be verifiable.
    public func prepare(at now: LoopInstant) async throws -> ProviderMetadata {
        let metadata = try await readMetadata(at: now)
        guard !isPaused(at: now), try await keys.firstKeys(at: now) != nil else {
            throw Failure.unavailable("the provider's keys are not available")
        }
        return metadata
    }

    private func read(at now: LoopInstant, _ done: @escaping @Sendable (Result<ProviderMetadata, Failure>) -> Void) {
        let base = issuer.text.hasSuffix("/") ? String(issuer.text.dropLast()) : issuer.text
        let request: HttpRequest
        do {
            request = try HttpRequest(
                .get, base + "/.well-known/openid-configuration", fields: ["Accept": "application/json"])
        } catch {
            return done(.failure(.unavailable("the issuer is not a URL")))
        }
        client.start(request, limits: limits(deniesPrivate: false)) { result in
            do {
                let response = try result.get()
                guard response.status == .ok else {
                    throw CredentialFailure.badResponse(
                        "the status of the provider's metadata is \(response.status.code)")
                }
                let metadata = try ProviderMetadata(response.content.bytes ?? [], of: self.issuer)
                self.state.withLock { state in
                    state.metadata = metadata
                    state.failures = 0
                }
                self.due.store((now + OidcProvider.metadataLifetime).nanoseconds, ordering: .relaxed)
                done(.success(metadata))
            } catch {
                let reason = (error as? CredentialFailure)?.reason ?? (error as? GatewayError)?.reason ?? "no answer"
                done(.failure(self.failed(reason, "no metadata", at: now)))
            }
        }
    }

    private func limits(deniesPrivate: Bool) -> CallLimits {
        // Redirects are not followed: they could carry secrets to a place that is not configured.
        CallLimits(timeout: timeout, content: OidcProvider.mostContent, redirects: 0, deniesPrivate: deniesPrivate)
    }

    // MARK: Failures

    /// Whether the provider failed a short time ago and must not be called yet.
    public func isPaused(at now: LoopInstant) -> Bool { now.nanoseconds < pausedUntil.load(ordering: .relaxed) }

    /// Starts a pause in which the provider is not called. Each failure in a row doubles it, up to 30 seconds.
    private func failed(_ reason: String, _ what: String, at now: LoopInstant) -> Failure {
        let failures = state.withLock { state in
            state.failures += 1
            return state.failures
        }
        let pause = min(OidcProvider.longestPause, 1 << min(failures - 1, 8))
        pausedUntil.store(((EventLoop.current?.now ?? now) + .seconds(pause)).nanoseconds, ordering: .relaxed)
        WareLog.shared.log(.warning, "oidcLogin: \(what) from \(Redaction.target(issuer.text)): \(reason)")
        return .unavailable(reason)
    }

    // MARK: URLs for the browser

    /// The URL at which a browser begins a login. OpenID Connect Core 1.0 §3.1.2.1, RFC 7636 §4.3.
    public static func loginUrl(
        _ metadata: ProviderMetadata, clientId: String, redirectUri: String, scopes: [String], state: String,
        nonce: String, challenge: String
    ) -> String {
        url(
            metadata.authorizationEndpoint,
            [
                ("response_type", "code"), ("client_id", clientId), ("redirect_uri", redirectUri),
                ("scope", scopes.joined(separator: " ")), ("state", state), ("nonce", nonce),
                ("code_challenge", challenge), ("code_challenge_method", "S256"),
            ])
    }

    /// The URL at which a browser ends its login at the provider; `nil` if the provider has none. OpenID Connect
    /// RP-Initiated Logout 1.0 §2.
    public static func logoutUrl(
        _ metadata: ProviderMetadata, clientId: String, idToken: Secret?, returnTo: String?
    ) -> String? {
        guard let endpoint = metadata.endSessionEndpoint else { return nil }
        var form = [("client_id", clientId)]
        // A longer token makes a URL that servers refuse.
        if let idToken, idToken.revealed.utf8.count <= 4096 { form.append(("id_token_hint", idToken.revealed)) }
        if let returnTo { form.append(("post_logout_redirect_uri", returnTo)) }
        return url(endpoint, form)
    }

    private static func url(_ endpoint: EndpointUrl, _ form: [(String, String)]) -> String {
        endpoint.text + (endpoint.text.contains("?") ? "&" : "?") + TokenRequest.text(of: form)
    }

    /// Whether the answer that the browser carries is from this provider (RFC 9207 §2.4). `named` is its parameter
    /// `iss`.
    public func isOwnAnswer(_ named: String?, _ metadata: ProviderMetadata) -> Bool {
        named == nil ? !metadata.namesIssuer : named == issuer.text
    }

    // MARK: Tokens

    /// Exchanges a code for tokens, once. `verifier` is the secret whose digest was sent when the login began. Throws a
    /// `Failure`, or `CancellationError`. Must be called on a loop.
    public func redeem(
        _ code: String, verifier: String, redirectUri: String, nonce: String, _ metadata: ProviderMetadata
    ) async throws -> Tokens {
        let response = try await ask(
            [
                ("grant_type", "authorization_code"), ("code", code), ("redirect_uri", redirectUri),
                ("code_verifier", verifier),
            ], metadata)
        guard let idToken = response.idToken else {
            throw Failure.invalid("there is no ID token; is openid among the scopes?")
        }
        try await verify(idToken, response.accessToken, Expectation(nonce: nonce))
        return tokens(response)
    }

    /// Exchanges a refresh token for new tokens. A new ID token must belong to the same login: OpenID Connect Core 1.0
    /// §12.2. Throws a `Failure`, or `CancellationError`. Must be called on a loop.
    public func refresh(_ refreshToken: Secret, of idToken: Secret, _ metadata: ProviderMetadata) async throws -> Tokens
    {
        let response = try await ask(
            [("grant_type", "refresh_token"), ("refresh_token", refreshToken.revealed)], metadata)
        if let renewed = response.idToken {
            let former = IdTokenClaims(idToken)
            try await verify(
                renewed, response.accessToken,
                Expectation(nonce: former?["nonce"]?.string, mayLackNonce: true, subject: former?["sub"]))
        }
        return tokens(response)
    }

    private func tokens(_ response: TokenResponse) -> Tokens {
        Tokens(
            accessToken: response.accessToken, refreshToken: response.refreshToken, lifetime: response.lifetime,
            idToken: response.idToken)
    }

    private func ask(_ form: [(String, String)], _ metadata: ProviderMetadata) async throws -> TokenResponse {
        guard let loop = EventLoop.current, !isPaused(at: loop.now) else {
            throw Failure.unavailable("the provider failed just now")
        }
        defer { underWay.subtract(1, ordering: .relaxed) }
        guard underWay.add(1, ordering: .relaxed).newValue <= OidcProvider.mostCalls else {
            throw Failure.unavailable("\(OidcProvider.mostCalls) calls to the provider are under way")
        }
        do {
            let request = try TokenRequest.make(
                form, clientId, clientSecret, isBasic: clientSecret != nil && !metadata.takesSecretInForm,
                to: metadata.tokenEndpoint.text)
            // The token endpoint comes from the provider's document. At another authority than the issuer, it must not
            // have a private address.
            let isElsewhere = request.authority != (try? HttpRequest(.get, issuer.text))?.authority
            let answer = try await client.send(request, limits: limits(deniesPrivate: isElsewhere))
            guard !answer.status.saysBusy else {
                throw failed(
                    "the token endpoint answered with status \(answer.status.code)", "no tokens", at: loop.now)
            }
            state.withLock { $0.failures = 0 }
            return try TokenResponse(answer)
        } catch let error as Failure {
            throw error
        } catch let error as CredentialFailure where error.kind == .refused {
            WareLog.shared.log(.warning, "oidcLogin: \(Redaction.target(issuer.text)): \(error.reason)")
            throw Failure.refused(error.reason)
        } catch let error as CancellationError {
            throw error
        } catch let error as GatewayError where error.fault.isSilence {
            throw failed(error.reason, "no tokens", at: loop.now)
        } catch {
            // The provider answered: what is wrong with this answer says nothing about other logins.
            let reason = (error as? CredentialFailure)?.reason ?? (error as? GatewayError)?.reason ?? "no answer"
            WareLog.shared.log(.warning, "oidcLogin: no tokens from \(Redaction.target(issuer.text)): \(reason)")
            throw Failure.unavailable(reason)
        }
    }

    // MARK: ID tokens

    /// Checks an ID token by OpenID Connect Core 1.0 §3.1.3.7. Throws a `Failure`, or `CancellationError`.
    func verify(_ idToken: Secret, _ accessToken: Secret, _ expected: Expectation) async throws {
        guard let loop = EventLoop.current, let first = try await keys.firstKeys(at: loop.now) else {
            throw Failure.unavailable("the provider's keys are not available")
        }
        let token = Array(idToken.revealed.utf8)
        // Starts a fetch of the keys if it is due. Until it ends, the earlier keys are used.
        let present = keys.keys(at: loop.now) ?? first
        do throws(JwtFault) {
            return try check(verifier.verify(token, keys: present, at: loop.wallNow()), accessToken, expected)
        } catch .unknownKey {
            guard let anew = try await keys.keysAnew(at: loop.now) else { throw refusal(.unknownKey) }
            do throws(JwtFault) {
                try check(verifier.verify(token, keys: anew, at: loop.wallNow()), accessToken, expected)
            } catch {
                throw refusal(error)
            }
        } catch {
            throw refusal(error)
        }
    }

    private func refusal(_ fault: JwtFault) -> Failure {
        let reason = "the ID token is not accepted: \(fault.text)"
        WareLog.shared.log(.warning, "oidcLogin: \(Redaction.target(issuer.text)): \(reason)")
        return .invalid(reason)
    }

    private func check(
        _ token: JwtVerifier.Accepted, _ accessToken: Secret, _ expected: Expectation
    ) throws(JwtFault) {
        guard let subject = token["sub"]?.string, (1...255).contains(subject.utf8.count) else {
            throw .invalid("the token has no sub")
        }
        guard token["iat"] != nil else { throw .invalid("the token has no iat") }
        if let former = expected.subject, former != token["sub"] { throw .invalid("the token has another sub") }
        // OpenID Connect Core 1.0 §3.1.3.7, 4 and 5.
        if let party = token["azp"] {
            guard party == .string(clientId) else { throw .invalid("the token's azp is another client") }
        } else if case .array(let named)? = token["aud"], named.count > 1 {
            throw .invalid("the token is for several audiences and has no azp")
        }
        // OpenID Connect Core 1.0 §3.1.3.7, 11.
        if let nonce = expected.nonce {
            switch token["nonce"]?.string {
            case nil where expected.mayLackNonce && token["nonce"] == nil: break
            case let shown? where ConstantTime.equal(Array(shown.utf8), Array(nonce.utf8)): break
            default: throw .invalid("the token has another nonce")
            }
        }
        // OpenID Connect Core 1.0 §3.1.3.6.
        if let hash = token["at_hash"] {
            guard let text = hash.string, text == OidcProvider.hash(of: accessToken, by: token.algorithm) else {
                throw .invalid("the token's at_hash is not that of the access token")
            }
        }
    }

    /// The left half of the digest of an access token, in base64url. The signature algorithm decides the hash function.
    /// OpenID Connect Core 1.0 §3.1.3.6.
    static func hash(of token: Secret, by algorithm: VerifyingKey.Algorithm) -> String {
        let digest = Array(token.revealed.utf8).withUnsafeBytes { bytes -> [UInt8] in
            switch algorithm.digestSize {
            case 48: Digest256.sha384(of: bytes)
            case 64: Digest256.sha512(of: bytes)
            default: Digest256(of: bytes).bytes
            }
        }
        return Base64.encodeUrl(Array(digest.prefix(digest.count / 2)))
    }
}

/// The claims of an ID token that was verified before. Nothing is verified here.
public struct IdTokenClaims: Sendable {
    public let members: [JsonValue.Member]

    /// Reads the claims; `nil` if the text is not a token.
    public init?(_ token: Secret) {
        let parts = token.revealed.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let text = Base64.decodeUrl(parts[1]), let members = (try? JsonValue(text))?.members
        else { return nil }
        self.members = members
    }

    /// The value of a claim.
    public subscript(name: String) -> JsonValue? { members.first { $0.name == name }?.value }
}
