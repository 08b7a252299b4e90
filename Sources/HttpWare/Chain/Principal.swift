/// A client that a certificate or a ware authenticated: a token's subject, a user, the name of a key. It stays in the exchange.
///
/// What is stored for one principal is not for another, whatever wares took from the message: RFC 9111 §3.5.
public final class Principal: Sendable {
    /// How it was found out: the name of the ware, or `tls` for a certificate.
    public let method: String
    /// Its name there, for people; may be empty, and two principals may have one name.
    public let name: String
    /// What its token says, as texts: for `{jwt.CLAIM}`.
    public let claims: [(name: String, text: String)]
    /// Identifies this principal among all others, and is the same in every process. What is kept or counted for one principal
    /// goes by this, never by the name alone.
    public let identity: Digest256

    /// Without an `identity`, the method and the name are it: for a method whose names are unique.
    public init(
        method: String, name: String, claims: [(name: String, text: String)] = [], identity: Digest256? = nil
    ) {
        self.method = method
        self.name = name
        self.claims = claims
        self.identity = identity ?? Digest256(of: [method, name])
    }

    /// The one that a verified certificate of a client names.
    convenience init(certificate: TlsClientIdentity) {
        self.init(
            method: "tls", name: certificate.subject.isEmpty ? certificate.alternativeNames : certificate.subject,
            identity: certificate.digest)
    }

    /// The text of a claim of the token; `nil` when it has none of that name.
    public func claim(_ name: String) -> String? { claims.first { $0.name == name }?.text }
}

extension Exchange {
    /// Remembers a principal of the request. The same one, from an earlier try of this exchange, is replaced.
    public func authenticated(as principal: Principal) {
        guard !principals.isEmpty else { return principals.append(principal) }
        principals.removeAll { $0.identity == principal.identity }
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
