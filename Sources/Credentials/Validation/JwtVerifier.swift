public import HttpWare

/// Decides whether a token is accepted, by RFC 7519 §7.2 and the rules of RFC 8725. Pure: keys and time are given to it.
public struct JwtVerifier: Sendable {
    /// A claim, and texts each of which it must hold.
    public struct Requirement: Sendable {
        public let claim: String
        public let values: [String]

        public init(claim: String, values: [String]) {
            self.claim = claim
            self.values = values
        }
    }

    /// Those whose signatures count.
    public var algorithms: [VerifyingKey.Algorithm] = [.rs256, .ps256, .es256, .edDSA]
    /// Who must have issued the token; `nil` takes anybody whose key is known.
    public var issuer: String?
    /// Whom it must be for, one of these; empty for anybody.
    public var audience: [String] = []
    /// How far the clocks may differ.
    public var clockSkew = Duration.seconds(60)
    public var requirements: [Requirement] = []

    public init() {}

    /// What a token says that was accepted.
    public struct Accepted: Sendable {
        public let claims: [JsonValue.Member]
        /// The algorithm that it is signed with.
        public let algorithm: VerifyingKey.Algorithm
        /// When it stops being valid, the skew included: seconds since 1970.
        public let until: Int64
        /// The first claim that does not hold what is asked for; `nil` when all do.
        public let lacking: String?

        /// The value of a claim.
        public subscript(name: String) -> JsonValue? { claims.first { $0.name == name }?.value }
    }

    /// Checks a token: its form, its signature, then its claims. Throws the first reason against it; that it does not allow
    /// enough is none.
    public func verify(
        _ token: [UInt8], keys: JsonWebKeySet, at now: WallTime
    ) throws(JwtFault) -> Accepted {
        let parts = try CompactJwt(token, algorithms: algorithms)
        let candidates = keys.candidates(parts.identifier, parts.algorithm)
        guard keys.knows(parts.identifier) else { throw .unknownKey }
        let isSigned = token.withUnsafeBytes { token in
            parts.signature.withUnsafeBytes { signature in
                candidates.contains {
                    $0.key.isSignature(
                        signature, of: UnsafeRawBufferPointer(rebasing: token[parts.signed]), by: parts.algorithm)
                }
            }
        }
        guard isSigned else { throw .invalid("the token's signature is invalid") }
        guard let text = Base64.decodeUrl(token[parts.claims]) else {
            throw .invalid("a segment of the token is not base64url")
        }
        let json: JsonValue
        do { json = try JsonValue(text) } catch { throw .invalid("in the token's claims: \(error)") }
        guard let claims = json.members else { throw .invalid("the token's claims are not an object") }
        let until = try check(json, at: now)
        let lacking = requirements.first { !Self.holds(json[$0.claim], $0.values) }?.claim
        return Accepted(claims: claims, algorithm: parts.algorithm, until: until, lacking: lacking)
    }

    /// The issuer that a token names, which is not to be believed yet: to find the keys that it is checked with.
    public func issuer(namedBy token: [UInt8]) throws(JwtFault) -> String? {
        let parts = try CompactJwt(token, algorithms: algorithms)
        guard let text = Base64.decodeUrl(token[parts.claims]) else {
            throw .invalid("a segment of the token is not base64url")
        }
        do { return try JsonValue(text)["iss"]?.string } catch { throw .invalid("in the token's claims: \(error)") }
    }

    /// Checks claims whose signature is right; answers until when they hold.
    private func check(_ claims: JsonValue, at now: WallTime) throws(JwtFault) -> Int64 {
        let skew = clockSkew.components.seconds
        // RFC 7519 §4.1.4: "on or after which the JWT MUST NOT be accepted". Without it a token would hold for ever.
        guard let expiry = try date("exp", claims) else { throw .invalid("the token has no exp") }
        guard now.seconds < expiry + skew else { throw .expired }
        // §4.1.5: "before which the JWT MUST NOT be accepted".
        if let start = try date("nbf", claims), now.seconds + skew < start { throw .notYetValid }
        if let issued = try date("iat", claims), now.seconds + skew < issued { throw .notYetValid }
        try checkIssuer(claims)
        return expiry + skew
    }

    /// RFC 8725 §3.8, §3.9: who issued it, and whom it is for.
    private func checkIssuer(_ claims: JsonValue) throws(JwtFault) {
        if let claim = claims["iss"], claim.string == nil { throw .invalid("the token's iss is not a string") }
        if let issuer, claims["iss"] != .string(issuer) { throw .invalid("the token has another issuer") }
        let named: [String]
        switch claims["aud"] {
        case nil: named = []
        case .string(let one): named = [one]
        case .array(let elements) where elements.allSatisfy({ $0.string != nil }): named = elements.compactMap(\.string)
        default: throw .invalid("the token's aud is neither a string nor a list of strings")
        }
        guard audience.isEmpty || named.contains(where: audience.contains) else {
            throw .invalid("the token is for another audience")
        }
    }

    /// A NumericDate (RFC 7519 §2: seconds since 1970, which need not be whole) in whole seconds; a fraction counts as begun.
    private func date(_ name: String, _ claims: JsonValue) throws(JwtFault) -> Int64? {
        guard let claim = claims[name] else { return nil }
        guard let seconds = claim.double, seconds >= 0, seconds < 1e15 else {
            throw .invalid("the token's \(name) is not a date")
        }
        return Int64(seconds.rounded(.down))
    }

    /// Whether a claim holds each of the texts: it is that text, has it between spaces, or lists it.
    static func holds(_ claim: JsonValue?, _ texts: [String]) -> Bool {
        guard let claim else { return false }
        let held: Set<String>
        switch claim {
        case .string(let text): held = Set([text] + text.split(separator: " ").map(String.init))
        case .array(let elements): held = Set(elements.compactMap(\.text))
        default: held = Set([claim.text].compactMap(\.self))
        }
        return texts.allSatisfy(held.contains)
    }
}
