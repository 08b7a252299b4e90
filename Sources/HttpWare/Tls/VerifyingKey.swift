import COpenSSL
import COpenSSLShims
import Synchronization

/// A key for checking signatures: a public key, or a secret for HMAC. RFC 7518 §3, RFC 8037 §3.1.
///
/// Immutable, and usable from any thread.
// @unchecked Sendable: OpenSSL's keys count their references atomically, and verifying does not change a key. A
// secret is only read. A checker is used only by the thread that took it out of `checkers`.
public final class VerifyingKey: @unchecked Sendable {
    /// The kind, which determines the key's algorithms.
    public enum Kind: String, Sendable {
        case rsa, p256, p384, ed25519, secret
    }

    /// A signature algorithm. RFC 7518 §3.1, RFC 8037 §3.1.
    public enum Algorithm: String, OptionWord {
        case rs256 = "RS256"
        case ps256 = "PS256"
        case ps512 = "PS512"
        case es256 = "ES256"
        case es384 = "ES384"
        case edDSA = "EdDSA"
        case hs256 = "HS256"

        /// The kind of key that it needs.
        public var kind: Kind {
            switch self {
            case .rs256, .ps256, .ps512: .rsa
            case .es256: .p256
            case .es384: .p384
            case .edDSA: .ed25519
            case .hs256: .secret
            }
        }
    }

    public let kind: Kind
    private let key: OpaquePointer?
    private let secret: OpaquePointer?
    /// The idle checkers, by algorithm: as many as were ever used at the same time.
    private let checkers = Mutex<[Checker]>([])

    private struct Checker: @unchecked Sendable {
        // Unchecked: only the thread that took it out of the list uses it.
        let way: jose_algorithm
        let context: OpaquePointer
    }

    /// The allowed size of an RSA key in bits. RFC 7518 §3.3: "A key of size 2048 bits or larger MUST be used"; a check with
    /// 8,192 bits takes less than a millisecond.
    public static let rsaBits = 2048...8192
    /// The minimum length of a secret in bytes. RFC 7518 §3.2: "A key of the same size as the hash output … or larger MUST be used".
    public static let leastSecret = 32

    /// Makes a public RSA key; `nil` if it is malformed, or outside `rsaBits`.
    public convenience init?(rsaModulus modulus: [UInt8], exponent: [UInt8]) {
        guard modulus.count <= Self.rsaBits.upperBound / 8, exponent.count <= 8 else { return nil }
        self.init(jose_rsa_key(modulus, modulus.count, exponent, exponent.count))
    }

    /// Makes a public key on P-256 or P-384 from its coordinates; `nil` if they are not on the curve.
    public convenience init?(curve: Kind, x: [UInt8], y: [UInt8]) {
        let name: String
        let size: Int
        switch curve {
        case .p256: (name, size) = ("P-256", 32)
        case .p384: (name, size) = ("P-384", 48)
        default: return nil
        }
        guard x.count == size, y.count == size else { return nil }
        let point = [0x04] + x + y
        self.init(jose_curve_key(name, point, point.count))
    }

    /// Makes a public Ed25519 key; `nil` unless there are 32 bytes.
    public convenience init?(ed25519 bytes: [UInt8]) {
        guard bytes.count == 32 else { return nil }
        self.init(jose_edwards_key(bytes, bytes.count))
    }

    /// Reads the public key in a PEM text, or of its certificate; `nil` without a key of a supported kind and size.
    public convenience init?(pem: String) {
        var pem = pem
        self.init(
            pem.withUTF8 { text in
                text.withMemoryRebound(to: CChar.self) { jose_read_pem($0.baseAddress, Int32(clamping: $0.count)) }
            })
    }

    /// Makes a secret for HS256; `nil` if it is shorter than 32 or longer than 4,096 bytes.
    public init?(secret: [UInt8]) {
        guard secret.count >= Self.leastSecret, secret.count <= 4096,
            let made = jose_hmac_make(secret, secret.count)
        else { return nil }
        kind = .secret
        key = nil
        self.secret = made
    }

    /// Takes ownership of the key, even on failure.
    private init?(_ key: OpaquePointer?) {
        guard let key else { return nil }
        let kind: Kind? =
            switch jose_key_kind(key) {
            case 1: Self.rsaBits.contains(Int(jose_key_bits(key))) ? .rsa : nil
            case 2: .p256
            case 3: .p384
            case 4: .ed25519
            default: nil
            }
        guard let kind else {
            EVP_PKEY_free(key)
            return nil
        }
        self.kind = kind
        self.key = key
        secret = nil
    }

    deinit {
        checkers.withLock { checkers in
            for checker in checkers { EVP_PKEY_CTX_free(checker.context) }
        }
        EVP_PKEY_free(key)
        if let secret { jose_hmac_free(secret) }
    }

    /// Whether the signature over the bytes was made with this key and algorithm. False for an algorithm of another kind of key.
    public func isSignature(
        _ signature: UnsafeRawBufferPointer, of bytes: UnsafeRawBufferPointer, by algorithm: Algorithm
    ) -> Bool {
        guard algorithm.kind == kind else { return false }
        let signature = signature.bindMemory(to: UInt8.self)
        let bytes = bytes.bindMemory(to: UInt8.self)
        let way: jose_algorithm
        switch algorithm {
        case .rs256: way = JOSE_RS256
        case .ps256: way = JOSE_PS256
        case .ps512: way = JOSE_PS512
        case .es256: way = JOSE_ES256
        case .es384: way = JOSE_ES384
        case .edDSA:
            return jose_check_edwards(key, bytes.baseAddress, bytes.count, signature.baseAddress, signature.count) == 1
        case .hs256:
            guard let secret, signature.count == 32 else { return false }
            return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 32) { mac in
                jose_hmac_sha256(secret, bytes.baseAddress, bytes.count, mac.baseAddress)
                return jose_equal(mac.baseAddress, signature.baseAddress, 32) == 1
            }
        }
        guard let checker = takeChecker(way) else { return false }
        defer { checkers.withLock { $0.append(checker) } }
        return jose_check(
            checker.context, Int32(way.rawValue), bytes.baseAddress, bytes.count, signature.baseAddress,
            signature.count) == 1
    }

    private func takeChecker(_ way: jose_algorithm) -> Checker? {
        let idle = checkers.withLock { checkers in
            checkers.lastIndex { $0.way == way }.map { checkers.remove(at: $0) }
        }
        return idle ?? jose_checker(key, Int32(way.rawValue)).map { Checker(way: way, context: $0) }
    }
}
