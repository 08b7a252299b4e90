public import HttpWare
import Synchronization

/// An OpenID provider from the viewpoint of one of its clients: metadata, token endpoint and keys. Shared by all loops.
///
/// Nothing is requested before it is needed, so a gateway starts while its provider is down. After a failure, no request is sent
/// to the provider for 1 to 30 seconds. Metadata that were read once stay in use during that time.
public final class OidcProvider: Sendable {
    /// Why there are no tokens.
    public enum Failure: Error, Equatable, Sendable {
        /// The provider cannot be reached, or its answer is faulty. A later attempt may succeed.
        case unavailable(String)
        /// The provider refused.
        case refused(String)
        /// The provider's answer is invalid and must not be accepted.
        case invalid(String)
    }

    /// The tokens that were received for a code or a refresh token.
    public struct Tokens: Sendable {
        public let accessToken: Secret
        public let refreshToken: Secret?
        /// The lifetime of the access token in seconds; `nil` if the provider does not state it.
        public let lifetime: Int64?
        /// The verified ID token; `nil` only after a refresh.
        public let idToken: Secret?
    }

    /// The required content of an ID token, besides issuer, audience and times.
    struct Expectation {
        /// The nonce of the login.
        var nonce: String?
        /// Whether an ID token without a nonce is accepted, as after a refresh.
        var mayLackNonce = false
        /// The subject of the login. Set after a refresh.
        var subject: JsonValue?
    }

    private struct State {
        var metadata: ProviderMetadata?
        var failures = 0
    }

    /// The provider's own name.
    public let issuer: EndpointUrl
    /// The gateway's name at the provider.
    public let clientId: String
    private let clientSecret: Secret?
    private let verifier: JwtVerifier
    private let timeout: Duration
    private let client: any HttpClient
    private let keys: KeySource
    private let state = Mutex(State())
    private let flights = SingleFlight<Int, Result<ProviderMetadata, Failure>>()
    /// When the metadata must be read again, in nanoseconds of the loops' clock.
    private let due = Atomic<Int64>(.min)
    /// The time before which no request is sent to the provider.
    private let pausedUntil = Atomic<Int64>(.min)
    private let underWay = Atomic(0)

    /// How long metadata are used before they are read again.
    private static let metadataLifetime = Duration.seconds(3600)
    private static let mostContent = ByteCount.kibibytes(256)
    private static let longestPause = 30
    /// The most concurrent calls to the token endpoint.
    private static let mostCalls = 1000

