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
        case rsa, p256, p384, p521, ed25519, secret
    }

    /// A signature algorithm. RFC 7518 §3.1, RFC 8037 §3.1.
    public enum Algorithm: String, OptionWord {
        case rs256 = "RS256"
        case rs384 = "RS384"
        case rs512 = "RS512"
        case ps256 = "PS256"
        case ps384 = "PS384"
        case ps512 = "PS512"
        case es256 = "ES256"
        case es384 = "ES384"
        case es512 = "ES512"
        case edDSA = "EdDSA"
        case hs256 = "HS256"
        case hs384 = "HS384"
        case hs512 = "HS512"

        /// The kind of key that it needs.
        public var kind: Kind {
            switch self {
            case .rs256, .rs384, .rs512, .ps256, .ps384, .ps512: .rsa
            case .es256: .p256
            case .es384: .p384
            case .es512: .p521
            case .edDSA: .ed25519
            case .hs256, .hs384, .hs512: .secret
            }
        }

        /// The size of its digest in bytes. Ed25519 uses SHA-512: RFC 8032 §5.1.
        public var digestSize: Int {
            switch self {
            case .rs256, .ps256, .es256, .hs256: 32
            case .rs384, .ps384, .es384, .hs384: 48
            case .rs512, .ps512, .es512, .hs512, .edDSA: 64
            }
        }

        /// The algorithm of OpenSSL; `nil` for a secret.
        var way: jose_algorithm? {
            switch self {
            case .rs256: JOSE_RS256
            case .rs384: JOSE_RS384
            case .rs512: JOSE_RS512
            case .ps256: JOSE_PS256
            case .ps384: JOSE_PS384
            case .ps512: JOSE_PS512
            case .es256: JOSE_ES256
            case .es384: JOSE_ES384
            case .es512: JOSE_ES512
            case .edDSA: JOSE_EDDSA
            case .hs256, .hs384, .hs512: nil
            }
        }
    }

    public let kind: Kind
    private let key: OpaquePointer?
    private let secret: OpaquePointer?
    /// The secret for SHA-384 and SHA-512, if it is long enough for them.
    private let secret384: OpaquePointer?
    private let secret512: OpaquePointer?
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
    /// The minimum length of a secret in bytes. RFC 7518 §3.2: "A key of the same size as the hash output … or larger MUST be used", so
    /// HS384 needs 48 bytes, and HS512 64.
    public static let leastSecret = 32

    /// Makes a public RSA key; `nil` if it is malformed, or outside `rsaBits`.
    public convenience init?(rsaModulus modulus: [UInt8], exponent: [UInt8]) {
        guard modulus.count <= Self.rsaBits.upperBound / 8, exponent.count <= 8 else { return nil }
        self.init(jose_rsa_key(modulus, modulus.count, exponent, exponent.count))
    }

    /// Makes a public key on P-256, P-384 or P-521 from its coordinates; `nil` if they are not on the curve.
    public convenience init?(curve: Kind, x: [UInt8], y: [UInt8]) {
        let name: String
        let size: Int
        switch curve {
        case .p256: (name, size) = ("P-256", 32)
        case .p384: (name, size) = ("P-384", 48)
        case .p521: (name, size) = ("P-521", 66)
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

    /// Makes a secret for HMAC; `nil` if it is shorter than 32 or longer than 4,096 bytes.
    public init?(secret: [UInt8]) {
        guard secret.count >= Self.leastSecret, secret.count <= 4096,
            let made = jose_hmac_make(secret, secret.count)
        else { return nil }
        kind = .secret
        key = nil
        self.secret = made
        secret384 = secret.count >= 48 ? jose_hmac_long_make(secret, secret.count, 48) : nil
        secret512 = secret.count >= 64 ? jose_hmac_long_make(secret, secret.count, 64) : nil
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
            case 6: .p521
            default: nil
            }
        guard let kind else {
            EVP_PKEY_free(key)
            return nil
        }
        self.kind = kind
        self.key = key
        secret = nil
        secret384 = nil
        secret512 = nil
    }

    deinit {
        checkers.withLock { checkers in
            for checker in checkers { EVP_PKEY_CTX_free(checker.context) }
        }
        EVP_PKEY_free(key)
        if let secret { jose_hmac_free(secret) }
        if let secret384 { jose_hmac_long_free(secret384) }
        if let secret512 { jose_hmac_long_free(secret512) }
    }

    /// Whether the key can check signatures of this algorithm: it is of its kind, and a secret is long enough.
    public func isFor(_ algorithm: Algorithm) -> Bool {
        switch algorithm {
        case .hs384: secret384 != nil
        case .hs512: secret512 != nil
        default: algorithm.kind == kind
        }
    }

    /// Whether the signature over the bytes was made with this key and algorithm. False for an algorithm of another kind of key.
    public func isSignature(
        _ signature: UnsafeRawBufferPointer, of bytes: UnsafeRawBufferPointer, by algorithm: Algorithm
    ) -> Bool {
        guard isFor(algorithm) else { return false }
        let signature = signature.bindMemory(to: UInt8.self)
        let bytes = bytes.bindMemory(to: UInt8.self)
        guard let way = algorithm.way else {
            guard signature.count == algorithm.digestSize else { return false }
            return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 64) { mac in
                if algorithm == .hs256 {
                    guard let secret else { return false }
                    jose_hmac_sha256(secret, bytes.baseAddress, bytes.count, mac.baseAddress)
                } else {
                    guard let secret = algorithm == .hs384 ? secret384 : secret512 else { return false }
                    jose_hmac_long(secret, bytes.baseAddress, bytes.count, mac.baseAddress)
                }
                return jose_equal(mac.baseAddress, signature.baseAddress, signature.count) == 1
            }
        }
        if algorithm == .edDSA {
            return jose_check_edwards(key, bytes.baseAddress, bytes.count, signature.baseAddress, signature.count) == 1
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
