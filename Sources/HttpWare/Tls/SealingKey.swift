import COpenSSL
import Synchronization

/// A key that seals small texts, so that only its holders can read, change or make them: AES-256 in GCM (NIST SP 800-38D), each text
/// with a random nonce.
///
/// Sealing or opening takes about a microsecond, so results that are needed for each request should be cached. A key may seal at most
/// 2^32 texts; beyond that, a repeated nonce becomes too likely.
public final class SealingKey: Sendable {
    /// The number of bytes that sealing adds: the nonce before the text, and the tag after it.
    public static let overhead = 12 + 16

    private let bytes: [UInt8]

    /// Fetched once, because otherwise OpenSSL 3 looks up the cipher by name for every use.
    ///
    /// Unchecked: the pointer is constant, and its object is immutable and never freed; any thread may use it.
    nonisolated(unsafe) private static let cipher: OpaquePointer? = EVP_CIPHER_fetch(nil, "AES-256-GCM", nil)

    /// Derives a key from a secret for one purpose: other purposes get other keys from the same secret.
    public init(_ secret: [UInt8], for purpose: String) {
        bytes = secret.withUnsafeBytes { Digest256(of: ["sealing", purpose]).followed(by: $0) }.bytes
    }

    /// The sealed text. It can be opened only with the same context, which is not contained in it. `nil` if memory or randomness is
    /// missing.
    public func seal(_ text: [UInt8], context: [UInt8]) -> [UInt8]? {
        var sealed = [UInt8](repeating: 0, count: text.count + SealingKey.overhead)
        guard RAND_bytes(&sealed, 12) == 1, let machine = EVP_CIPHER_CTX_new() else { return nil }
        defer { EVP_CIPHER_CTX_free(machine) }
        var count: Int32 = 0
        let nonce = Array(sealed[..<12])
        guard EVP_EncryptInit_ex2(machine, SealingKey.cipher, bytes, nonce, nil) == 1,
            EVP_EncryptUpdate(machine, nil, &count, context, Int32(truncatingIfNeeded: context.count)) == 1
        else { return nil }
        let isSealed = sealed.withUnsafeMutableBufferPointer { sealed -> Bool in
            guard let start = sealed.baseAddress else { return false }
            return EVP_EncryptUpdate(machine, start + 12, &count, text, Int32(truncatingIfNeeded: text.count)) == 1
                && EVP_EncryptFinal_ex(machine, start + 12 + text.count, &count) == 1
                && EVP_CIPHER_CTX_ctrl(machine, EVP_CTRL_AEAD_GET_TAG, 16, start + 12 + text.count) == 1
        }
        return isSealed ? sealed : nil
    }

    /// The text that was sealed with this key and context; `nil` for anything else. The time depends only on the number of bytes.
    public func open(_ sealed: [UInt8], context: [UInt8]) -> [UInt8]? {
        let textCount = sealed.count - SealingKey.overhead
        guard textCount > 0, let machine = EVP_CIPHER_CTX_new() else { return nil }
        defer { EVP_CIPHER_CTX_free(machine) }
        var text = [UInt8](repeating: 0, count: textCount)
        var tag = Array(sealed[(12 + textCount)...])
        var count: Int32 = 0
        let inner = Array(sealed[12..<(12 + textCount)])
        var rest = [UInt8](repeating: 0, count: 16)
        guard EVP_DecryptInit_ex2(machine, SealingKey.cipher, bytes, sealed, nil) == 1,
            EVP_DecryptUpdate(machine, nil, &count, context, Int32(truncatingIfNeeded: context.count)) == 1,
            EVP_DecryptUpdate(machine, &text, &count, inner, Int32(truncatingIfNeeded: textCount)) == 1,
            EVP_CIPHER_CTX_ctrl(machine, EVP_CTRL_AEAD_SET_TAG, 16, &tag) == 1,
            // The decrypted text is valid only if the tag is correct.
            EVP_DecryptFinal_ex(machine, &rest, &count) == 1
        else { return nil }
        return text
    }
}

/// A secret of the process, for data that need not outlive it. An upgrade hands it to the new process.
public enum ProcessSecret {
    /// The length in bytes.
    public static let count = 32

    /// Created on first use. A mutex guards it.
    private static let made = Mutex<[UInt8]?>(nil)

    /// The secret.
    public static var bytes: [UInt8] {
        made.withLock { made in
            if let made { return made }
            var random = SystemRandomNumberGenerator()
            let new = (0..<(count / 8)).flatMap { _ in withUnsafeBytes(of: random.next() as UInt64) { Array($0) } }
            made = new
            return new
        }
    }

    /// Takes over the secret of the previous process. Does nothing if this process already has its own.
    public static func adopt(_ secret: [UInt8]) {
        guard secret.count == count else { return }
        made.withLock { made in if made == nil { made = secret } }
    }
}