    /// The provider with that issuer, for one client. A client without a secret is a public client. ID tokens must be signed with
    /// one of `algorithms`. `clockSkew` is the tolerated difference between the clocks.
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
        // Symmetric keys are not fetched from a provider: RFC 8725 §2.1.
        verifier.algorithms = algorithms.filter { $0 != .hs256 }
        verifier.clockSkew = clockSkew
        self.verifier = verifier
        keys = KeySource(.issuer(issuer.text), timeout: timeout, client: client)
    }

    /// The default algorithms of ID tokens.
    public static let usualAlgorithms: [VerifyingKey.Algorithm] = [.rs256, .ps256, .es256, .edDSA]

    // MARK: Metadata

    /// The current metadata; `nil` if none were read yet. If they are due, it starts to read them again, without waiting. Must be
    /// called on a loop's thread.
    public func metadata(at now: LoopInstant) -> ProviderMetadata? {
        let found = state.withLock { $0.metadata }
        let expected = due.load(ordering: .relaxed)
        if found != nil, now.nanoseconds >= expected, !isPaused(at: now),
            // One loop reads them; the others continue.
            due.compareExchange(
                expected: expected, desired: (now + timeout + timeout).nanoseconds, ordering: .relaxed
            ).exchanged
        {
            read(at: now) { _ in }
        }
        return found
    }

    /// The metadata, which are read if necessary. Concurrent callers wait for the same call.
    public func readMetadata(at now: LoopInstant) async throws -> ProviderMetadata {
        if let found = metadata(at: now) { return found }
        guard !isPaused(at: now) || flights.isUnderWay(0) else {
            throw Failure.unavailable("the provider failed just now")
        }
        return try await flights.value(for: 0) { finish in read(at: now, finish) }.get()
    }

    /// The metadata, once the provider's keys are available too. A code can be redeemed only once, so it must not be redeemed
    /// before its ID token can be verified.
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
        // Redirects are not followed: they would carry secrets to a place that the configuration does not name.
        CallLimits(timeout: timeout, content: OidcProvider.mostContent, redirects: 0, deniesPrivate: deniesPrivate)
    }

    // MARK: Failures

    /// Whether the provider failed recently, so that no request is sent to it.
    public func isPaused(at now: LoopInstant) -> Bool { now.nanoseconds < pausedUntil.load(ordering: .relaxed) }

    /// Pauses requests to the provider. The pause grows with the number of failures.
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

    /// The URL to which a browser is redirected for a login. OpenID Connect Core 1.0 §3.1.2.1, RFC 7636 §4.3.
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

    /// The URL to which a browser is redirected to end the login; `nil` if the provider has none. OpenID Connect RP-Initiated
    /// Logout 1.0 §2.
    public static func logoutUrl(
        _ metadata: ProviderMetadata, clientId: String, idToken: Secret?, returnTo: String?
    ) -> String? {
        guard let endpoint = metadata.endSessionEndpoint else { return nil }
        var form = [("client_id", clientId)]
        // A longer token would make a URL that servers refuse.
        if let idToken, idToken.revealed.utf8.count <= 4096 { form.append(("id_token_hint", idToken.revealed)) }
        if let returnTo { form.append(("post_logout_redirect_uri", returnTo)) }
        return url(endpoint, form)
    }

    private static func url(_ endpoint: EndpointUrl, _ form: [(String, String)]) -> String {
        endpoint.text + (endpoint.text.contains("?") ? "&" : "?") + TokenRequest.text(of: form)
    }

    /// Whether the answer that the browser brings is from this provider: RFC 9207 §2.4. `named` is its parameter `iss`.
    public func isOwnAnswer(_ named: String?, _ metadata: ProviderMetadata) -> Bool {
        named == nil ? !metadata.namesIssuer : named == issuer.text
    }

    // MARK: Tokens

    /// Exchanges a code for tokens, once. `verifier` is the secret whose digest was sent at the beginning of the login. Throws a
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

    /// Exchanges a refresh token for new tokens. A new ID token must belong to the same login: OpenID Connect Core 1.0 §12.2.
    /// Throws a `Failure`, or `CancellationError`. Must be called on a loop.
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
            // The metadata document may name another host than the configuration; private addresses are then denied.
            let isElsewhere = request.authority != (try? HttpRequest(.get, issuer.text))?.authority
            let response = try TokenResponse(
                await client.send(request, limits: limits(deniesPrivate: isElsewhere)))
            state.withLock { $0.failures = 0 }
            return response
        } catch let error as CredentialFailure where error.kind == .refused {
            WareLog.shared.log(.warning, "oidcLogin: \(Redaction.target(issuer.text)): \(error.reason)")
            throw Failure.refused(error.reason)
        } catch let error as CancellationError {
            throw error
        } catch {
            let reason = (error as? CredentialFailure)?.reason ?? (error as? GatewayError)?.reason ?? "no answer"
            throw failed(reason, "no tokens", at: loop.now)
        }
    }

    // MARK: ID tokens

    /// Checks an ID token by OpenID Connect Core 1.0 §3.1.3.7. Throws a `Failure`, or `CancellationError`.
    func verify(_ idToken: Secret, _ accessToken: Secret, _ expected: Expectation) async throws {
        guard let loop = EventLoop.current, let first = try await keys.firstKeys(at: loop.now) else {
            throw Failure.unavailable("the provider's keys are not available")
        }
        let token = Array(idToken.revealed.utf8)
        // This starts to fetch the keys again if they are due; meanwhile the earlier keys are used.
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
        // §3.1.3.7, 4 and 5.
        if let party = token["azp"] {
            guard party == .string(clientId) else { throw .invalid("the token's azp is another client") }
        } else if case .array(let named)? = token["aud"], named.count > 1 {
            throw .invalid("the token is for several audiences and has no azp")
        }
        // §3.1.3.7, 11.
        if let nonce = expected.nonce {
            switch token["nonce"]?.string {
            case nil where expected.mayLackNonce && token["nonce"] == nil: break
            case let shown? where ConstantTime.equal(Array(shown.utf8), Array(nonce.utf8)): break
            default: throw .invalid("the token has another nonce")
            }
        }
        // §3.1.3.6.
        if let hash = token["at_hash"] {
            guard let text = hash.string, text == OidcProvider.hash(of: accessToken, by: token.algorithm) else {
                throw .invalid("the token's at_hash is not that of the access token")
            }
        }
    }

    /// The left half of an access token's digest, by the hash function of the algorithm. OpenID Connect Core 1.0 §3.1.3.6.
    static func hash(of token: Secret, by algorithm: VerifyingKey.Algorithm) -> String {
        let digest = Array(token.revealed.utf8).withUnsafeBytes { bytes -> [UInt8] in
            switch algorithm {
            case .rs256, .ps256, .es256, .hs256: Digest256(of: bytes).bytes
            case .es384: Digest256.sha384(of: bytes)
            // Ed25519 uses SHA-512: RFC 8032 §5.1.
            case .ps512, .edDSA: Digest256.sha512(of: bytes)
            }
        }
        return Base64.encodeUrl(Array(digest.prefix(digest.count / 2)))
    }
}

/// The claims of an ID token that was verified before. They are not checked here.
public struct IdTokenClaims: Sendable {
    public let members: [JsonValue.Member]

    /// `nil` if the text is not a token.
    public init?(_ token: Secret) {
        let parts = token.revealed.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let text = Base64.decodeUrl(parts[1]), let members = (try? JsonValue(text))?.members
        else { return nil }
        self.members = members
    }

    /// The value of a claim.
    public subscript(name: String) -> JsonValue? { members.first { $0.name == name }?.value }
}
