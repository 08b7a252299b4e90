import COpenSSL
import COpenSSLShims

/// The parts of a certificate that its renewal needs.
public struct CertificateFacts: Sendable, Equatable {
    /// The start of its validity.
    public let start: WallTime
    /// The end of its validity.
    public let end: WallTime
    /// The DNS names, in lower case.
    public let names: Set<String>
    /// The subject of its issuer, in the format of RFC 2253.
    public let issuer: String
    /// The identifier for renewal information: the authority's key identifier and the serial number. RFC 9773 §4.1. `nil`
    /// if the certificate does not name its authority's key.
    public let renewalId: String?
    /// The number of certificates in the chain.
    public let chainCount: Int
}

extension CertificateFacts {
    /// Reads the first certificate of a file. Throws the file's fault, with its name.
    public init(_ chain: TlsFile) throws(TlsFault) {
        let certificates = try TlsContext.certificates(of: chain)
        defer { for certificate in certificates { X509_free(certificate) } }
        let leaf = certificates[0]
        var (start, end): (Int64, Int64) = (0, 0)
        guard authority_validity(leaf, &start, &end) == 1 else {
            throw TlsFault(.material, "\(chain.name): the certificate has no period of validity")
        }
        self.start = WallTime(seconds: start)
        self.end = WallTime(seconds: end)
        names = TlsContext.names(of: leaf)
        issuer = TlsClientIdentity.issuer(of: leaf)
        chainCount = certificates.count
        let authority = CertificateKey.collect { certify_authority(leaf, takePart, $0) }
        let serial = CertificateKey.collect { certify_serial(leaf, takePart, $0) }
        if let authority, let serial {
            renewalId = "\(Base64.encodeUrl(authority)).\(Base64.encodeUrl(serial))"
        } else {
            renewalId = nil
        }
    }
}
