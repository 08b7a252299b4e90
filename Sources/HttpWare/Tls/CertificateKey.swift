import COpenSSL
import COpenSSLShims
import Glibc

/// A private key on the curve P-256: for an account with a certificate authority, or for a certificate.
///
/// Unchecked: the pointer is set in `init`, the key is only read afterwards, and OpenSSL counts its references atomically.
public final class CertificateKey: @unchecked Sendable {
    private let pointer: OpaquePointer

    /// Makes a new key. Throws if memory or randomness is missing.
    public init() throws(TlsFault) {
        guard let pointer = authority_make_key() else { throw .material("OpenSSL cannot make a key") }
        self.pointer = pointer
    }

    /// Reads the first private key in PEM; `nil` without one on this curve.
    public init?(pem: [UInt8]) {
        guard let pointer = certify_read_key(pem, pem.count) else { return nil }
        self.pointer = pointer
    }

    deinit { EVP_PKEY_free(pointer) }

    /// The private key in PEM.
    public var pem: [UInt8] {
        CertificateKey.collect { certify_write_key(pointer, takePart, $0) } ?? []
    }

    /// The coordinates of the public point.
    public var point: (x: [UInt8], y: [UInt8]) {
        var bytes = [UInt8](repeating: 0, count: 64)
        guard certify_point(pointer, &bytes) == 1 else { return ([], []) }
        return (Array(bytes[..<32]), Array(bytes[32...]))
    }

    /// The ES256 signature over the bytes: 64 bytes. RFC 7518 §3.4. `nil` if memory or randomness is missing.
    public func sign(_ bytes: [UInt8]) -> [UInt8]? {
        var signature = [UInt8](repeating: 0, count: 64)
        return certify_sign(pointer, bytes, bytes.count, &signature) == 1 ? signature : nil
    }

    /// A request for a certificate for these DNS names and this key, in DER. RFC 2986. `nil` on failure.
    public func makeRequest(for names: [String]) -> [UInt8]? {
        let texts = names.map { strdup($0) }
        defer { for text in texts { free(text) } }
        return (texts.map { UnsafePointer($0) } + [nil]).withUnsafeBufferPointer { list in
            CertificateKey.collect { certify_request(pointer, list.baseAddress, takePart, $0) }
        }
    }

    /// A self-signed certificate for a DNS name, with this key: for use until there is another. `nil` on failure.
    public func selfSigned(for name: String, days: Int = 7) -> TlsIdentity? {
        identity(name, days: days, digest: nil)
    }

    /// The certificate for a tls-alpn-01 challenge, with the digest of the key authorization. RFC 8737 §3.
    func challengeIdentity(for name: String, digest: [UInt8]) -> TlsIdentity? {
        guard digest.count == 32 else { return nil }
        return identity(name, days: 7, digest: digest)
    }

    private func identity(_ name: String, days: Int, digest: [UInt8]?) -> TlsIdentity? {
        let chain = CertificateKey.collect {
            certify_self(pointer, name, Int32(clamping: days), digest, takePart, $0)
        }
        return chain.map {
            TlsIdentity(
                chain: TlsFile(name: "the certificate of \(name)", bytes: $0),
                key: TlsFile(name: "the key of \(name)", bytes: pem))
        }
    }

    /// The HMAC of the bytes with SHA-256. RFC 2104. `nil` if memory is exhausted.
    public static func hmac(_ bytes: [UInt8], key: [UInt8]) -> [UInt8]? {
        guard !key.isEmpty, let secret = jose_hmac_make(key, key.count) else { return nil }
        defer { jose_hmac_free(secret) }
        var mac = [UInt8](repeating: 0, count: 32)
        jose_hmac_sha256(secret, bytes, bytes.count, &mac)
        return mac
    }

    /// Collects the output of a C function, which is delivered piece by piece; `nil` if it fails.
    static func collect(_ body: (UnsafeMutableRawPointer) -> Int32) -> [UInt8]? {
        var bytes: [UInt8] = []
        let isDone = withUnsafeMutablePointer(to: &bytes) { body($0) } == 1
        return isDone ? bytes : nil
    }
}

/// Appends a piece to the array of `collect`.
func takePart(_ argument: UnsafeMutableRawPointer?, _ bytes: UnsafePointer<UInt8>?, _ count: Int) {
    argument?.assumingMemoryBound(to: [UInt8].self).pointee.append(
        contentsOf: UnsafeBufferPointer(start: bytes, count: count))
}
