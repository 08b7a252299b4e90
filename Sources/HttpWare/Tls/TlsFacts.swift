import COpenSSL
import COpenSSLShims
import Synchronization

/// The result of a TLS handshake, with its certificates: one object for all exchanges of a connection.
public final class TlsFacts: Sendable {
    /// A summary of a certificate. Names and texts are limited, because the peer chooses their number and length.
    public struct Certificate: Sendable, Equatable {
        /// The subject and the issuer, in the format of RFC 2253.
        public var subject: String
        public var issuer: String
        /// The first subject alternative names with their types: `DNS:a.test`, `IP:192.0.2.1`.
        public var names: [String]
        /// The number of further names.
        public var moreNames: Int
        public var notBefore: WallTime
        public var notAfter: WallTime
        /// The fingerprint: the SHA-256 digest of the certificate, in hexadecimal digits.
        public var sha256: String

        public init(
            subject: String, issuer: String, names: [String], moreNames: Int = 0, notBefore: WallTime,
            notAfter: WallTime, sha256: String
        ) {
            self.subject = subject
            self.issuer = issuer
            self.names = names
            self.moreNames = moreNames
            self.notBefore = notBefore
            self.notAfter = notAfter
            self.sha256 = sha256
        }
    }

    /// The version, such as `TLSv1.3`.
    public let version: String
    /// The cipher suite by its IANA name.
    public let cipher: String
    /// The group of the key exchange by its IANA name, such as `X25519MLKEM768`; `nil` if it is not known.
    public let group: String?
    /// The protocol chosen by ALPN. RFC 7301.
    public let alpn: String?
    /// The server name that the client sent (SNI). RFC 6066 §3.
    public let name: String?
    /// Whether the handshake resumed an earlier session, without sending a certificate again.
    public let isResumed: Bool
    /// The certificate of the server.
    public let certificate: Certificate?
    /// The certificate of the client, if the server asked for one.
    public let clientCertificate: Certificate?
    /// The capture to which this object's memory is counted; 0 without one.
    private let holder = Atomic(0)

    public init(
        version: String, cipher: String, group: String? = nil, alpn: String?, name: String?, isResumed: Bool,
        certificate: Certificate?, clientCertificate: Certificate?
    ) {
        self.version = version
        self.cipher = cipher
        self.group = group
        self.alpn = alpn
        self.name = name
        self.isResumed = isResumed
        self.certificate = certificate
        self.clientCertificate = clientCertificate
    }

    /// The same facts with this group.
    public func with(group: String?) -> TlsFacts {
        TlsFacts(
            version: version, cipher: cipher, group: group, alpn: alpn, name: name, isResumed: isResumed,
            certificate: certificate, clientCertificate: clientCertificate)
    }

    /// The approximate memory use in bytes, for the first holder that asks; 0 for later ones. Holders are numbered from 1.
    public func memory(for holder: Int) -> Int {
        let (isFirst, present) = self.holder.compareExchange(expected: 0, desired: holder, ordering: .relaxed)
        guard isFirst || present == holder else { return 0 }
        return 256 + cipher.utf8.count + (name?.utf8.count ?? 0) + (certificate?.memory ?? 0)
            + (clientCertificate?.memory ?? 0)
    }
}

extension TlsFacts: Equatable {
    public static func == (one: TlsFacts, other: TlsFacts) -> Bool {
        one === other
            || (one.version, one.cipher, one.alpn, one.name) == (other.version, other.cipher, other.alpn, other.name)
                && one.group == other.group
                && one.isResumed == other.isResumed && one.certificate == other.certificate
                && one.clientCertificate == other.clientCertificate
    }
}

extension TlsFacts.Certificate {
    /// The limits: further names are only counted, and longer texts are cut.
    private static let mostNames = 16
    private static let mostText = 256

    init(_ certificate: OpaquePointer) {
        subject = Self.cut(TlsClientIdentity.subject(of: certificate))
        issuer = Self.cut(TlsClientIdentity.issuer(of: certificate))
        var names: [String] = []
        var more = 0
        TlsClientIdentity.each(certificate) { type, bytes in
            guard names.count < Self.mostNames else { return more += 1 }
            names.append(Self.cut("\(type):\(TlsClientIdentity.text(type, bytes))"))
        }
        self.names = names
        moreNames = more
        var (start, end): (Int64, Int64) = (0, 0)
        authority_validity(certificate, &start, &end)
        notBefore = WallTime(seconds: start)
        notAfter = WallTime(seconds: end)
        var digest = [UInt8](repeating: 0, count: 32)
        var count = UInt32(digest.count)
        X509_digest(certificate, EVP_sha256(), &digest, &count)
        sha256 = Hex.text(digest)
    }

    private static func cut(_ text: String) -> String {
        text.utf8.count <= mostText ? text : String(decoding: text.utf8.prefix(mostText), as: UTF8.self) + "…"
    }

    fileprivate var memory: Int {
        names.reduce(320 + subject.utf8.count + issuer.utf8.count) { $0 + 48 + $1.utf8.count }
    }
}
