import HttpWare

/// Reads the `exp` of a JWT, for a token whose endpoint stated no lifetime. RFC 7519 §4.1.4.
///
/// The signature is not checked, because the token came from the token endpoint.
enum JwtExpiry {
    static func read(_ token: Secret) -> WallTime? {
        let parts = token.revealed.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let claims = Base64.decodeUrl(parts[1]),
            let seconds = (try? JsonValue(claims))?["exp"]?.double, seconds >= 0, seconds < 1e15
        else { return nil }
        return WallTime(seconds: Int64(seconds))
    }
}
