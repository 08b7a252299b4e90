import COpenSSL

/// The SHA-256 digest of bytes that arrive in pieces.
public final class RunningDigest256 {
    private let context: OpaquePointer

    /// `nil` if memory is exhausted.
    public init?() {
        guard let context = EVP_MD_CTX_new() else { return nil }
        self.context = context
        guard EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1 else { return nil }
    }

    deinit { EVP_MD_CTX_free(context) }

    /// Adds the next piece.
    public func add(_ bytes: UnsafeRawBufferPointer) { EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) }

    /// The digest of all pieces in hexadecimal digits. Call this once.
    public func finish() -> String {
        var digest = [UInt8](repeating: 0, count: 32)
        EVP_DigestFinal_ex(context, &digest, nil)
        return Hex.text(digest)
    }
}
