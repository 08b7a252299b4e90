/// A pinned public key: the SHA-256 digest of a certificate's SubjectPublicKeyInfo, as RFC 7469 §2.4 defines it.
///
/// ```swift
/// var options = TlsContext.Client()
/// options.pins = [try PublicKeyPin("sha256/YLh1dUR9y6Kja30RrAn7JKnbQG/uEtLMkBgFF2Fuihg=")]
/// ```
///
/// `openssl x509 -in cert.pem -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64` prints the
/// digest. Pin at least two keys, so that the server can change to the second one.
public struct PublicKeyPin: Sendable, Hashable, CustomStringConvertible {
    let digest: [UInt8]

    /// Throws unless the text is `sha256/` with a digest in base64.
    public init(_ text: String) throws(TlsFault) {
        guard text.hasPrefix("sha256/"), let digest = Base64.decode(text.utf8.dropFirst(7)), digest.count == 32 else {
            throw TlsFault(.material, "\(text) is not a pin; write sha256/ and the key's digest in base64")
        }
        self.digest = digest
    }

    public var description: String { "sha256/" + Base64.encode(digest) }
}
