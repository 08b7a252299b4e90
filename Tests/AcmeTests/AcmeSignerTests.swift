import HttpWare
import Testing

@testable import Acme
@testable import Credentials

@Suite struct AcmeSignerTests {
    /// Whether the text was signed by the public key.
    static func isSigned(_ text: String, _ signature: String, by key: JsonValue) -> Bool {
        func bytes(_ text: String?) -> [UInt8] { Base64.decodeUrl(Array((text ?? "").utf8)) ?? [] }
        guard let checker = VerifyingKey(curve: .p256, x: bytes(key["x"]?.string), y: bytes(key["y"]?.string)) else {
            return false
        }
        return Array(text.utf8).withUnsafeBytes { text in
            bytes(signature).withUnsafeBytes { checker.isSignature($0, of: text, by: .es256) }
        }
    }

    /// RFC 7638 §3: the members that are needed, in order, without white space.
    static func thumbprint(of key: JsonValue) -> String {
        let x = key["x"]?.string ?? ""
        let y = key["y"]?.string ?? ""
        return Base64.encodeUrl(Array("{\"crv\":\"P-256\",\"kty\":\"EC\",\"x\":\"\(x)\",\"y\":\"\(y)\"}".utf8).sha256)
    }

    private static func part(_ json: JsonValue, _ name: String) throws -> JsonValue {
        try JsonValue(try #require(Base64.decodeUrl(Array((json[name]?.string ?? "").utf8))))
    }

    @Test func `a request is signed with nonce, URL and account`() throws {
        let signer = AcmeSigner(key: try CertificateKey())
        let made = try #require(
            signer.sign(.object([("a", 1)]), url: "https://ca.test/x", nonce: "n", by: .account("https://ca.test/1")))
        let json = try JsonValue(made.bytes)
        let head = try Self.part(json, "protected")
        #expect(head.json == #"{"alg":"ES256","kid":"https://ca.test/1","nonce":"n","url":"https://ca.test/x"}"#)
        #expect(try Self.part(json, "payload").json == #"{"a":1}"#)
        let text = "\(json["protected"]?.string ?? "").\(json["payload"]?.string ?? "")"
        let key = try JsonValue(signer.webKey.bytes)
        #expect(Self.isSigned(text, json["signature"]?.string ?? "", by: key))
        #expect(!Self.isSigned(text + "x", json["signature"]?.string ?? "", by: key))
    }

    @Test func `a POST-as-GET has an empty payload, and a new account shows its key`() throws {
        let signer = AcmeSigner(key: try CertificateKey())
        let json = try JsonValue(try #require(signer.sign(nil, url: "https://ca.test/x", nonce: "n", by: .key)).bytes)
        #expect(json["payload"]?.string == "")
        #expect(try Self.part(json, "protected")["jwk"] == JsonValue(signer.webKey.bytes))
    }

    @Test func `a key authorization is the token and the thumbprint of the key`() throws {
        let signer = AcmeSigner(key: try CertificateKey())
        let thumbprint = Self.thumbprint(of: try JsonValue(signer.webKey.bytes))
        #expect(signer.keyAuthorization(of: "token") == "token.\(thumbprint)")
    }

    @Test(arguments: [
        "", "short", "abcdefghijklmnop/..", "abcdefghijklmnop=", "abcdefghijklmnop qr", "äabcdefghijklmnop",
    ])
    func `a token that is not base64url, or short, is refused`(text: String) {
        #expect(!AcmeAuthorization.isToken(text))
        #expect(AcmeAuthorization.isToken(TestAuthority.token))
    }

    @Test(arguments: [
        "*.a.test", "a", "a.test.", "-a.test", "a-.test", "a..test", "A.test", "192.0.2.1", "a_b.test", "ä.test", "",
        String(repeating: "a", count: 64) + ".test", "a.test/..", "a\0.test",
    ])
    func `a name that no certificate can be ordered for is refused`(name: String) {
        #expect(!AcmeSettings.isDomain(name))
        #expect(AcmeSettings.isDomain("xn--bcher-kva.example.com"))
    }
}
