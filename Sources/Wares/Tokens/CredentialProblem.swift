public import Credentials
public import HttpWare

/// Whether the credentials of the chain are the client's own. Such a client learns from a 401, which `unauthorized` sees, that
/// its login has ended. Other clients of a gateway get 503, because they have sessions of their own, which a 401 would end.
public enum OwnsCredentials: ExchangeKey {
    public typealias Value = Bool
}

/// Why a request had no token, for a client in the same process.
public struct CredentialProblem: ExchangeKey, Sendable {
    public typealias Value = CredentialProblem

    /// The name of the credential.
    public let credential: String
    public let failure: CredentialFailure

    /// Remembers the failure if the client owns its credentials. Returns whether it does.
    @discardableResult
    static func note(_ credential: Credential, _ failure: CredentialFailure, in exchange: Exchange) -> Bool {
        guard exchange[OwnsCredentials.self] == true else { return false }
        exchange[CredentialProblem.self] = CredentialProblem(credential: credential.name, failure: failure)
        return true
    }
}
