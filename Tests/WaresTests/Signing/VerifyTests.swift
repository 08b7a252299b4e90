import HttpWareTesting
import Testing

@testable import HttpWare
@testable import GatewayWares

@Suite struct VerifyTests {
    private static let now = WallTime(seconds: SignatureVectors.created)

    private func check(
        _ verify: Verify, _ request: HttpRequest, at now: WallTime = Self.now
    ) throws -> String {
        // A request that a test made has no received fields: it is judged as it is.
        let names = UpstreamNames(authority: request.authority?.description ?? "", basePath: "", isSecure: true)
        return try verify.verify(SignedRequest(sent: request, as: names), content: request.content, at: now).keyId
    }

    /// RFC 9421 §B.2.1, §B.2.2, §B.2.3, §B.2.5, §B.2.6.
    static let examples: [(input: String, signature: String, key: String)] = [
        (
            #"sig-b21=();created=1618884473;keyid="test-key-rsa-pss";nonce="b3k2pp5k7z-50gnwp.yemd""#,
            "sig-b21=:d2pmTvmbncD3xQm8E9ZV2828BjQWGgiwAaw5bAkgibUopemLJcWDy/lkbbHAve4cRAtx31Iq786U7it++wgGxbtRxf8Udx7zFZsckzXaJMkA7ChG52eSkFxykJeNqsrWH5S+oxNFlD4dzVuwe8DhTSja8xxbR/Z2cOGdCbzR72rgFWhzx2VjBqJzsPLMIQKhO4DGezXehhWwE56YCE+O6c0mKZsfxVrogUvA4HELjVKWmAvtl6UnCh8jYzuVG5WSb/QEVPnP5TmcAnLH1g+s++v6d4s8m0gCw1fV5/SITLq9mhho8K3+7EPYTU8IU1bLhdxO5Nyt8C8ssinQ98Xw9Q==:",
            "test-key-rsa-pss"
        ),
        (
            #"sig-b22=("@authority" "content-digest" "@query-param";name="Pet");created=1618884473;keyid="test-key-rsa-pss";tag="header-example""#,
            "sig-b22=:LjbtqUbfmvjj5C5kr1Ugj4PmLYvx9wVjZvD9GsTT4F7GrcQEdJzgI9qHxICagShLRiLMlAJjtq6N4CDfKtjvuJyE5qH7KT8UCMkSowOB4+ECxCmT8rtAmj/0PIXxi0A0nxKyB09RNrCQibbUjsLS/2YyFYXEu4TRJQzRw1rLEuEfY17SARYhpTlaqwZVtR8NV7+4UKkjqpcAoFqWFQh62s7Cl+H2fjBSpqfZUJcsIk4N6wiKYd4je2U/lankenQ99PZfB4jY3I5rSV2DSBVkSFsURIjYErOs0tFTQosMTAoxk//0RoKUqiYY8Bh0aaUEb0rQl3/XaVe4bXTugEjHSw==:",
            "test-key-rsa-pss"
        ),
        (
            #"sig-b23=("date" "@method" "@path" "@query" "@authority" "content-type" "content-digest" "content-length");created=1618884473;keyid="test-key-rsa-pss""#,
            "sig-b23=:bbN8oArOxYoyylQQUU6QYwrTuaxLwjAC9fbY2F6SVWvh0yBiMIRGOnMYwZ/5MR6fb0Kh1rIRASVxFkeGt683+qRpRRU5p2voTp768ZrCUb38K0fUxN0O0iC59DzYx8DFll5GmydPxSmme9v6ULbMFkl+V5B1TP/yPViV7KsLNmvKiLJH1pFkh/aYA2HXXZzNBXmIkoQoLd7YfW91kE9o/CCoC1xMy7JA1ipwvKvfrs65ldmlu9bpG6A9BmzhuzF8Eim5f8ui9eH8LZH896+QIF61ka39VBrohr9iyMUJpvRX2Zbhl5ZJzSRxpJyoEZAFL2FUo5fTIztsDZKEgM4cUA==:",
            "test-key-rsa-pss"
        ),
        (
            #"sig-b25=("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret""#,
            "sig-b25=:pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=:", "test-shared-secret"
        ),
        (
            #"sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519""#,
            "sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:",
            "test-key-ed25519"
        ),
    ]

