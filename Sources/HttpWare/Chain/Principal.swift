/// Who asks, as a ware has made sure: a token's subject, a user, the name of a key. It stays in the exchange.
///
/// What is stored for one principal is not for another, whatever wares took from the message: RFC 9111 §3.5.
public final class Principal: Sendable {
    /// How it was found out: the name of the ware.
    public let method: String
    /// Its name there; may be empty.
    public let name: String
    /// What its token says, as texts: for `{jwt.CLAIM}`.
    public let claims: [(name: String, text: String)]

    public init(method: String, name: String, claims: [(name: String, text: String)] = []) {
        self.method = method
        self.name = name
        self.claims = claims
    }

    /// The text of a claim of the token; `nil` when it has none of that name.
    public func claim(_ name: String) -> String? { claims.first { $0.name == name }?.text }
}

extension Exchange {
    /// Remembers who asks. One of the same method and name, from an earlier try of this exchange, is replaced.
    public func authenticated(as principal: Principal) {
        guard !principals.isEmpty else { return principals.append(principal) }
        principals.removeAll { $0.method == principal.method && $0.name == principal.name }
        principals.append(principal)
    }

    /// What the token of the client says: the last one that was accepted and has the claim.
    public func claim(_ name: String) -> String? {
        for principal in principals.reversed() {
            if let text = principal.claim(name) { return text }
        }
        return nil
    }
}
