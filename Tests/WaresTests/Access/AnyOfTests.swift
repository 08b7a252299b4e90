import HttpWareTesting
import Testing

@testable import HttpWare
@testable import GatewayWares

@Suite struct AnyOfTests {
    // FIPS 180-4: the digest of "abc".
    private let keys: CredentialFile
    private let seen = Seen()

    init() throws {
        keys = try CredentialFile("alpha:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    }

    private func exchange(claims: ConfigNode = [:], isForward: Bool = false) throws -> TestExchange {
        let jwt = try SignedToken.ware(["claimsToHeaders": claims])
        let key = try TestExchange.make(
            ApiKey.self, ConfigNode(.map([.init(key: "keysFile", location: .code, value: keys.option)])))
        var setting = TestExchange.Setting()
        setting.isForward = isForward
        return try TestExchange([AnyOf([jwt, key]), seen], setting: setting)
    }

    @Test func `each of the credentials lets in, and does not go upstream`() async throws {
        let exchange = try exchange()
        for fields in [
            ["Authorization": SignedToken.bearer(#""iss":"i","sub":"ada""#)], ["X-API-Key": "abc"],
        ] {
            var lines = HttpFields()
            for (name, value) in fields { try lines.append(#require(FieldName(name)), value) }
            #expect(try await exchange.send(.get("/", fields: lines)).status == .ok)
        }
        #expect(seen.principals.map { String($0.prefix(3)) } == ["jwt", "api"])
        #expect(
            exchange.upstream.requests.allSatisfy {
                !$0.fields.contains(.authorization) && !$0.fields.contains("X-API-Key")
            })
    }

    @Test func `without a credential the refusal has all challenges, RFC 9110 §11_6_1`() async throws {
        let exchange = try exchange()
        let response = try await exchange.send(.get("/"))
        #expect(response.status == .unauthorized)
        #expect(
            response.fields.values(of: .wwwAuthenticate) == [
                #"Bearer realm="httpware""#, #"ApiKey realm="httpware""#,
            ])
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test func `the first credential that is shown decides, even if another is right`() async throws {
        let exchange = try exchange()
        let response = try await exchange.send(
            .get("/", fields: ["Authorization": "Bearer nonsense", "X-API-Key": "abc"]))
        #expect(response.status == .unauthorized)
        #expect(response.fields[.wwwAuthenticate]?.contains("invalid_token") == true)
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test func `a credential that no ware judged does not go upstream`() async throws {
        let exchange = try exchange()
        var fields: HttpFields = ["X-API-Key": "unknown", "X_API_Key": "unknown"]
        try fields.append(.authorization, SignedToken.bearer(#""sub":"ada""#))
        #expect(try await exchange.send(.get("/", fields: fields)).status == .ok)
        let request = try #require(exchange.upstream.requests.first)
        #expect(!request.fields.contains("X-API-Key") && !request.fields.contains("X_API_Key"))
        // Of another kind, where the key decides.
        #expect(
            try await exchange.send(.get("/", fields: ["X-API-Key": "abc", "Authorization": "Basic eDp5"])).status
                == .ok)
        #expect(exchange.upstream.requests.last?.fields.contains(.authorization) == false)
    }

    @Test func `fields of claims are removed, whichever member decides`() async throws {
        let exchange = try exchange(claims: ["sub": "X-User"])
        #expect(
            try await exchange.send(.get("/", fields: ["X-API-Key": "abc", "X-User": "root"])).status == .ok)
        #expect(exchange.upstream.requests.last?.fields.contains("X-User") == false)
    }

    @Test func `a forward listener takes them from Proxy-Authorization`() async throws {
        let exchange = try exchange(isForward: true)
        let response = try await exchange.send(.get("http://a.test/"))
        #expect(response.status == .proxyAuthenticationRequired)
        #expect(response.fields.values(of: .proxyAuthenticate).map { String($0.prefix(6)) } == ["Bearer", "Basic "])
    }

    @Test(
        arguments: [
            ([:], "is missing"),
            (["members": [["jwt": ["algorithms": ["HS256"]]]]], "write 2 to 16"),
            (["members": [["cors": [:]], ["jwt": [:]]]], "unknown option"),
            (["members": [["jwt": [:], "apiKey": [:]]]], "cannot be combined"),
            (["members": ["jwt", "apiKey"]], "map of options"),
        ] as [(ConfigNode, String)])
    func `mistakes are told`(options: ConfigNode, text: String) {
        var reader = OptionsReader(options, keyPath: "anyOf")
        _ = AnyOf(options: &reader)
        let errors = reader.finish().map { "\($0)" }
        #expect(errors.contains { $0.contains(text) }, "\(errors)")
    }
}
