public import Authentication
import Credentials
public import HttpWare

/// Requires a JSON Web Token signed with a known key; answers 401 otherwise. RFC 7519, RFC 8725, RFC 6750.
///
/// An accepted token is remembered until it expires, under the digest of the whole token; then it costs no task, no
/// allocation and no signature. The key decides which algorithm is allowed, never the token alone.
public struct Jwt: Middleware {
    /// Checks tokens: their issuer, audience, algorithms, times and required claims.
    public var verifier: JwtVerifier
    /// The places of a request that are searched for a token.
    public var places: [CredentialPlace] = [.bearer]
    /// Whether the token goes upstream.
    public var forward = false
    /// The claims that identify a user. If a token lacks one of them, the token itself identifies the user.
    public var identity = TokenIdentity.usual
    /// The request fields that are set from claims. Fields of these names from the client are always deleted.
    public var claimsToHeaders: [(claim: String, field: FieldName)] = []
    /// The accepted issuers. Several are told apart by the token's `iss` claim.
    private let issuers: [Issuer]
    private let memory = RecentlyVerified<Admission>(most: 32_768, mostBytes: .mebibytes(32))

    public var holdsState: Bool { true }

    /// An issuer of tokens, the audience that its tokens must name, and the source of its keys.
    public struct Issuer: Sendable {
        /// The value of `iss`; `nil` accepts every issuer whose key is known.
        public let name: String?
        /// The accepted audiences, one of which must be in `aud`; empty accepts any audience.
        public let audience: [String]
        public let keys: KeySource

        public init(_ name: String?, audience: [String] = [], keys: KeySource) {
            self.name = name
            self.audience = audience
            self.keys = keys
        }
    }

    /// Accepts tokens by the rules of the verifier, with these keys.
    public init(_ verifier: JwtVerifier, keys: KeySource) {
        self.verifier = verifier
        issuers = [Issuer(verifier.issuer, audience: verifier.audience, keys: keys)]
    }

    /// Accepts tokens of several issuers. The verifier's own issuer and audience are ignored.
    public init(_ verifier: JwtVerifier, issuers: [Issuer]) {
        self.verifier = verifier
        self.issuers = issuers
    }

    /// An accepted token, with its principal and the fields made from its claims.
    private final class Admission: Sendable {
        let principal: Principal
        let fields: FieldBlock?
        /// A claim that the token lacks, so that the request is refused; `nil` if none is lacking.
        let lacking: String?
        /// The source of the keys with which the token was checked, and the generation of those keys.
        let keys: KeySource
        let generation: Int

        init(_ principal: Principal, fields: FieldBlock?, lacking: String?, _ keys: KeySource, generation: Int) {
            self.keys = keys
            self.principal = principal
            self.fields = fields
            self.lacking = lacking
            self.generation = generation
        }
    }

    /// The token of a request.
    private enum Shown {
        case remembered(Admission, CredentialPlace?)
        case unknown(Token)
        case tooLong
    }

    private struct Token {
        let bytes: [UInt8]
        let digest: Digest256
        let place: CredentialPlace?
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        for (_, field) in claimsToHeaders { request.fields.remove(field) }
        let now = exchange.wallNow
        let found = BearerToken.withValue(request, in: exchange, from: places) { token, place -> Shown in
            guard token.count <= BearerToken.longest else { return .tooLong }
            let digest = Digest256(of: token)
            if let admission = memory.value(digest, at: now.seconds), admission.generation == admission.keys.generation
            {
                return .remembered(admission, place)
            }
            return .unknown(Token(bytes: Array(token), digest: digest, place: place))
        }
        switch found {
        case .one(.remembered(let admission, let place)):
            admission.keys.look(at: exchange.now)
            return admit(&request, admission, place, exchange)
        case .one(.unknown(let token)): return decide(&request, token, exchange)
        case .one(.tooLong): return BearerToken.invalid(exchange, "the token is too long")
        case .absent: return BearerToken.missing(exchange)
        case .several: return BearerToken.repeated(exchange)
        }
    }