    @Test(arguments: examples)
    func `the signatures of RFC 9421 §B.2 are valid`(input: String, signature: String, key: String) throws {
        let verify = try SignatureVectors.verify()
        #expect(try check(verify, SignatureVectors.request(input, signature)) == key)
    }

    /// RFC 9421 §B.2.4: a response, of which only the check of the key is done here.
    @Test func `the signature of RFC 9421 §B.2.4 is valid for its base`() throws {
        let base = """
            "@status": 200
            "content-type": application/json
            "content-digest": sha-512=:mEWXIS7MaLRuGgxOBdODa3xqM1XdEvxoYhvlCFJ41QJgJc4GTsPp29l5oGX69wWdXymyU0rjJuahq4l5aGgfLQ==:
            "content-length": 23
            "@signature-params": ("@status" "content-type" "content-digest" "content-length");created=1618884473;keyid="test-key-ecc-p256"
            """
        let signature = try #require(
            Base64.decode(
                Array(
                    "wNmSUAhwb5LxtOtOpNa6W5xj067m5hFrj0XQ4fvpaCLx0NKocgPquLgyahnzDnDAUy5eCdlYUEkLIj+32oiasw==".utf8)))
        let key = try #require(VerifyingKey(pem: SignatureVectors.p256Public))
        let isValid = signature.withUnsafeBytes { signature in
            Array(base.utf8).withUnsafeBytes { key.isSignature(signature, of: $0, by: .es256) }
        }
        #expect(isValid)
    }

    /// RFC 9421 §B.3.
    @Test func `the signature of a proxy that ends TLS is valid`() throws {
        var request = try HttpRequest(
            .post, "https://service.internal.example/foo?param=Value&Pet=dog", content: .text("{\"hello\": \"world\"}"))
        try request.fields.set(
            "Client-Cert",
            to:
                ":MIIBqDCCAU6gAwIBAgIBBzAKBggqhkjOPQQDAjA6MRswGQYDVQQKDBJMZXQncyBBdXRoZW50aWNhdGUxGzAZBgNVBAMMEkxBIEludGVybWVkaWF0ZSBDQTAeFw0yMDAxMTQyMjU1MzNaFw0yMTAxMjMyMjU1MzNaMA0xCzAJBgNVBAMMAkJDMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE8YnXXfaUgmnMtOXU/IncWalRhebrXmckC8vdgJ1p5Be5F/3YC8OthxM4+k1M6aEAEFcGzkJiNy6J84y7uzo9M6NyMHAwCQYDVR0TBAIwADAfBgNVHSMEGDAWgBRm3WjLa38lbEYCuiCPct0ZaSED2DAOBgNVHQ8BAf8EBAMCBsAwEwYDVR0lBAwwCgYIKwYBBQUHAwIwHQYDVR0RAQH/BBMwEYEPYmRjQGV4YW1wbGUuY29tMAoGCCqGSM49BAMCA0gAMEUCIBHda/r1vaL6G3VliL4/Di6YK0Q6bMjeSkC3dFCOOB8TAiEAx/kHSB4urmiZ0NX5r5XarmPk0wmuydBVoU4hBVZ1yhk=:"
        )
        try request.fields.set(
            "Signature-Input",
            to:
                #"ttrp=("@path" "@query" "@method" "@authority" "client-cert");created=1618884473;keyid="test-key-ecc-p256""#
        )
        try request.fields.set(
            "Signature",
            to: "ttrp=:xVMHVpawaAC/0SbHrKRs9i8I3eOs5RtTMGCWXm/9nvZzoHsIg6Mce9315T6xoklyy0yzhD9ah4JHRwMLOgmizw==:")
        #expect(try check(SignatureVectors.verify(), request) == "test-key-ecc-p256")
    }

    private func transformed(_ method: HttpMethod, _ target: String, _ accept: [String]) throws -> HttpRequest {
        var request = try HttpRequest(method, target)
        for value in accept { try request.fields.append(.accept, value) }
        try request.fields.set(
            "Signature-Input",
            to:
                #"transform=("@method" "@path" "@authority" "accept");created=1618884473;keyid="test-key-ed25519""#)
        try request.fields.set(
            "Signature",
            to: "transform=:ZT1kooQsEHpZ0I1IjCqtQppOmIqlJPeo7DHR3SoMn0s5JZ1eRGS0A+vyYP9t/LXlh5QMFFQ6cpLt2m0pmj3NDA==:")
        return request
    }

    @Test func `RFC 9421 §B.4, a signature stands what proxies may change, and nothing else`() throws {
        let verify = try SignatureVectors.verify()
        let target = "https://example.org/demo?name1=Value1&Name2=value2"
        for request in [
            try transformed(.get, target, ["application/json", "*/*"]),
            try transformed(.get, target + "&param=added", ["application/json", "*/*"]),
            try transformed(.get, target, ["application/json, */*"]),
        ] {
            #expect(try check(verify, request) == "test-key-ed25519")
        }
        for request in [
            try transformed(.post, target, ["application/json", "*/*"]),
            try transformed(.get, "https://example.com/demo", ["application/json", "*/*"]),
            try transformed(.get, target, ["*/*", "application/json"]),
        ] {
            #expect(throws: Verify.Refusal("the signature is not valid")) { try check(verify, request) }
        }
    }

    // MARK: Refusals

    private func refusal(
        _ input: String, _ signature: String? = nil, at now: WallTime = Self.now,
        change: (inout Verify, inout HttpRequest) throws -> Void = { _, _ in }
    ) throws -> String? {
        var verify = try SignatureVectors.verify()
        var request = try SignatureVectors.request(input, signature ?? Self.examples[4].signature)
        try change(&verify, &request)
        do {
            _ = try check(verify, request, at: now)
            return nil
        } catch let refusal as Verify.Refusal {
            return refusal.reason
        }
    }

    private static let good = examples[4].input

    @Test func `a signature counts only for its time`() throws {
        let created = SignatureVectors.created
        #expect(try refusal(Self.good, at: WallTime(seconds: created + 330)) == nil)
        #expect(try refusal(Self.good, at: WallTime(seconds: created + 331)) == "the signature is too old")
        #expect(try refusal(Self.good, at: WallTime(seconds: created - 30)) == nil)
        #expect(
            try refusal(Self.good, at: WallTime(seconds: created - 31)) == "the signature was created in the future")
        let expires = Self.good.replacing(";keyid", with: ";expires=1618884400;keyid")
        #expect(try refusal(expires) == "the signature has expired")
        let never = Self.good.replacing(";keyid", with: ";expires=\"never\";keyid")
        #expect(try refusal(never) == "the signature has expired")
        let timeless = Self.good.replacing(";created=1618884473", with: "")
        #expect(try refusal(timeless) == "the signature does not say when it was created")
    }

    @Test func `a signature must cover all components`() throws {
        func refusal(without name: String) throws -> String? {
            try self.refusal(Self.good) { verify, _ in verify.components = [try SignatureComponent(optionText: name)] }
        }
        #expect(try refusal(without: "@method") == nil)
        #expect(try refusal(without: "@query") == "the signature does not cover @query")
        #expect(try refusal(without: "content-digest") == "the signature does not cover content-digest")
        // A field that the request does not have.
        #expect(try refusal(without: "authorization") == nil)
        let withField = try self.refusal(Self.good) { verify, request in
            verify.components = [try SignatureComponent(optionText: "authorization")]
            try request.fields.set(.authorization, to: "Bearer added")
        }
        #expect(withField == "the signature does not cover authorization")
        // Content cannot be added by taking its digest away.
        let withoutDigest = try self.refusal(Self.good) { verify, request in
            verify.components = [try SignatureComponent(optionText: "content-digest")]
            request.fields.remove("Content-Digest")
        }
        #expect(withoutDigest == "the signature does not cover content-digest")
    }

    @Test func `content must fit its signed digest`() throws {
        let (input, signature, _) = Self.examples[1]
        #expect(try refusal(input, signature) == nil)
        let other = try refusal(input, signature) { _, request in request.content = .text("{\"hello\": \"World\"}") }
        #expect(other == "Content-Digest does not fit the content")
        let none = try refusal(input, signature) { _, request in request.content = .none }
        #expect(none == "Content-Digest does not fit the content")
        let streamed = try refusal(input, signature) { _, request in request.content = .streamed(length: 18) }
        #expect(streamed == "content that is signed is at most 1MiB")
    }

    @Test(arguments: [
        (#"sig-b26=("date");created=1618884473;keyid="unknown""#, "no signature of the request has a known key"),
        (#"sig-b26=("date");created=1618884473"#, "no signature of the request has a known key"),
        (
            #"other=("date");created=1618884473;keyid="test-key-ed25519""#,
            "the field Signature lacks a signature of the field Signature-Input"
        ),
        (
            #"sig-b26=("date" "date");created=1618884473;keyid="test-key-ed25519""#,
            "the signature covers a component that is unknown here, or covers one twice"
        ),
        (
            #"sig-b26=("date";sf);created=1618884473;keyid="test-key-ed25519""#,
            "the signature covers a component that is unknown here, or covers one twice"
        ),
        (
            #"sig-b26=("@status");created=1618884473;keyid="test-key-ed25519""#,
            "the signature covers a component that is unknown here, or covers one twice"
        ),
        (
            #"sig-b26=("x-absent");created=1618884473;keyid="test-key-ed25519""#,
            "the signature covers a component that the request does not have"
        ),
        (
            #"sig-b26=("date");created=1618884473;keyid="test-key-ed25519";alg="hmac-sha256""#,
            "the signature names another algorithm than its key has"
        ),
        (#"sig-b26=("date");created=1618884473;keyid="test-key-ed25519""#, "the signature is not valid"),
        (
            #"sig-b26=();created=1618884473;keyid="a", sig-b26=();keyid="b""#,
            "the field Signature-Input is invalid, or exceeds a limit"
        ),
        (#"sig-b26=("date""#, "the field Signature-Input is invalid, or exceeds a limit"),
    ])
    func `a signature that does not count is refused`(input: String, reason: String) throws {
        #expect(try refusal(input) == reason)
    }

    @Test func `a field over a limit is refused`() throws {
        let long = "a=(" + String(repeating: "\"x\" ", count: 1025) + ")"
        #expect(try refusal(long) == "the field Signature-Input is invalid, or exceeds a limit")
        let large = #"a=();keyid=""# + String(repeating: "x", count: StructuredReader.mostBytes) + "\""
        #expect(try refusal(large) == "the field Signature-Input is invalid, or exceeds a limit")
        let many = (0..<33).map { "\"x-\($0)\"" }.joined(separator: " ")
        #expect(
            try refusal(#"sig-b26=(\#(many));created=1618884473;keyid="test-key-ed25519""#)
                == "the signature covers a component that is unknown here, or covers one twice")
    }

    @Test func `at most three signatures with known keys are checked`() throws {
        let bad = (0..<3).map { #"a\#($0)=();created=1618884473;keyid="test-key-ed25519""# }
        let inputs = (bad + [Self.good]).joined(separator: ", ")
        let signatures = ((0..<3).map { "a\($0)=:AA==:" } + [Self.examples[4].signature]).joined(separator: ", ")
        #expect(try refusal(inputs, signatures) == "the signature is not valid")
        let two = (bad.prefix(2) + [Self.good]).joined(separator: ", ")
        #expect(try refusal(two, signatures) == nil)
    }

    // MARK: In a chain

    private static let secret = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

    private static func verifyOptions(_ more: ConfigNode = [:]) -> ConfigNode {
        let keys = ConfigNode(
            .list([["id": "one", "algorithm": "hmac-sha256", "secret": .init(stringLiteral: secret)]]))
        return ConfigNode(
            .map([ConfigNode.Entry(key: "keys", location: .code, value: keys)] + (more.entries ?? [])))
    }

    private static func signOptions(_ more: ConfigNode = [:]) -> ConfigNode {
        let own: ConfigNode = [
            "keyId": "one", "algorithm": "hmac-sha256", "secret": .init(stringLiteral: secret),
        ]
        return ConfigNode(.map((own.entries ?? []) + (more.entries ?? [])))
    }

    /// A request that arrives at the origin of one gateway is sent to another.
    private func passed(_ request: HttpRequest, _ options: ConfigNode = [:]) async throws -> HttpRequest {
        let signer = try TestExchange(Sign.self, options: Self.signOptions(options))
        _ = try await signer.send(request)
        let sent = try #require(signer.upstream.requests.first)
        var next = try HttpRequest(sent.method, "http://\(sent.fields[.host] ?? "")\(sent.receivedTarget)")
        next.fields = sent.fields
        next.fields.receivedCount = next.fields.lines.count
        next.content = sent.content
        return next
    }

    @Test(arguments: ["", "content"])
    func `a signature of one gateway is accepted by another, and the key is the principal`(content: String) async throws
    {
        let request = try HttpRequest(
            .post, "/a%20b?x=1&y", fields: ["Host": "api.example.com"],
            content: content.isEmpty ? .none : .text(content))
        let next = try await passed(request)
        #expect(next.fields.contains("Content-Digest") == !content.isEmpty)
        let exchange = try TestExchange(Verify.self, options: Self.verifyOptions())
        #expect(try await exchange.send(next).status == .ok)
        #expect(exchange.outcomes.first?.status == .ok)
        var other = next
        other.content = .text("other")
        let refused = try await exchange.send(other)
        #expect(refused.status == .unauthorized)
        #expect(refused.fields[.wwwAuthenticate] == "Signature realm=\"httpware\"")
        #expect(exchange.upstream.requests.count == 1)
    }

    // MARK: Fields that the signature does not cover

    private static let covering: ConfigNode = ["components": ["@method", "@path", "x-amount", "x-dict;key=\"a\""]]

    /// The response to a request that is signed with these fields and gets others on its way, and the fields that the origin server gets.
    private func sent(
        signed: HttpFields, added: [(FieldName, String)]
    ) async throws -> (status: HttpStatus, fields: HttpFields?) {
        var request = HttpRequest.get("/pay", fields: signed)
        try request.fields.set(.host, to: "api.example.com")
        var next = try await passed(request, Self.covering)
        for (name, value) in added { try next.fields.append(name, value) }
        next.fields.receivedCount = next.fields.lines.count
        next.fields.noteUnderscores()
        let exchange = try TestExchange(Verify.self, options: Self.verifyOptions(Self.covering))
        let response = try await exchange.send(next)
        return (response.status, exchange.upstream.requests.first?.fields)
    }

    @Test(arguments: ["X_Amount", "x_amount", "X_AMOUNT"], [true, false])
    func `another spelling of a covered field does not reach the origin server`(twin: String, isSigned: Bool)
        async throws
    {
        let fields: HttpFields = isSigned ? ["X-Amount": "1", "X-Dict": "a=1"] : [:]
        let name = try #require(FieldName(twin))
        let added: [(FieldName, String)] = [(name, "9"), ("X_Dict", "a=9"), ("X_Other", "stays")]
        let (status, got) = try await sent(signed: fields, added: added)
        #expect(status == .ok)
        #expect(got?.contains(name) == false)
        #expect(got?.contains("X_Dict") == false)
        #expect(got?["X-Amount"] == (isSigned ? "1" : nil))
        #expect(got?["X_Other"] == "stays")
    }

    @Test func `another spelling of a field that only the signature covers does not reach the origin server either`()
        async throws
    {
        var request = HttpRequest.get("/pay", fields: ["X-Own": "1", "Host": "api.example.com"])
        request = try await passed(request, ["components": ["@method", "x-own"]])
        try request.fields.append("X_Own", "9")
        request.fields.receivedCount = request.fields.lines.count
        request.fields.noteUnderscores()
        let exchange = try TestExchange(Verify.self, options: Self.verifyOptions(["components": ["@method"]]))
        #expect(try await exchange.send(request).status == .ok)
        let got = try #require(exchange.upstream.requests.first).fields
        #expect((got["X-Own"], got.contains("X_Own")) == ("1", false))
    }

    @Test(arguments: ["a=9, ((", "a=9,", "A=9", "a=9 b", "a", "a=9;", "a=9, 1", "{a=9}", "a=\u{e4}", "=9", "a=?2"])
    func `a field that may hold the member in another reading must be covered`(value: String) async throws {
        let (status, got) = try await sent(signed: ["X-Amount": "1"], added: [("X-Dict", value)])
        #expect(status == .unauthorized)
        #expect(got == nil)
    }

    @Test(arguments: ["b=9", "b=(1 2);a=9", "b=\"a=9\""])
    func `a well-formed dictionary without the member need not be covered`(value: String) async throws {
        #expect(try await sent(signed: ["X-Amount": "1"], added: [("X-Dict", value)]).status == .ok)
    }

    @Test func `two lines are one dictionary, and a broken second one spoils it`() async throws {
        let (status, _) = try await sent(signed: [:], added: [("X-Dict", "b=1"), ("X-Dict", "a=9, ((")])
        #expect(status == .unauthorized)
    }

    @Test func `a signed request loses the other spellings, and one whose dictionary is broken is not sent`()
        async throws
    {
        let exchange = try TestExchange(Sign.self, options: Self.signOptions(Self.covering))
        var request = HttpRequest.get("/pay", fields: ["X-Amount": "1", "X_Amount": "9", "X_Dict": "a=9"])
        request.fields.receivedCount = request.fields.lines.count
        request.fields.noteUnderscores()
        #expect(try await exchange.send(request).status == .ok)
        let got = try #require(exchange.upstream.requests.first).fields
        #expect((got["X-Amount"], got.contains("X_Amount"), got.contains("X_Dict")) == ("1", false, false))
        #expect(try await exchange.send(.get("/pay", fields: ["X-Dict": "a=9, (("])).status == .badRequest)
        #expect(exchange.upstream.requests.count == 1)
    }

    @Test(arguments: ["a=1&b=2;a=9", "x;a=9&a=1", "a=1;a=9", "a=1&;a", "a=1&b;%61=9"])
    func `a covered query parameter that stands behind a semicolon too is refused`(query: String) throws {
        let signed = SignedRequest(
            sent: try HttpRequest(.get, "http://example.com/?" + query),
            as: UpstreamNames(authority: "example.com", basePath: "", isSecure: false))
        let parameter = try SignatureComponent(optionText: "@query-param;name=\"a\"")
        #expect(signed.value(of: parameter) == nil)
        #expect(signed.value(of: try SignatureComponent(optionText: "@query-param;name=\"z\"")) == nil)
    }

    @Test func `without a signature nothing passes`() async throws {
        let exchange = try TestExchange(Verify.self, options: Self.verifyOptions(["components": []]))
        #expect(try await exchange.send(.get("/")).status == .unauthorized)
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test(
        arguments: [
            [:], ["keys": []],
            ["keys": ConfigNode(.list([["id": "a", "algorithm": "hmac-sha256", "secret": "c2hvcnQ="]]))],
            [
                "keys": ConfigNode(
                    .list([["id": "a", "algorithm": "ed25519", "secret": .init(stringLiteral: secret)]]))
            ],
            [
                "keys": ConfigNode(
                    .list([
                        ["id": "a", "algorithm": "hmac-sha256", "secret": .init(stringLiteral: secret)],
                        ["id": "a", "algorithm": "hmac-sha256", "secret": .init(stringLiteral: secret)],
                    ]))
            ],
        ] as [ConfigNode])
    func `keys that cannot be used are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange(Verify.self, options: options) }
    }
}
