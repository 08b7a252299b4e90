import Glibc
public import HttpWare

/// Decides whether a token is accepted, by RFC 7519 §7.2 and the rules of RFC 8725. It is pure: its caller supplies keys and
/// time.
public struct JwtVerifier: Sendable {
    /// A claim, and the texts that it must all contain.
    public struct Requirement: Sendable {
        public let claim: String
        public let values: [String]

        public init(claim: String, values: [String]) {
            self.claim = claim
            self.values = values
        }
    }

    /// The accepted signature algorithms.
    public var algorithms: [VerifyingKey.Algorithm] = [.rs256, .ps256, .es256, .edDSA]
    /// The required issuer; `nil` accepts every issuer whose key is known.
    public var issuer: String?
    /// The accepted audiences, one of which the token must name; empty accepts any.
    public var audience: [String] = []
    /// The maximum difference between the clocks.
    public var clockSkew = Duration.seconds(60)
    public var requirements: [Requirement] = []
    /// The time of the processor in which the keys are tried that may have signed a token without a `kid`, or with one that several keys have. The first
    /// one is always tried; the largest keys take a millisecond each.
    static let timeForKeys = Duration.milliseconds(10)

    public init() {}

    /// The content of an accepted token.
    public struct Accepted: Sendable {
        public let claims: [JsonValue.Member]
        /// The algorithm that it is signed with.
        public let algorithm: VerifyingKey.Algorithm
        /// When the token stops being valid, including the skew, in seconds since 1970.
        public let until: Int64
        /// The first claim that does not meet its requirement; `nil` if all do.
        public let lacking: String?

        /// The value of a claim.
        public subscript(name: String) -> JsonValue? { claims.first { $0.name == name }?.value }
    }

    /// Verifies a token: its form, its signature, then its claims. Throws the first fault. A claim that does not meet its
    /// requirement is not a fault: see `Accepted.lacking`.
    public func verify(
        _ token: [UInt8], keys: JsonWebKeySet, at now: WallTime
    ) throws(JwtFault) -> Accepted {
        let parts = try CompactJwt(token, algorithms: algorithms)
        let candidates = keys.candidates(parts.identifier, parts.algorithm)
        guard keys.knows(parts.identifier) else { throw .unknownKey }
        let end = candidates.count > 1 ? Self.processorTime() + Self.timeForKeys : nil
        var isLate = false
        let isSigned = token.withUnsafeBytes { token in
            parts.signature.withUnsafeBytes { signature in
                candidates.enumerated().contains { place, candidate in
                    if place > 0, let end, isLate || Self.processorTime() > end {
                        isLate = true
                        return false
                    }
                    return candidate.key.isSignature(
                        signature, of: UnsafeRawBufferPointer(rebasing: token[parts.signed]), by: parts.algorithm)
                }
            }
        }
        if !isSigned, isLate { throw .invalid("too many keys may have signed the token; it needs a kid of its own") }
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

    /// The time that the processor has spent on this thread.
    private static func processorTime() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    /// The issuer that a token names, which is not verified yet. It is used to find the keys.
    public func issuer(namedBy token: [UInt8]) throws(JwtFault) -> String? {
        let parts = try CompactJwt(token, algorithms: algorithms)
        guard let text = Base64.decodeUrl(token[parts.claims]) else {
            throw .invalid("a segment of the token is not base64url")
        }
        do { return try JsonValue(text)["iss"]?.string } catch { throw .invalid("in the token's claims: \(error)") }
    }

    /// Checks claims whose signature is valid. Returns the time until which they are valid.
    private func check(_ claims: JsonValue, at now: WallTime) throws(JwtFault) -> Int64 {
        let skew = clockSkew.components.seconds
        // RFC 7519 §4.1.4: "on or after which the JWT MUST NOT be accepted". Without it, a token would be valid forever.
        guard let expiry = try date("exp", claims) else { throw .invalid("the token has no exp") }
        guard now.seconds < expiry + skew else { throw .expired }
        // §4.1.5: "before which the JWT MUST NOT be accepted".
        if let start = try date("nbf", claims), now.seconds + skew < start { throw .notYetValid }
        if let issued = try date("iat", claims), now.seconds + skew < issued { throw .notYetValid }
        try checkIssuer(claims)
        return expiry + skew
    }

    /// Checks the issuer and the audience: RFC 8725 §3.8, §3.9.
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

    /// A NumericDate in whole seconds, rounded down. It need not be whole: RFC 7519 §2, seconds since 1970.
    private func date(_ name: String, _ claims: JsonValue) throws(JwtFault) -> Int64? {
        guard let claim = claims[name] else { return nil }
        guard let seconds = claim.double, seconds >= 0, seconds < 1e15 else {
            throw .invalid("the token's \(name) is not a date")
        }
        return Int64(seconds.rounded(.down))
    }

    /// Whether a claim contains each of the texts: as the whole value, between spaces, or in a list.
    static func holds(_ claim: JsonValue?, _ texts: [String]) -> Bool {
        guard let claim else { return false }
        let held: Set<String>
        switch claim {
        case .string(let text): held = Set([text] + text.split(separator: " ").map(String.init))
        case .array(let elements): held = Set(elements.compactMap(\.fieldText))
        default: held = Set([claim.fieldText].compactMap(\.self))
        }
        return texts.allSatisfy(held.contains)
    }
}
