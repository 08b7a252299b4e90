public import Credentials

/// The settings by which a listener obtains its certificates.
public struct AcmeSettings: Sendable, Hashable {
    /// The DNS names in lower case; each has its own certificate.
    public var domains: [String]
    /// The URL of the certificate authority's directory.
    public var directory: EndpointUrl
    /// The URL of the authority's directory for trials, whose certificates no client trusts; `nil` if none is known.
    public var staging: EndpointUrl?
    /// The address to which the authority may write.
    public var email: String?
    /// The root certificates, in PEM, that the directory's own certificate is checked with; `nil` for those of the system.
    public var authorities: [UInt8]?
    /// The way in which control of the names is proved.
    public var challenge = ChallengeKind.tlsAlpn01
    /// The folder of accounts and certificates; unused if `sharing` is given.
    public var store: String
    /// The store that gateways share, in place of a folder; `nil` for a folder.
    public var sharing: AcmeSharing?
    /// The listener in clear text that answers http-01, instead of the listeners on port 80.
    public var listener: String?
    /// The profile of the certificates.
    public var profile: String?
    /// The account at the authority to which the ACME account is bound.
    public var externalAccount: ExternalAccount?

    /// Settings for certificates of Let's Encrypt for these names.
    public init(domains: [String], store: String) {
        self.domains = domains
        self.store = store
        directory = AcmeSettings.letsEncrypt
        staging = AcmeSettings.letsEncryptStaging
    }

    /// The directory of Let's Encrypt. The literal is a valid URL.
    public static let letsEncrypt = EndpointUrl("https://acme-v02.api.letsencrypt.org/directory")!

    /// The directory of Let's Encrypt for trials. The literal is a valid URL.
    public static let letsEncryptStaging = EndpointUrl("https://acme-staging-v02.api.letsencrypt.org/directory")!

    /// Whether a text is a DNS name, in lower case, that a certificate can be ordered for: at least two LDH labels and no
    /// wildcard. RFC 1035 §2.3.1.
    public static func isDomain(_ text: String) -> Bool {
        let labels = text.split(separator: ".", omittingEmptySubsequences: false)
        guard labels.count >= 2, text.utf8.count <= 253,
            labels.last?.utf8.allSatisfy({ (0x30...0x39).contains($0) }) == false
        else { return false }
        return labels.allSatisfy { label in
            (1...63).contains(label.utf8.count) && label.first != "-" && label.last != "-"
                && label.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x7a).contains($0) || $0 == 0x2d }
        }
    }
}
