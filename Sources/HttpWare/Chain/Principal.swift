/// A client that a certificate or a ware authenticated: a token's subject, a user, the name of a key. It stays in the exchange.
///
/// A response stored for one principal is not reused for another, even if wares removed the credentials: RFC 9111 §3.5.
public final class Principal: Sendable {
    /// The means of authentication: the name of the ware, or `tls` for a certificate.
    public let method: String
    /// The principal's name, for people; may be empty, and two principals may share a name.
    public let name: String
    /// The claims of its token, as texts: for `{jwt.CLAIM}`.
    public let claims: [(name: String, text: String)]
    /// Identifies this principal among all others, and is the same in every process. Stored responses and counts use this,
    /// never the name alone.
    public let identity: Digest256

    /// Without an `identity`, it is made of the method and the name: for a method whose names are unique.
    public init(
        method: String, name: String, claims: [(name: String, text: String)] = [], identity: Digest256? = nil
    ) {
        self.method = method
        self.name = name
        self.claims = claims
        self.identity = identity ?? Digest256(of: [method, name])
    }

    /// The principal of a client's verified certificate.
    convenience init(certificate: TlsClientIdentity) {
        self.init(
            method: "tls", name: certificate.subject.isEmpty ? certificate.alternativeNames : certificate.subject,
            identity: certificate.digest)
    }

    /// The text of a claim of the token; `nil` without that claim.
    public func claim(_ name: String) -> String? { claims.first { $0.name == name }?.text }
}

extension Exchange {
    /// Adds a principal of the request. The same principal from an earlier try of this exchange is replaced.
    public func authenticated(as principal: Principal) {
        guard !principals.isEmpty else { return principals.append(principal) }
        principals.removeAll { $0.identity == principal.identity }
        principals.append(principal)
    }

    /// A claim of the client's token. If several tokens were accepted, the last one with the claim counts.
    public func claim(_ name: String) -> String? {
        for principal in principals.reversed() {
            if let text = principal.claim(name) { return text }
        }
        return nil
    }
}
