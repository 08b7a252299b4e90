public import HttpWare

/// A ware that works with a credential: what the checks of a configuration know it by.
public protocol CredentialUser: Ware {
    /// The credential; `nil` where it works without one.
    var credential: Credential? { get }
    /// What it does with it.
    var credentialUse: CredentialUse { get }
    /// Whether it puts the token only where a placeholder of it stands.
    var replacesPlaceholders: Bool { get }
    /// Identifies the token that it puts into requests, where that never changes; `nil` where there is a credential.
    var fixedIdentity: Digest256? { get }
}

extension CredentialUser {
    public var replacesPlaceholders: Bool { false }
    public var fixedIdentity: Digest256? { nil }
}

/// What a ware does with a credential.
public enum CredentialUse: Sendable {
    /// Puts its token into requests.
    case injects
    /// Holds requests while it is refreshed, and sends them again.
    case refreshes
    /// Holds requests while it is refreshed.
    case holds
    /// Forgets its tokens.
    case clears
}
