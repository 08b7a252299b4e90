import COpenSSL
import Synchronization

/// A key that seals small texts, so that nobody without it can read, change or make them: AES-256 in GCM (NIST SP 800-38D), each text
/// with a random nonce.
///
/// To seal or to open takes about a microsecond: what is sealed or opened for each request is better remembered. A key seals at most
/// 2^32 texts, so few that no nonce is likely to come twice.
public final class SealingKey: Sendable {
    /// The bytes that sealing adds: the nonce before the text, and the tag behind it.
    public static let overhead = 12 + 16

    private let bytes: [UInt8]

    /// Fetched once, because otherwise OpenSSL 3 looks the cipher up by name for every use.
    ///
    /// Unchecked: the pointer never changes, and what it points to is immutable and is never freed; any thread may use it.
    nonisolated(unsafe) private static let cipher: OpaquePointer? = EVP_CIPHER_fetch(nil, "AES-256-GCM", nil)

    /// The key of a secret, for one purpose: the same secret gives other purposes other keys.
    public init(_ secret: [UInt8], for purpose: String) {
        bytes = secret.withUnsafeBytes { Digest256(of: ["sealing", purpose]).followed(by: $0) }.bytes
    }

    /// The text, sealed. It can be opened only with the same context, which is no part of it. `nil` without memory or randomness.
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

    /// The text that was sealed by this key with this context; `nil` for anything else. The time depends on the number of bytes only.
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
            // What was made of the text so far counts only if the tag is the right one.
            EVP_DecryptFinal_ex(machine, &rest, &count) == 1
        else { return nil }
        return text
    }
}

/// A secret that the process has made, for what need not outlive it. An upgrade hands it to the process that goes on in its place.
public enum ProcessSecret {
    /// How many bytes it has.
    public static let count = 32

    /// Made when it is first asked for. Guarded by itself.
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

    /// Takes the secret of the process in whose place this one goes on. Does nothing once this one has a secret of its own.
    public static func adopt(_ secret: [UInt8]) {
        guard secret.count == count else { return }
        made.withLock { made in if made == nil { made = secret } }
    }
}
