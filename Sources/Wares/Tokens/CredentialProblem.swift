public import Credentials
public import HttpWare

/// Says that the credentials of the chain are the client's own: it is told of the end of a login by a 401, which `unauthorized`
/// sees. A gateway's client has a session of its own, which a 401 would end; it is told 503.
public enum OwnsCredentials: ExchangeKey {
    public typealias Value = Bool
}

/// Why a request had no token: for a client in the same process.
public struct CredentialProblem: ExchangeKey, Sendable {
    public typealias Value = CredentialProblem

    /// The name of the credential.
    public let credential: String
    public let failure: CredentialFailure

    /// Remembers the failure, if the exchange is that of a client which wants to know; answers whether it is.
    @discardableResult
    static func note(_ credential: Credential, _ failure: CredentialFailure, in exchange: Exchange) -> Bool {
        guard exchange[OwnsCredentials.self] == true else { return false }
        exchange[CredentialProblem.self] = CredentialProblem(credential: credential.name, failure: failure)
        return true
    }
}
