public import Credentials
public import HttpWare

/// An entry of `credentials`, and the credential that was made from it.
public struct ConfiguredCredential: Sendable {
    /// The place of the options.
    public let location: SourceLocation
    /// The credential, which survives a reload while its definition stays the same.
    public let credential: Credential

    /// The name in metrics, traces, logs and errors.
    public var name: String { credential.name }
}
