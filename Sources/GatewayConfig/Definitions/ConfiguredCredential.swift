public import Credentials
public import HttpWare

/// One name's entry under `credentials`, and the credential that was made of it.
public struct ConfiguredCredential: Sendable {
    /// Where its options begin.
    public let location: SourceLocation
    /// Lives on over a reload while its definition is the same.
    public let credential: Credential

    /// As metrics, traces, logs and errors call it.
    public var name: String { credential.name }
}
