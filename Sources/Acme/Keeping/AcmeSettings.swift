public import Credentials

/// How a listener gets its certificates.
public struct AcmeSettings: Sendable, Hashable {
    /// The DNS names, in lower case; each has a certificate of its own.
    public var domains: [String]
    /// Where the certificate authority's directory is.
    public var directory: EndpointUrl
    /// Whom the authority may write to.
    public var email: String?
    /// PEM: the roots of the directory's own certificate; `nil` for those of the system.
    public var authorities: [UInt8]?
    /// How control of the names is proved.
    public var challenge = ChallengeKind.tlsAlpn01
    /// The folder of accounts and certificates; unused if `sharing` is given.
    public var store: String
    /// The store that gateways share, in place of a folder; `nil` for a folder.
    public var sharing: AcmeSharing?
    /// The listener in clear text that answers http-01, in place of those on port 80.
    public var listener: String?
    /// The profile of the certificates.
    public var profile: String?
    /// The account of the authority that ours is bound to.
    public var externalAccount: ExternalAccount?

    /// Certificates of Let's Encrypt for these names.
    public init(domains: [String], store: String) {
        self.domains = domains
        self.store = store
        directory = AcmeSettings.letsEncrypt
    }

    /// The directory of Let's Encrypt. A literal that is a URL.
    public static let letsEncrypt = EndpointUrl("https://acme-v02.api.letsencrypt.org/directory")!

    /// A DNS name that a certificate can be ordered for, in lower case: LDH labels, at least two, and no wildcard. RFC 1035 §2.3.1.
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
