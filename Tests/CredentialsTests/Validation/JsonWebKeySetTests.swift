import HttpWare
import Testing

@testable import Authentication
import Credentials

@Suite struct JsonWebKeySetTests {
    private func mistake(_ json: String, hasSecrets: Bool = false) -> String {
        do {
            _ = try JsonWebKeySet(json: json.utf8, hasSecrets: hasSecrets)
            return ""
        } catch {
            return error.description
        }
    }

    private static let secret = #"{"kty":"oct","k":"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY","kid":"s"}"#

    @Test func `the set of another library is read`() throws {
        let keys = try Fixture.keys().keys
        #expect(keys.map(\.key.kind) == [.rsa, .p256, .p384, .ed25519])
        #expect(keys.map(\.identifier) == ["rsa-1", "p256-1", "p384-1", "ed-1"])
    }

    @Test(arguments: ["rsa-1", "p256-1", "p384-1", "ed-1"])
    func `a PEM of another library is read`(name: String) throws {
        let key = try #require(VerifyingKey(pem: Fixture.text("\(name).pem")))
        let algorithm: VerifyingKey.Algorithm =
            switch key.kind {
            case .rsa: .rs256
            case .p256: .es256
            case .p384: .es384
            default: .edDSA
            }
        let token = Array(try Fixture.good("\(algorithm.rawValue) by PyJWT").utf8)
        let keys = JsonWebKeySet([JsonWebKey(key)])
        #expect(throws: Never.self) {
            var verifier = JwtVerifier()
            verifier.algorithms.append(.es384)
            _ = try verifier.verify(token, keys: keys, at: Fixture.now)
        }
    }

    @Test(arguments: [
        "", "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n",
        "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
    ])
    func `a PEM that holds no key is invalid`(pem: String) { #expect(VerifyingKey(pem: pem) == nil) }

    @Test func `RFC 7518 §3.3, RSA keys of less than 2048 bits are left out`() throws {
        #expect(mistake(try Fixture.text("weak.json")).contains("no usable key"))
    }

    @Test func `RFC 7518 §3.2, secrets of less than 32 bytes are invalid`() {
        #expect(VerifyingKey(secret: Array(repeating: 1, count: 31)) == nil)
        #expect(VerifyingKey(secret: Array(repeating: 1, count: 32)) != nil)
    }

    @Test func `secrets come from files only`() {
        #expect(mistake("{\"keys\":[\(Self.secret)]}").contains("no usable key"))
        #expect(mistake("{\"keys\":[\(Self.secret)]}", hasSecrets: true) == "")
    }

    @Test func `RFC 7517 §4.5, the same key twice is one key, and others of its kid stay`() throws {
        func key(_ kid: String?, _ alg: String?, _ k: String) -> String {
            let members = [
                kid.map { #""kid":"\#($0)""# }, alg.map { #""alg":"\#($0)""# }, #""k":"\#(k)""#, #""kty":"oct""#,
            ]
            return "{" + members.compactMap(\.self).joined(separator: ",") + "}"
        }
        let (one, other) = (String(repeating: "A", count: 86), String(repeating: "Q", count: 86))
        let json = [
            key("a", "HS256", one), key("a", "HS256", one), key("a", "HS512", one), key("a", "HS256", other),
            key(nil, "HS256", one), key("b", nil, one),
        ].joined(separator: ",")
        let set = try JsonWebKeySet(json: Array("{\"keys\":[\(json)]}".utf8), hasSecrets: true)
        #expect(set.keys.count == 5)
        #expect(set.candidates("a", .hs256).map(\.identifier) == ["a", "a", nil])
        #expect(set.candidates("a", .hs512).count == 1)
        #expect(set.candidates("b", .hs384).map(\.identifier) == ["b"])
        #expect(set.candidates(nil, .hs256).count == 4)
        #expect(set.knows("a") && set.knows(nil))
    }

    @Test func `RFC 7518 §3.2, a secret is for the algorithms whose digest is not longer`() {
        for (count, algorithms) in [
            (32, [VerifyingKey.Algorithm.hs256]), (47, [.hs256]), (48, [.hs256, .hs384]), (63, [.hs256, .hs384]),
            (64, [.hs256, .hs384, .hs512]), (4096, [.hs256, .hs384, .hs512]),
        ] {
            let key = VerifyingKey(secret: Array(repeating: 1, count: count))
            #expect(VerifyingKey.Algorithm.allCases.filter { key?.isFor($0) == true } == algorithms, "\(count)")
        }
    }

    @Test func `a set of ten megabytes is refused unread`() {
        let json = "{\"keys\":[" + String(repeating: " ", count: 10 << 20) + "]}"
        #expect(mistake(json).contains("larger than 256KiB"))
    }

    @Test(arguments: [
        ("[]", "no list"), ("{}", "no list"), ("{\"keys\":{}}", "no list"), ("{\"keys\":[]}", "no usable key"),
        ("", "is incomplete"),
        ("{\"keys\":[1,null,\"x\"]}", "no usable key"), ("{\"keys\":[],\"keys\":[]}", "two members"),
    ])
    func `a document that is not a key set is refused`(json: String, reason: String) {
        #expect(mistake(json).contains(reason))
    }

    @Test func `a set of too many keys is refused`() {
        let keys = (0...JsonWebKeySet.most).map { _ in "{}" }.joined(separator: ",")
        #expect(mistake("{\"keys\":[\(keys)]}").contains("more than 100 keys"))
    }

    @Test(arguments: [
        #"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#, #"{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}"#,
        #"{"kty":"EC","crv":"P-256","x":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","y":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}"#,
        #"{"kty":"EC","crv":"secp256k1","x":"AA","y":"AA"}"#, #"{"kty":"OKP","crv":"X25519","x":"AA"}"#,
        #"{"kty":"none"}"#, #"{}"#,
        #"{"kty":"oct","k":"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY","use":"enc"}"#,
        #"{"kty":"oct","k":"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY","alg":"HS512"}"#,
        #"{"kty":"oct","k":"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY","alg":"RS256"}"#,
        #"{"kty":"oct","k":"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY","key_ops":["sign"]}"#,
        #"{"kty":"oct","k":"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY","kid":7}"#,
    ])
    func `RFC 7517 §5, a key that is of no use here is left out`(key: String) {
        #expect(mistake("{\"keys\":[\(key)]}", hasSecrets: true).contains("no usable key"))
    }
}
