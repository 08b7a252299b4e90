import HttpWare

/// A token in the compact serialization, parsed: RFC 7515 §3.1, §5.2. Its content is not verified yet.
struct CompactJwt {
    /// The maximum length of a token in bytes, checked before anything is decoded.
    static let longest = 16 << 10

    /// The signed part: header and claims as received.
    let signed: Range<Int>
    let signature: [UInt8]
    let algorithm: VerifyingKey.Algorithm
    let identifier: String?
    /// The claims, still encoded.
    let claims: Range<Int>

    /// Parses a token and its header. `algorithms` are the allowed ones.
    init(_ token: [UInt8], algorithms: [VerifyingKey.Algorithm]) throws(JwtFault) {
        guard token.count <= Self.longest else { throw .invalid("the token is too long") }
        // Five segments are an encrypted token (RFC 7516 §3.1), which is not accepted.
        guard let first = token.firstIndex(of: 0x2e), let second = token[(first + 1)...].firstIndex(of: 0x2e),
            !token[(second + 1)...].contains(0x2e)
        else { throw .invalid("the token does not have three segments") }
        signed = 0..<second
        claims = (first + 1)..<second
        guard let header = Base64.decodeUrl(token[..<first]), let signature = Base64.decodeUrl(token[(second + 1)...])
        else { throw .invalid("a segment of the token is not base64url") }
        self.signature = signature
        let json: JsonValue
        do { json = try JsonValue(header) } catch { throw .invalid("in the token's header: \(error)") }
        guard case .object = json else { throw .invalid("the token's header is not an object") }
        (algorithm, identifier) = try Self.rules(json, algorithms)
    }

    /// Applies the rules of RFC 8725 to the header. `jku`, `jwk`, `x5u` and `x5c` are not even read: §3.10.
    private static func rules(_ header: JsonValue, _ allowed: [VerifyingKey.Algorithm]) throws(JwtFault) -> (
        VerifyingKey.Algorithm, String?
    ) {
        // RFC 7515 §4.1.11: "If any of the listed extension Header Parameters are not understood and supported by the
        // recipient, then the JWS is invalid." No extension is supported.
        guard header["crit"] == nil else { throw .invalid("the token needs extensions that are not supported") }
        guard header["enc"] == nil, header["zip"] == nil else { throw .invalid("the token is encrypted") }
        // RFC 8725 §3.1: "Libraries MUST enable the caller to specify a supported set of algorithms".
        guard let name = header["alg"]?.string, let algorithm = VerifyingKey.Algorithm(rawValue: name),
            allowed.contains(algorithm)
        else { throw .invalid("the token's algorithm is not allowed") }
        // RFC 8725 §3.11: explicit typing, so that a token of another kind is not accepted as an access token.
        if let type = header["typ"] {
            var text = type.string?.lowercased() ?? ""
            if text.hasPrefix("application/") { text.removeFirst("application/".count) }
            guard text == "jwt" || text == "at+jwt" else { throw .invalid("the token's typ is not JWT or at+jwt") }
        }
        // RFC 7519 §5.2: `cty` marks a nested token.
        guard header["cty"] == nil else { throw .invalid("the token is nested") }
        guard let kid = header["kid"] else { return (algorithm, nil) }
        // RFC 8725 §3.10: the `kid` is only compared with the names of known keys.
        guard let identifier = kid.string, identifier.utf8.count <= JsonWebKeySet.longestIdentifier else {
            throw .invalid("the token's kid is not a short string")
        }
        return (algorithm, identifier)
    }
}
