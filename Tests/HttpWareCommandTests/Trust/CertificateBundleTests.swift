import Foundation
import HttpWare
import Testing

@testable import HttpWareCommand

@Suite struct CertificateBundleTests {
    private static func certificate(_ byte: UInt8, count: Int = 300) -> [UInt8] {
        [0x30] + [UInt8](repeating: byte, count: count)
    }

    private static func bundle(_ certificates: [[UInt8]]) -> CertificateBundle {
        var bundle = CertificateBundle()
        for certificate in certificates { bundle.add(certificate) }
        return bundle
    }

    @Test func `certificates in PEM are read again as they were, each once`() {
        let written = Self.bundle([Self.certificate(1), Self.certificate(2), Self.certificate(1)])
        #expect(written.certificates.count == 2)
        var read = CertificateBundle()
        let hasAny = read.add(pem: "# a comment\r\n" + written.pem.replacing("\n", with: "\r\n") + "the end")
        #expect(hasAny)
        #expect(read.certificates == written.certificates)
    }

    @Test func `text that is not a certificate adds nothing`() {
        var bundle = CertificateBundle()
        let texts = [
            "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n",
            "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n-----BEGIN CERTIFICATE-----\n",
        ]
        let answers = texts.map { bundle.add(pem: $0) } + ["/nonexistent", "/dev/null"].map { bundle.add(path: $0) }
        #expect(!answers.contains(true))
        #expect(bundle.certificates.isEmpty)
    }

    @Test func `a trust store for Java holds every certificate, and is read again`() {
        let certificates = [Self.certificate(1, count: 50), Self.certificate(2), Self.certificate(3, count: 70_000)]
        let store = JavaTrustStore.pkcs12(certificates)
        #expect(JavaTrustStore.certificates(store) == certificates)
    }

    @Test func `a trust store in Java's own kind is read`() {
        let certificate = Self.certificate(7)
        let entry: [UInt8] =
            [0, 0, 0, 2, 0, 1, 0x61] + [UInt8](repeating: 0, count: 8) + [0, 5] + Array("X.509".utf8) + [0, 0, 1, 45]
            + certificate
        let store = [0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 2, 0, 0, 0, 1] + entry + [UInt8](repeating: 0, count: 20)
        #expect(JavaTrustStore.certificates(store) == [certificate])
        for length in 0..<(store.count - 20) {
            let cut = JavaTrustStore.certificates(Array(store[..<length]))
            #expect(cut?.isEmpty ?? true, "\(length) bytes")
        }
    }

    @Test func `a store that is encrypted or cut off cannot be read, and traps nothing`() {
        let store = JavaTrustStore.pkcs12([Self.certificate(1)])
        for length in store.indices {
            #expect((JavaTrustStore.certificates(Array(store[..<length])) ?? []).isEmpty || length > 300)
        }
        #expect(JavaTrustStore.certificates([0x30, 0x80, 0, 0]) == nil)
    }

    @Test(arguments: [("plain/path.pem", "plain/path.pem"), ("", "''"), ("a b", "'a b'"), ("it's", #"'it'\''s'"#)])
    func `words are quoted for a shell`(word: String, quoted: String) {
        #expect(CommandText.quoted(word) == quoted)
    }
}
