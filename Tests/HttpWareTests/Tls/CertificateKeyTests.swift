import Testing

@testable import HttpWare

@Suite struct CertificateKeyTests {
    @Test func `a signature is checked by the public point, and by no other`() throws {
        let key = try CertificateKey()
        let bytes = Array("header.payload".utf8)
        let signature = try #require(key.sign(bytes))
        #expect(signature.count == 64)
        for (signer, isRight) in [(key, true), (try CertificateKey(), false)] {
            let point = signer.point
            let checker = try #require(VerifyingKey(curve: .p256, x: point.x, y: point.y))
            let isGood = signature.withUnsafeBytes { signature in
                bytes.withUnsafeBytes { checker.isSignature(signature, of: $0, by: .es256) }
            }
            #expect(isGood == isRight)
        }
    }

    @Test func `a key is the same after it was written and read`() throws {
        let key = try CertificateKey()
        let again = try #require(CertificateKey(pem: key.pem))
        #expect(again.point == key.point)
        #expect(!key.pem.isEmpty)
    }

    @Test func `bytes that are not a key on P-256 are refused`() throws {
        #expect(CertificateKey(pem: []) == nil)
        #expect(
            CertificateKey(pem: Array("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n".utf8)) == nil)
        #expect(CertificateKey(pem: TestCertificates.shared.file("rsa.key").bytes) == nil)
        #expect(CertificateKey(pem: TestCertificates.shared.file("locked.key").bytes) == nil)
        #expect(CertificateKey(pem: Array(repeating: 65, count: 100_000)) == nil)
    }

    @Test func `a request has the names`() throws {
        let request = try #require(try CertificateKey().makeRequest(for: ["a.test", "b.test"]))
        let text = try TestCertificates.shared.ask(["req", "-inform", "DER", "-noout", "-text"], request)
        #expect(text.contains("DNS:a.test, DNS:b.test"))
    }

    @Test func `a certificate says for what renewal information is asked`() throws {
        let facts = try CertificateFacts(TestCertificates.shared.file("a.pem"))
        #expect(facts.names == ["a.test", "www.a.test"])
        #expect(facts.issuer == "CN=ca")
        #expect(facts.end - facts.start == .seconds(30 * 86_400))
        let text = try TestCertificates.shared.ask(
            ["x509", "-noout", "-serial", "-ext", "authorityKeyIdentifier"], TestCertificates.shared.file("a.pem").bytes
        )
        let parts = try #require(facts.renewalId).split(separator: ".").map { Base64.decodeUrl(Array($0.utf8)) ?? [] }
        #expect(parts.count == 2)
        let hex = parts.map { $0.map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) } }
        #expect(text.contains(hex[0].joined(separator: ":")))
        #expect("00\(text)".contains(hex[1].drop { $0 == "00" }.joined()))
    }

    /// RFC 4231 §4.3.
    @Test func `HMAC is that of the test case`() {
        let mac = CertificateKey.hmac(Array("what do ya want for nothing?".utf8), key: Array("Jefe".utf8))
        #expect(mac?.prefix(4) == [0x5b, 0xdc, 0xc1, 0x46])
        #expect(CertificateKey.hmac([1], key: []) == nil)
    }
}
