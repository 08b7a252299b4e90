import COpenSSL
import COpenSSLShims

/// The identity of a client, from its verified certificate.
public struct TlsClientIdentity: Sendable, Equatable {
    /// The subject, in the format of RFC 2253: `CN=anna,O=Example`.
    public let subject: String
    /// The subject alternative names with their types, separated by commas: `DNS:a.test,URI:spiffe://x/y,IP:192.0.2.1`.
    ///
    /// Characters that could imitate another name are percent-encoded: commas, spaces, and everything except visible ASCII.
    public let alternativeNames: String
    /// Identifies the client: a digest of the certificate's issuer, subject and alternative names, which a renewed certificate
    /// keeps. If the certificate has neither a subject nor such names, a digest of the certificate.
    public let digest: Digest256

    /// Makes an identity for tests, with these names.
    public init(subject: String, alternativeNames: String = "", issuer: String = "") {
        self.subject = subject
        self.alternativeNames = alternativeNames
        digest = Digest256(of: ["tls", issuer, subject, alternativeNames])
    }

    /// Reads a certificate.
    init(_ certificate: OpaquePointer) {
        subject = TlsClientIdentity.subject(of: certificate)
        var names: [String] = []
        TlsClientIdentity.each(certificate) { type, bytes in
            names.append("\(type):\(Self.text(type, bytes))")
        }
        alternativeNames = names.joined(separator: ",")
        digest = TlsClientIdentity.digest(certificate)
    }

    /// The subject of a certificate, in the format of RFC 2253.
    static func subject(of certificate: OpaquePointer) -> String {
        var subject = ""
        withUnsafeMutablePointer(to: &subject) { copenssl_subject(certificate, takeText, $0) }
        return subject
    }

    /// The issuer of a certificate, in the same format.
    static func issuer(of certificate: OpaquePointer) -> String {
        var issuer = ""
        withUnsafeMutablePointer(to: &issuer) { copenssl_issuer(certificate, takeText, $0) }
        return issuer
    }

    /// An alternative name of that type, in the format of `alternativeNames`.
    static func text(_ type: String, _ bytes: UnsafeBufferPointer<UInt8>) -> String {
        type == "IP" ? address(bytes) : visible(bytes)
    }

    private static func digest(_ certificate: OpaquePointer) -> Digest256 {
        let start = Digest256(of: ["tls"])
        let place = X509_get_ext_by_NID(certificate, NID_subject_alt_name, -1)
        let names = place < 0 ? nil : X509_EXTENSION_get_data(X509_get_ext(certificate, place))
        guard X509_NAME_entry_count(X509_get_subject_name(certificate)) > 0 || names != nil else {
            return encoded(start) { i2d_X509(certificate, $0) }
        }
        let issuer = encoded(start) { i2d_X509_NAME(X509_get_issuer_name(certificate), $0) }
        let subject = encoded(issuer) { i2d_X509_NAME(X509_get_subject_name(certificate), $0) }
        return subject.followed(
            by: UnsafeRawBufferPointer(
                start: names.flatMap { ASN1_STRING_get0_data($0) },
                count: names.map { Int(ASN1_STRING_length($0)) } ?? 0))
    }

    /// The digest, followed by the output of an OpenSSL function, which returns only the length if it gets no buffer.
    private static func encoded(
        _ digest: Digest256, _ write: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32
    ) -> Digest256 {
        var bytes = [UInt8](repeating: 0, count: max(0, Int(write(nil))))
        bytes.withUnsafeMutableBufferPointer { bytes in
            var place = bytes.baseAddress
            if !bytes.isEmpty { _ = write(&place) }
        }
        return bytes.withUnsafeBytes { digest.followed(by: $0) }
    }

    private static func address(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
        func number(_ range: Range<Int>) -> UInt64 { bytes[range].reduce(0) { $0 << 8 | UInt64($1) } }
        return switch bytes.count {
        case 4: IPAddress(ipv4: UInt32(number(0..<4))).description
        case 16: IPAddress(ipv6: number(0..<8), number(8..<16)).description
        default: visible(bytes)
        }
    }

    private static func visible(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
        let text = PercentText.encoded(bytes) {
            $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: "%")
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Calls the body with each alternative name and its type.
    ///
    /// The names are copied first: `withoutActuallyEscaping` would put the length of this file's path into the program.
    static func each(_ certificate: OpaquePointer, _ body: (String, UnsafeBufferPointer<UInt8>) -> Void) {
        var names: [AlternativeName] = []
        withUnsafeMutablePointer(to: &names) { copenssl_each_name(certificate, takeName, $0) }
        for name in names { name.bytes.withUnsafeBufferPointer { body(name.type, $0) } }
    }
}

private struct AlternativeName {
    let type: String
    let bytes: [UInt8]
}

private func takeName(
    _ argument: UnsafeMutableRawPointer?, _ type: UnsafePointer<CChar>?, _ bytes: UnsafePointer<UInt8>?, _ count: Int
) -> Int32 {
    guard let argument, let type else { return 0 }
    argument.assumingMemoryBound(to: [AlternativeName].self).pointee.append(
        AlternativeName(
            type: String(cString: type),
            bytes: Array(UnsafeBufferPointer(start: bytes, count: bytes == nil ? 0 : count))))
    return 1
}

private func takeText(_ argument: UnsafeMutableRawPointer?, _ bytes: UnsafePointer<UInt8>?, _ count: Int) {
    guard let argument, let bytes else { return }
    argument.assumingMemoryBound(to: String.self).pointee = String(
        decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
}
