import HttpWareTesting
import Testing

@testable import HttpWare
@testable import GatewayWares

@Suite struct SignTests {
    private static let secret: ConfigNode = .init(stringLiteral: SignatureVectors.secret)

    private func exchange(_ more: ConfigNode = [:]) throws -> TestExchange {
        let own: ConfigNode = ["keyId": "test-shared-secret", "algorithm": "hmac-sha256", "secret": Self.secret]
        return try TestExchange(Sign.self, options: ConfigNode(.map((own.entries ?? []) + (more.entries ?? []))))
    }

    /// RFC 9421 §B.2.5, and §B.2.6: Ed25519 gives the same signature each time.
    @Test func `the signatures of RFC 9421 §B.2 that are the same each time come out`() throws {
        let hmac = try #require(
            Base64.decode(Array(SignatureVectors.secret.utf8))?.withUnsafeBytes { HmacKey256($0) })
        let edwards = try #require(SigningKey(pem: SignatureVectors.ed25519Private))
        for (input, signature, _) in VerifyTests.examples.suffix(2) {
            let request = try SignatureVectors.request(input, signature)
            let member = try #require(try StructuredReader.dictionary(Array(input.utf8)).first)
            let read = try #require(SignatureInput(member.value))
            #expect("\(member.name)=\(read.text)" == input)
            let names = UpstreamNames(authority: "example.com", basePath: "", isSecure: true)
            let base = try #require(read.base(of: SignedRequest(sent: request, as: names)))
            let made = try base.withUnsafeBytes { base in
                member.name == "sig-b25" ? hmac.code(of: base).bytes : try #require(edwards.sign(base, by: .edDSA))
            }
            #expect("\(member.name)=\(StructuredText.text(.bytes(made)))" == signature)
        }
    }

    @Test(arguments: [
        (SignatureVectors.rsaPssPrivate, SignatureVectors.rsaPssPublic, VerifyingKey.Algorithm.ps512),
        (SignatureVectors.p256Private, SignatureVectors.p256Public, .es256),
        (SignatureVectors.ed25519Private, SignatureVectors.ed25519Public, .edDSA),
    ])
    func `a signature of a private key is accepted by its public key`(
        privateKey: String, publicKey: String, algorithm: VerifyingKey.Algorithm
    ) throws {
        let signer = try #require(SigningKey(pem: privateKey))
        let verifier = try #require(VerifyingKey(pem: publicKey))
        let text = Array("text".utf8)
        let signature = try #require(text.withUnsafeBytes { signer.sign($0, by: algorithm) })
        func isValid(_ text: [UInt8]) -> Bool {
            signature.withUnsafeBytes { signature in
                text.withUnsafeBytes { verifier.isSignature(signature, of: $0, by: algorithm) }
            }
        }
        #expect(isValid(text))
        #expect(!isValid(Array("test".utf8)))
        #expect(text.withUnsafeBytes { signer.sign($0, by: .hs256) } == nil)
    }

    @Test func `an RSA key for PSS signs in no other way`() throws {
        let key = try #require(SigningKey(pem: SignatureVectors.rsaPssPrivate))
        #expect(!key.canSign(by: .rs256))
        #expect(SigningKey(pem: SignatureVectors.rsaPssPublic) == nil)
    }

    @Test func `a request is signed with what the options say`() async throws {
        let exchange = try exchange([
            "components": ["@method", "@target-uri", "content-digest", "x-absent"], "label": "gw", "tag": "test",
            "expires": "1m", "nonce": "true", "digest": "sha-512",
        ])
        let request = HttpRequest.post("/a?b", content: .text("{\"hello\": \"world\"}"))
        #expect(try await exchange.send(request).status == .ok)
        let sent = try #require(exchange.upstream.requests.first)
        #expect(
            sent.fields["Content-Digest"]
                == "sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:")
        let input = try #require(sent.fields["Signature-Input"])
        #expect(
            input.hasPrefix(
                #"gw=("@method" "@target-uri" "content-digest");created=1767225600;expires=1767225660;keyid="test-shared-secret";nonce=""#
            ))
        #expect(input.hasSuffix(#"";tag="test""#))
    }

    @Test func `signatures of the client stay, except one with the same label`() async throws {
        let exchange = try exchange()
        var request = HttpRequest.get("/")
        try request.fields.set("Signature-Input", to: #"a=("@method");keyid="c""#)
        try request.fields.set("Signature", to: "a=:AA==:")
        _ = try await exchange.send(request)
        try request.fields.set("Signature-Input", to: #"sig1=("@method");keyid="c""#)
        _ = try await exchange.send(request)
        let inputs = exchange.upstream.requests.map { $0.fields["Signature-Input"] ?? "" }
        #expect(
            inputs[0].hasPrefix(#"a=("@method");keyid="c", sig1=("@method" "@authority" "@path" "@query");created="#))
        #expect(inputs[1].hasPrefix(#"sig1=("@method" "@authority" "@path" "@query");created="#))
        #expect(exchange.upstream.requests[1].fields.values(of: "Signature").count == 1)
    }

    @Test func `content over maxBody is refused with 413`() async throws {
        let exchange = try exchange(["maxBody": "3B"])
        #expect(try await exchange.send(.post("/", content: .text("1234"))).status == .contentTooLarge)
        let unsigned = try self.exchange(["maxBody": "3B", "components": ["@method"]])
        #expect(try await unsigned.send(.post("/", content: .text("1234"))).status == .ok)
    }

    @Test(arguments: [
        "@status", "@query-param", "a b", "x;sf", "@method;key=\"a\"", "x;bs;key=\"a\"", "", "x;", "x;name=\"a\"",
    ])
    func `a component that is unknown is refused`(text: String) {
        #expect(throws: OptionMistake.self) { try SignatureComponent(optionText: text) }
    }

    @Test func `the values of components are those of RFC 9421 §2`() throws {
        var request = try HttpRequest(.get, "https://www.example.com/path?a=1&b=x%20y&a%3d=z+&q&dup=1&dup=2")
        try request.fields.append("X-List", "a=1, b=2;x=1;y=2")
        try request.fields.append("X-List", "c=(1 \"s\")")
        let names = UpstreamNames(authority: "WWW.example.com:443", basePath: "/base", isSecure: true)
        let signed = SignedRequest(sent: request, as: names)
        func value(_ text: String) throws -> String? {
            signed.value(of: try SignatureComponent(optionText: text)).map { String(decoding: $0, as: UTF8.self) }
        }
        #expect(try value("@authority") == "www.example.com")
        #expect(try value("@path") == "/base/path")
        #expect(try value("@scheme") == "https")
        #expect(try value("@target-uri") == "https://www.example.com/base/path?a=1&b=x%20y&a%3d=z+&q&dup=1&dup=2")
        #expect(try value("@query-param;name=\"b\"") == "x%20y")
        #expect(try value("@query-param;name=\"a%3D\"") == "z%20")
        #expect(try value("@query-param;name=\"q\"") == "")
        #expect(try value("@query-param;name=\"dup\"") == nil)
        #expect(try value("@query-param;name=\"none\"") == nil)
        #expect(try value("x-list") == "a=1, b=2;x=1;y=2, c=(1 \"s\")")
        #expect(try value("x-list;key=\"b\"") == "2;x=1;y=2")
        #expect(try value("X-List;key=\"c\"") == "(1 \"s\")")
        #expect(try value("x-list;key=\"d\"") == nil)
        #expect(try value("x-list;bs") == ":YT0xLCBiPTI7eD0xO3k9Mg==:, :Yz0oMSAicyIp:")
        #expect(try value("x-absent") == nil)
    }
}
