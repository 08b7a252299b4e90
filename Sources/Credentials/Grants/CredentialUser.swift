public import HttpWare

/// A ware that uses a credential. The checks of a configuration recognise it by this protocol.
public protocol CredentialUser: Ware {
    /// The credential; `nil` if the ware works without one.
    var credential: Credential? { get }
    /// The way in which the ware uses the credential.
    var credentialUse: CredentialUse { get }
    /// Whether the ware inserts the token only in place of its placeholder.
    var replacesPlaceholders: Bool { get }
    /// Identifies the fixed token that the ware adds to requests; `nil` if it has a credential.
    var fixedIdentity: Digest256? { get }
}

extension CredentialUser {
    public var replacesPlaceholders: Bool { false }
    public var fixedIdentity: Digest256? { nil }
}

/// The way in which a ware uses a credential.
public enum CredentialUse: Sendable {
    /// Adds its token to requests.
    case injects
    /// Holds requests during a refresh, and sends rejected ones again.
    case refreshes
    /// Holds requests during a refresh.
    case holds
    /// Discards its tokens.
    case clears
}
