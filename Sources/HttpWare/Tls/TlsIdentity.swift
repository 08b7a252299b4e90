import COpenSSL

/// A file's content, and the file's name for errors.
public struct TlsFile: Sendable {
    /// The file's name.
    public let name: String
    /// The content.
    public let bytes: [UInt8]

    /// Makes a file from a name and its content.
    public init(name: String, bytes: [UInt8]) {
        self.name = name
        self.bytes = bytes
    }
}

/// The identity of one side: a certificate with its chain, and its key.
public struct TlsIdentity: Sendable {
    /// The certificate, followed by the intermediate certificates up to a root, in PEM.
    public let chain: TlsFile
    /// The private key in PEM, not encrypted.
    public let key: TlsFile
    /// The OCSP response for stapling, in DER. RFC 6066 §8. For servers only.
    public let staple: TlsFile?

    /// Makes an identity from its files.
    public init(chain: TlsFile, key: TlsFile, staple: TlsFile? = nil) {
        self.chain = chain
        self.key = key
        self.staple = staple
    }

    /// Checks that the files are valid and belong together, and returns whether the certificate has expired. Throws the fault
    /// of a file, with its name.
    public func hasExpired() throws(TlsFault) -> Bool {
        _ = try TlsContext(server: TlsContext.Server(identities: [self]))
        let certificates = try TlsContext.certificates(of: chain)
        defer { for certificate in certificates { X509_free(certificate) } }
        return X509_cmp_current_time(X509_get0_notAfter(certificates[0])) < 0
    }
}

/// A protocol over TLS, by its ALPN name. RFC 7301.
public enum ApplicationProtocol: String, Sendable, CaseIterable {
    case h2
    case http11 = "http/1.1"

    /// The names in wire format: each after its length.
    static func wire(_ protocols: [ApplicationProtocol]) -> [UInt8] {
        protocols.flatMap { wire($0.rawValue) }
    }

    /// A name after its length; ours are short enough.
    static func wire(_ name: String) -> [UInt8] { [UInt8(name.utf8.count)] + Array(name.utf8) }
}
