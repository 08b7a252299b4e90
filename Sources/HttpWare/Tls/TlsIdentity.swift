import COpenSSL

/// A file's content, and how errors call the file.
public struct TlsFile: Sendable {
    /// The file's name.
    public let name: String
    /// What it holds.
    public let bytes: [UInt8]

    /// Names content.
    public init(name: String, bytes: [UInt8]) {
        self.name = name
        self.bytes = bytes
    }
}

/// What one side shows of itself: a certificate with its chain, and its key.
public struct TlsIdentity: Sendable {
    /// PEM: the certificate, then those between it and a root.
    public let chain: TlsFile
    /// PEM: the private key, not encrypted.
    public let key: TlsFile
    /// DER: the OCSP response that is stapled. RFC 6066 §8. A server's only.
    public let staple: TlsFile?

    /// Puts the files together.
    public init(chain: TlsFile, key: TlsFile, staple: TlsFile? = nil) {
        self.chain = chain
        self.key = key
        self.staple = staple
    }

    /// Checks that the files hold what they should and belong together; whether the certificate is out of date. Throws what
    /// is wrong with a file, by its name.
    public func hasExpired() throws(TlsFault) -> Bool {
        _ = try TlsContext(server: TlsContext.Server(identities: [self]))
        let certificates = try TlsContext.certificates(of: chain)
        defer { for certificate in certificates { X509_free(certificate) } }
        return X509_cmp_current_time(X509_get0_notAfter(certificates[0])) < 0
    }
}

/// What is spoken over TLS, as ALPN names it. RFC 7301.
public enum ApplicationProtocol: String, Sendable, CaseIterable {
    case h2
    case http11 = "http/1.1"

    /// The names as they go over the wire: each behind its length.
    static func wire(_ protocols: [ApplicationProtocol]) -> [UInt8] {
        protocols.flatMap { wire($0.rawValue) }
    }

    /// A name behind its length; ours are short.
    static func wire(_ name: String) -> [UInt8] { [UInt8(name.utf8.count)] + Array(name.utf8) }
}
