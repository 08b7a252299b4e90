/// Reads what a challenge says about a token. RFC 9110 §11.6.1, RFC 6750 §3.
enum BearerChallenge {
    /// Whether a member of `WWW-Authenticate` is the parameter `error` with the value `invalid_token`. A scheme may come before
    /// it.
    static func isInvalidToken(_ member: String) -> Bool {
        guard let equals = member.firstIndex(of: "=") else { return false }
        guard let name = member[..<equals].split(whereSeparator: \.isWhitespace).last, name.lowercased() == "error"
        else {
            return false
        }
        let value = member[member.index(after: equals)...].drop(while: \.isWhitespace)
        return value == "invalid_token" || value == "\"invalid_token\""
    }
}
