/// Why a token is not accepted. The text can be sent to the client, because it contains nothing of the token.
public enum JwtFault: Error, Equatable, Sendable {
    /// The token is malformed, or breaks a rule of RFC 7515, RFC 7519 or RFC 8725.
    case invalid(String)
    /// The token is signed with an unknown key.
    case unknownKey
    /// The current time is outside the token's period of validity.
    case expired, notYetValid

    public var text: String {
        switch self {
        case .invalid(let text): text
        case .unknownKey: "the token is signed with an unknown key"
        case .expired: "the token has expired"
        case .notYetValid: "the token is not valid yet"
        }
    }
}
