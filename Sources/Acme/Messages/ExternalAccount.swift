/// An account outside ACME that a certificate authority knows, to which an ACME account is bound. RFC 8555 §7.3.4.
public struct ExternalAccount: Sendable, Hashable {
    /// The identifier issued by the authority.
    public let keyId: String
    /// The key issued by the authority, decoded.
    public let macKey: [UInt8]

    /// The account with an authority's identifier and key.
    public init(keyId: String, macKey: [UInt8]) {
        self.keyId = keyId
        self.macKey = macKey
    }
}
