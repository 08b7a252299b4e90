/// An account that a certificate authority knows from elsewhere, to which an ACME account is bound. RFC 8555 §7.3.4.
public struct ExternalAccount: Sendable, Hashable {
    /// The identifier that the authority gave.
    public let keyId: String
    /// The key that the authority gave, decoded.
    public let macKey: [UInt8]

    /// An account of an authority.
    public init(keyId: String, macKey: [UInt8]) {
        self.keyId = keyId
        self.macKey = macKey
    }
}
