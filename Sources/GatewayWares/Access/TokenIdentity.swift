import HttpWare

/// The user of a token: the claims that identify a user, if the token has all of them, or else the token itself.
enum TokenIdentity {
    /// The issuer, and the subject that it assigned: together they are unique. RFC 7519 §4.1.1, §4.1.2.
    static let usual = ["iss", "sub"]

    static let doc =
        "claims that together identify a user; if a token lacks one of them, the token itself identifies the user"

    /// A digest that identifies the user. `token` is the digest of the token.
    static func digest(
        of claims: [JsonValue.Member], by names: [String], else token: Digest256, method: String
    ) -> Digest256 {
        var texts = [method, "claims"]
        for name in names {
            guard let value = claims.first(where: { $0.name == name })?.value, isName(value) else { return other() }
            // As JSON, with quotes around a string: "1" is not 1.
            texts += [name, value.json]
        }
        return names.isEmpty ? other() : Digest256(of: texts)

        func other() -> Digest256 { token.withBytes { Digest256(of: [method, "token"]).followed(by: $0) } }
    }

    /// Whether the value can identify a user: a string that is not empty, or a number.
    private static func isName(_ value: JsonValue) -> Bool {
        switch value {
        case .string(let text): !text.isEmpty
        case .number: true
        default: false
        }
    }

    /// A name of the user for people: the subject, or the beginning of the token's digest.
    static func name(_ subject: JsonValue?, else token: Digest256) -> String {
        if let text = subject?.fieldText, !text.isEmpty { return text }
        return "token \(token.hex.prefix(12))"
    }
}