    private func admit(
        _ request: inout HttpRequest, _ admission: Admission, _ place: CredentialPlace?, _ exchange: Exchange
    ) -> Verdict {
        if let lacking = admission.lacking {
            let wanted = verifier.requirements.first { $0.claim == lacking }?.values.joined(separator: " ")
            let isScope = lacking == "scope" || lacking == "scp"
            return BearerToken.insufficient(
                exchange, "the token's \(lacking) does not allow this", scope: isScope ? wanted : nil)
        }
        exchange.authenticated(as: admission.principal)
        place?.removeTwins(in: &request)
        if !forward { place?.hide(in: &request) }
        if let fields = admission.fields { request.fields.set(fields) }
        return .pass
    }

    // MARK: New tokens

    private func decide(_ request: inout HttpRequest, _ token: Token, _ exchange: Exchange) -> Verdict {
        let issuer: Issuer
        do throws(JwtFault) {
            issuer = try self.issuer(of: token)
        } catch {
            return BearerToken.invalid(exchange, error.text)
        }
        guard let keys = issuer.keys.keys(at: exchange.now) else {
            return .wait { request, exchange in
                guard let keys = try await issuer.keys.firstKeys(at: exchange.now) else {
                    return AuthenticationChallenge.tryLater("the signing keys are not available", after: 5)
                }
                return self.decideFinally(&request, token, issuer, keys, exchange)
            }
        }
        do {
            return admit(&request, try verify(token, issuer, keys, exchange), token.place, exchange)
        } catch .unknownKey where issuer.keys.mayRenew(at: exchange.now) {
            return .wait { request, exchange in
                guard let keys = try await issuer.keys.keysAnew(at: exchange.now) else {
                    return BearerToken.invalid(exchange, JwtFault.unknownKey.text)
                }
                return self.decideFinally(&request, token, issuer, keys, exchange)
            }
        } catch {
            return BearerToken.invalid(exchange, error.text)
        }
    }

    /// The issuer that the token names, if there are several. The name is verified later, with the signature.
    private func issuer(of token: Token) throws(JwtFault) -> Issuer {
        if issuers.count == 1 { return issuers[0] }
        let name = try verifier.issuer(namedBy: token.bytes)
        guard let found = issuers.first(where: { $0.name == name }) else {
            throw .invalid("the token has another issuer")
        }
        return found
    }

    private func decideFinally(
        _ request: inout HttpRequest, _ token: Token, _ issuer: Issuer, _ keys: JsonWebKeySet, _ exchange: Exchange
    ) -> Verdict {
        do {
            return admit(&request, try verify(token, issuer, keys, exchange), token.place, exchange)
        } catch {
            return BearerToken.invalid(exchange, error.text)
        }
    }

    private func verify(
        _ token: Token, _ issuer: Issuer, _ keys: JsonWebKeySet, _ exchange: Exchange
    ) throws(JwtFault) -> Admission {
        let generation = issuer.keys.generation
        var verifier = self.verifier
        verifier.issuer = issuer.name
        verifier.audience = issuer.audience
        let accepted = try verifier.verify(token.bytes, keys: keys, at: exchange.wallNow)
        let admission = Admission(
            Principal(
                method: "jwt", name: TokenIdentity.name(accepted["sub"], else: token.digest),
                claims: accepted.claims.compactMap { claim in claim.value.fieldText.map { (claim.name, $0) } },
                identity: TokenIdentity.digest(of: accepted.claims, by: identity, else: token.digest, method: "jwt")),
            fields: try fields(of: accepted), lacking: accepted.lacking, issuer.keys, generation: generation)
        memory.remember(
            admission, for: token.digest, until: accepted.until, bytes: 512 + 2 * token.bytes.count)
        return admission
    }

    /// The fields that are made from claims. A claim whose value is invalid in a field makes the token invalid.
    private func fields(of accepted: JwtVerifier.Accepted) throws(JwtFault) -> FieldBlock? {
        var lines: [FieldLine] = []
        for (claim, field) in claimsToHeaders {
            guard let text = accepted[claim]?.fieldText, !text.isEmpty else { continue }
            do {
                lines.append(try FieldLine(field, text))
            } catch {
                throw .invalid("the token's \(claim) is invalid in a field")
            }
        }
        return lines.isEmpty ? nil : FieldBlock(lines)
    }
}

extension Jwt: AuthenticatingWare {
    public var givesClaims: Bool { true }
}

extension Jwt: FieldEditingWare {
    public var takenFields: [FieldName] { claimsToHeaders.map(\.field) }
    public var givenFields: [FieldName] { claimsToHeaders.map(\.field) }
}

extension Jwt: AccessGuard {
    public var admitsOnlyKnown: Bool { true }
}
