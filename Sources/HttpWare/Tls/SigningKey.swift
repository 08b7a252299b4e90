import COpenSSL
import COpenSSLShims

/// A private key for signing. RFC 7518 §3, RFC 8037 §3.1.
///
/// Immutable, and usable from any thread.
// @unchecked Sendable: OpenSSL's keys count their references atomically, and signing does not change a key.
public final class SigningKey: @unchecked Sendable {
    /// The kind determines the key's algorithms. An RSA key may be limited to PSS: RFC 4055 §1.2.
    public let kind: VerifyingKey.Kind
    private let isForPssOnly: Bool
    private let key: OpaquePointer

    /// The maximum length of a signature in bytes: that of the largest RSA key.
    private static let longestSignature = VerifyingKey.rsaBits.upperBound / 8

    /// Reads the private key in a PEM text; `nil` without a key of a supported kind and size, or if it needs a passphrase.
    public init?(pem: String) {
        var pem = pem
        let read = pem.withUTF8 { text in
            text.withMemoryRebound(to: CChar.self) {
                jose_read_private_pem($0.baseAddress, Int32(clamping: $0.count))
            }
        }
        guard let read else { return nil }
        let number = jose_key_kind(read)
        let kind: VerifyingKey.Kind? =
            switch number {
            case 1, 5: VerifyingKey.rsaBits.contains(Int(jose_key_bits(read))) ? .rsa : nil
            case 2: .p256
            case 3: .p384
            case 4: .ed25519
            case 6: .p521
            default: nil
            }
        guard let kind else {
            EVP_PKEY_free(read)
            return nil
        }
        self.kind = kind
        isForPssOnly = number == 5
        key = read
    }

    deinit { EVP_PKEY_free(key) }

    /// Whether the key can sign with this algorithm.
    public func canSign(by algorithm: VerifyingKey.Algorithm) -> Bool {
        algorithm.kind == kind && (!isForPssOnly || ![.rs256, .rs384, .rs512].contains(algorithm))
    }

    /// The signature of the bytes; `nil` for an algorithm of another kind of key. ECDSA gives R followed by S.
    public func sign(_ bytes: UnsafeRawBufferPointer, by algorithm: VerifyingKey.Algorithm) -> [UInt8]? {
        guard canSign(by: algorithm), let way = algorithm.way else { return nil }
        let input = bytes.bindMemory(to: UInt8.self)
        let signature = [UInt8](unsafeUninitializedCapacity: SigningKey.longestSignature) { room, count in
            count = jose_sign(
                key, Int32(way.rawValue), input.baseAddress, input.count, room.baseAddress, room.count)
        }
        return signature.isEmpty ? nil : signature
    }
}

/// A secret that authenticates bytes: HMAC with SHA-256 (RFC 2104). Immutable, and usable from any thread.
// @unchecked Sendable: the object behind the pointer is only read.
public final class HmacKey256: @unchecked Sendable {
    private let key: OpaquePointer

    /// `nil` if memory is exhausted.
    public init?(_ secret: UnsafeRawBufferPointer) {
        let bytes = secret.bindMemory(to: UInt8.self)
        guard let made = jose_hmac_make(bytes.baseAddress, bytes.count) else { return nil }
        key = made
    }

    deinit { jose_hmac_free(key) }

    /// The authentication code of the bytes. Allocates nothing.
    public func code(of bytes: UnsafeRawBufferPointer) -> Digest256 {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 32) { code in
            let input = bytes.bindMemory(to: UInt8.self)
            jose_hmac_sha256(key, input.baseAddress, input.count, code.baseAddress)
            return Digest256(code: code)
        }
    }
}

extension Digest256 {
    /// The SHA-512 digest of the bytes. FIPS 180-4.
    public static func sha512(of bytes: UnsafeRawBufferPointer) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 64) { room, count in
            SHA512(bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count, room.baseAddress)
            count = 64
        }
    }

    /// The SHA-384 digest of the bytes. FIPS 180-4.
    public static func sha384(of bytes: UnsafeRawBufferPointer) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 48) { room, count in
            SHA384(bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count, room.baseAddress)
            count = 48
        }
    }
}
