import COpenSSL

/// A SHA-1 digest (FIPS 180-4): a name for bytes where a protocol asks for it. It protects nothing.
public struct Sha1Digest {
    /// Twenty of them.
    let bytes: [UInt8]

    public init(of text: some Sequence<UInt8>) {
        let text = Array(text)
        var digest = [UInt8](repeating: 0, count: Int(SHA_DIGEST_LENGTH))
        SHA1(text, text.count, &digest)
        bytes = digest
    }

    /// Its 40 hexadecimal digits, in lower case.
    public var hex: String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
