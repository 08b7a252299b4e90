import HttpWareTesting
import Testing
import GatewayWares

@testable import HttpWare

@Suite struct ApiKeyTests {
    // FIPS 180-4: the digest of "abc"; and that of "second-key" by sha256sum.
    private static let keys = """
        # clients
        alpha:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad
        beta:f397f260a275cc4d42e7965c556167bf3f068aed491d35a8f5b38c8c2db96bb0
        """
    private let file: CredentialFile

    init() throws {
        file = try CredentialFile(Self.keys)
    }

    private func exchange(_ options: ConfigNode = [:], isForward: Bool = false) throws -> TestExchange {
        var setting = TestExchange.Setting()
        setting.isForward = isForward
        let entries = (options.entries ?? []) + [ConfigNode.Entry(key: "keysFile", location: .code, value: file.option)]
        return try TestExchange(ApiKey.self, options: ConfigNode(.map(entries)), setting: setting)
    }

    @Test func `a client that shows a key gets in, and the key does not go upstream`() async throws {
        let exchange = try exchange()
        let response = try await exchange.send(.get("/", fields: ["X-API-Key": "abc", "X-Other": "1"]))
        #expect(response.status == .ok)
        let request = try #require(exchange.upstream.requests.first)
        #expect(!request.fields.contains("X-API-Key"))
        #expect(request.fields["X-Other"] == "1")
    }

    @Test func `each key of the file is known`() async throws {
        let exchange = try exchange()
        #expect(try await exchange.send(.get("/", fields: ["X-API-Key": "second-key"])).status == .ok)
    }

    @Test(arguments: ["", "ABC", "abd", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"])
    func `RFC 9110 §15.5.2, who shows another is refused with a challenge`(key: String) async throws {
        let exchange = try exchange()
        var fields = HttpFields()
        try fields.append("X-API-Key", key)
        let response = try await exchange.send(.get("/", fields: fields))
        #expect(response.status == .unauthorized)
        #expect(response.fields[.wwwAuthenticate] == "ApiKey realm=\"httpware\"")
        #expect(response.fields[.contentType] == "application/problem+json")
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test func `a request with two keys is refused`() async throws {
        let exchange = try exchange()
        var fields: HttpFields = ["X-API-Key": "abc"]
        try fields.append("X-API-Key", "abc")
        #expect(try await exchange.send(.get("/", fields: fields)).status == .unauthorized)
    }

    @Test func `a key in the query is taken out, and nothing else is touched`() async throws {
        let exchange = try exchange(["in": "query", "name": "k"])
        let response = try await exchange.send(.get("/p%2f?a=%2F+&k=abc&b=é"))
        #expect(response.status == .ok)
        #expect(exchange.upstream.requests.first?.receivedTarget == "/p%2f?a=%2F+&b=é")
        #expect(try await exchange.send(.get("/p?k=abd")).status == .unauthorized)
    }

    @Test func `a parameter that is a key is not shown in logs`() throws {
        _ = try exchange(["in": "query", "name": "zugang"])
        #expect(Redaction.target("/p?zugang=abc&a=1&Zugang=x&%7augang=y") == "/p?zugang=…&a=1&Zugang=…&%7augang=…")
    }

    @Test func `a key in a cookie is taken out, and the others stay`() async throws {
        let exchange = try exchange(["in": "cookie", "name": "key"])
        let response = try await exchange.send(.get("/", fields: ["Cookie": "a=1; key=abc; b=2"]))
        #expect(response.status == .ok)
        #expect(exchange.upstream.requests.first?.fields[.cookie] == "a=1; b=2")
    }

    @Test func `without hide the key goes upstream`() async throws {
        let exchange = try exchange(["hide": "false"])
        _ = try await exchange.send(.get("/", fields: ["X-API-Key": "abc"]))
        #expect(exchange.upstream.requests.first?.fields["X-API-Key"] == "abc")
    }

    @Test(arguments: ["Bearer abc", "basic eDphYmM=", "Basic YWJjOg=="])
    func `RFC 9110 §11.7, on a forward listener it reads Proxy-Authorization`(value: String) async throws {
        let exchange = try exchange(isForward: true)
        let refused = try await exchange.send(.get("http://a.test/", fields: ["X-API-Key": "abc"]))
        #expect(refused.status == .proxyAuthenticationRequired)
        #expect(refused.fields[.proxyAuthenticate] == "Basic realm=\"httpware\"")
        #expect(!refused.fields.contains(.wwwAuthenticate))
        var request = try HttpRequest(.get, "http://a.test/")
        request.proxyAuthorization = value
        #expect(try await exchange.send(request).status == .ok)
        request.proxyAuthorization = value.replacing("Y", with: "Z").replacing("abc", with: "abd")
        #expect(try await exchange.send(request).status == .proxyAuthenticationRequired)
    }

    @Test func `whose key it is stays in the exchange`() async throws {
        let seen = Seen()
        let ware = try TestExchange.make(ApiKey.self, ["keysFile": file.option])
        let exchange = try TestExchange([ware, seen])
        _ = try await exchange.send(.get("/", fields: ["X-API-Key": "abc"]))
        #expect(seen.principals == ["apiKey alpha"])
    }

    @Test func `a mistake in the file has its file, line and column`() throws {
        try file.write("# x\nalpha:12\n")
        let error = #expect(throws: ConfigError.self) { try TestExchange.make(ApiKey.self, ["keysFile": file.option]) }
        #expect(error?.description.hasPrefix("\(file.path):2:7: error: apiKey.keysFile: ") == true, "\(error as Any)")
    }

    @Test(
        arguments: [
            [:], ["keysFile": "/nonexistent/keys"], ["in": "body"], ["name": "a b"], ["name": "Host"],
            ["hide": "maybe"],
        ] as [ConfigNode])
    func `options that cannot be meant are refused at load`(options: ConfigNode) {
        let isWhole = options.entries?.contains { $0.key == "keysFile" } == true || options.entries?.isEmpty == true
        #expect(throws: ConfigError.self) {
            if isWhole { _ = try TestExchange.make(ApiKey.self, options) } else { _ = try exchange(options) }
        }
    }

    @Test func `two Proxy-Authorization lines are refused`() async throws {
        let exchange = try exchange(isForward: true)
        var request = try HttpRequest(.get, "http://a.test/")
        request.proxyAuthorization = "Bearer abc"
        #expect(try await exchange.send(request).status == .ok)
        request.hasSeveralProxyAuthorizations = true
        #expect(try await exchange.send(request).status == .proxyAuthenticationRequired)
    }
}
