/// Reads what a challenge says about a token. RFC 9110 §11.6.1, RFC 6750 §3.
enum BearerChallenge {
    /// Whether a member of `WWW-Authenticate` is the parameter `error` with the value `invalid_token`. A scheme may come before
    /// it.
    static func isInvalidToken(_ member: String) -> Bool {
        error(member).map { $0 == "invalid_token" || $0 == "\"invalid_token\"" } ?? false
    }

    /// Whether a member of `WWW-Authenticate` is the parameter `error` with a value that no new token helps against.
    static func isOtherError(_ member: String) -> Bool {
        error(member).map { ["insufficient_scope", "invalid_request"].contains($0.filter { $0 != "\"" }) } ?? false
    }

    /// The value of the parameter `error`, as written.
    private static func error(_ member: String) -> Substring? {
        guard let equals = member.firstIndex(of: "=") else { return nil }
        guard let name = member[..<equals].split(whereSeparator: \.isWhitespace).last, name.lowercased() == "error"
        else {
            return nil
        }
        return member[member.index(after: equals)...].drop(while: \.isWhitespace)
    }
}
