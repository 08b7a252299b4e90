/// Why a token is not accepted. The text may be told to the client: it holds nothing of the token.
public enum JwtFault: Error, Equatable, Sendable {
    /// The token is not one, or breaks a rule of RFC 7515, RFC 7519 or RFC 8725.
    case invalid(String)
    /// It is signed with a key that is not known.
    case unknownKey
    /// It says that it is valid at other times.
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
