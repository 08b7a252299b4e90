import COpenSSL

/// A SHA-1 digest (FIPS 180-4), only for protocols that need it as an identifier. It provides no security.
public struct Sha1Digest {
    /// The 20 bytes.
    let bytes: [UInt8]

    public init(of text: some Sequence<UInt8>) {
        let text = Array(text)
        var digest = [UInt8](repeating: 0, count: Int(SHA_DIGEST_LENGTH))
        SHA1(text, text.count, &digest)
        bytes = digest
    }

    /// The 40 hexadecimal digits, in lower case.
    public var hex: String { Hex.text(bytes) }
}
