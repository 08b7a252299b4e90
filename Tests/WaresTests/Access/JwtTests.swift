import Authentication
import Credentials
import Foundation
import HttpWareTesting
import Testing
import GatewayWares
import Wares

@testable import HttpWare

@Suite struct JwtTests {
    private static let fixtures = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "CredentialsTests/Fixtures")

    private static func text(_ name: String) throws -> String {
        try String(contentsOf: fixtures.appending(path: name), encoding: .utf8)
    }

    private static func token(_ name: String) throws -> String {
        let line = try text("tokens.txt").split(separator: "\n").first { $0.contains("|\(name)|") }
        return String(try #require(line?.split(separator: "|", omittingEmptySubsequences: false).last))
    }

    private static func path(_ name: String) -> ConfigNode {
        ConfigNode(.scalar(fixtures.appending(path: name).path, isQuoted: true))
    }

    private func options(_ more: ConfigNode = [:]) -> ConfigNode {
        ConfigNode(
            .map(
                [ConfigNode.Entry(key: "jwksFile", location: .code, value: Self.path("jwks.json"))]
                    + (more.entries ?? [])))
    }

    private func bearer(_ token: String) throws -> HttpFields {
        var fields = HttpFields()
        try fields.append(.authorization, "Bearer \(token)")
        return fields
    }

    private func good() throws -> HttpFields { try bearer(Self.token("RS256 by PyJWT")) }

    // MARK: Letting in

    @Test(arguments: ["RS256", "PS256", "ES256", "EdDSA"])
    func `a client that shows a good token gets in, and the token does not go upstream`(algorithm: String) async throws
    {
        let seen = Seen("{jwt.scope} of {jwt.iss}{jwt.none}")
        let exchange = try TestExchange([try TestExchange.make(Jwt.self, options()), seen])
        for _ in 0..<2 {
            #expect(
                try await exchange.send(.get("/", fields: bearer(Self.token("\(algorithm) by joserfc")))).status == .ok)
        }
        #expect(exchange.upstream.requests.allSatisfy { !$0.fields.contains(.authorization) })
        #expect(
            seen.principals
                == Array(repeating: ["jwt ada", "read write of https://login.example.com"], count: 2).flatMap(\.self))
    }

    // MARK: Several issuers

    private func several() throws -> Jwt {
        var verifier = JwtVerifier()
        verifier.algorithms = [.rs256, .hs256]
        let login = try JsonWebKeySet(json: Array(Self.text("jwks.json").utf8), hasSecrets: false)
        let secret = try #require(VerifyingKey(secret: Array(SignedToken.secret.utf8)))
        return Jwt(
            verifier,
            issuers: [
                .init("https://login.example.com", keys: KeySource(login)),
                .init(
                    "https://partner.example", audience: ["orders"],
                    keys: KeySource(JsonWebKeySet([JsonWebKey(secret)]))),
            ])
    }

    @Test func `a token is checked with the keys and the audience of the issuer that it names`() async throws {
        let exchange = try TestExchange([several()])
        let partner = #""iss":"https://partner.example""#
        let tokens = [
            (try Self.token("RS256 by PyJWT"), 200), (SignedToken.make(partner + #","aud":"orders""#), 200),
            (SignedToken.make(partner + #","aud":"other""#), 401), (SignedToken.make(partner), 401),
            // Signed by one issuer in the name of the other, of a third one, or of none.
            (SignedToken.make(#""iss":"https://login.example.com""#), 401),
            (SignedToken.make(#""iss":"https://third.example","aud":"orders""#), 401),
            (SignedToken.make(#""aud":"orders""#), 401), (SignedToken.make(#""iss":5"#), 401), ("a.b.c", 401),
        ]
        for _ in 0..<2 {
            for (token, status) in tokens {
                #expect(try await exchange.send(.get("/", fields: bearer(token))).status.code == status, "\(token)")
            }
        }
    }

    private static let badLists: [ConfigNode] = [
        [], [["issuer": "a"]], [["audience": "a"]], [["issuer": "https://a.example"], ["issuer": "https://a.example"]],
        [["issuer": "https://a.example", "keys": "b"]],
    ]

    @Test(arguments: badLists.indices)
    func `an invalid list of issuers is a mistake`(index: Int) {
        #expect(throws: ConfigError.self) { try TestExchange.make(Jwt.self, ["issuers": Self.badLists[index]]) }
    }

    @Test(arguments: ["", "issuer", "audience", "jwksUrl", "key"])
    func `issuers stand in place of the options for one issuer`(other: String) throws {
        let issuers: ConfigNode = [
            ["issuer": "https://a.example"], ["issuer": "b", "jwksUrl": "https://b.example/keys", "audience": ["c"]],
        ]
        guard !other.isEmpty else {
            _ = try TestExchange.make(Jwt.self, ["issuers": issuers])
            return
        }
        #expect(throws: ConfigError.self) {
            try TestExchange.make(Jwt.self, ["issuers": issuers, other: "https://0123456789012345678901234567890123"])
        }
    }

    @Test func `one person is told from another by issuer and subject, else by the token`() async throws {
        let seen = Identities()
        let exchange = try TestExchange([try SignedToken.ware(), seen])
        let claims = [
            #""iss":"a","sub":"ada""#, #""sub":"ada","iss":"a","scope":"x""#, #""iss":"b","sub":"ada""#,
            #""sub":"ada""#, #""sub":"ada","scope":"x""#, #""iss":"a""#, #""iss":"a","scope":"x""#,
            #""iss":"a","sub":"""#, #""iss":"a","sub":"1""#, #""iss":"a","sub":1"#,
        ]
        for claims in claims {
            var fields = HttpFields()
            try fields.append(.authorization, SignedToken.bearer(claims))
            #expect(try await exchange.send(.get("/", fields: fields)).status == .ok)
        }
        #expect(seen.same == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8])
        #expect(seen.names[3] == "ada" && seen.names[5].hasPrefix("token "))
    }

    @Test func `identity names the claims that tell persons apart`() async throws {
        let seen = Identities()
        let tenants = try TestExchange([try SignedToken.ware(["identity": ["iss", "tid", "sub"]]), seen])
        let tokens = try TestExchange([try SignedToken.ware(["identity": []]), seen])
        for (exchange, claims) in [
            (tenants, #""iss":"a","tid":"1","sub":"ada""#), (tenants, #""iss":"a","tid":"2","sub":"ada""#),
            (tenants, #""iss":"a","tid":"1","sub":"ada","scope":"x""#), (tenants, #""iss":"a","sub":"ada""#),
            (tokens, #""iss":"a","sub":"ada","jti":"1""#), (tokens, #""iss":"a","sub":"ada","jti":"2""#),
        ] {
            var fields = HttpFields()
            try fields.append(.authorization, SignedToken.bearer(claims))
            #expect(try await exchange.send(.get("/", fields: fields)).status == .ok)
        }
        #expect(seen.same == [0, 1, 0, 2, 3, 4])
    }

    @Test func `a field that a claim becomes takes its twins along, and so does one that carries the token`()
        async throws
    {
        let ware = try SignedToken.ware([
            "claimsToHeaders": ["sub": "X-User", "org": "X-Org"], "from": "header.X-Token",
        ])
        let exchange = try TestExchange([ware])
        var fields: HttpFields = [
            "X_User": "root", "x_org": "evil", "X_Token": "evil", "X-Org": "evil", "X_Other": "stays",
        ]
        try fields.append("X-Token", SignedToken.make(#""sub":"ada""#))
        #expect(try await exchange.send(.get("/", fields: fields)).status == .ok)
        let sent = try #require(exchange.upstream.requests.first).fields
        #expect(sent["X-User"] == "ada" && sent["X_Other"] == "stays")
        for name in ["X_User", "x_org", "X-Org", "X_Token", "X-Token"] as [FieldName] {
            #expect(!sent.contains(name), "\(name)")
        }
    }

    @Test func `with forward the origin server sees the token`() async throws {
        let exchange = try TestExchange(Jwt.self, options: options(["forward": "true"]))
        _ = try await exchange.send(.get("/", fields: good()))
        #expect(exchange.upstream.requests.first?.fields[.authorization]?.hasPrefix("Bearer ey") == true)
    }

    @Test(arguments: [("key", "rsa-1.pem"), ("key", "p256-1.pem"), ("key", "ed-1.pem")])
    func `one key as PEM will do`(option: String, file: String) async throws {
        let pem = ConfigNode(.scalar(try Self.text(file), isQuoted: true))
        let exchange = try TestExchange(
            Jwt.self, options: ConfigNode(.map([.init(key: option, location: .code, value: pem)])))
        let algorithm = ["rsa-1.pem": "RS256", "p256-1.pem": "ES256", "ed-1.pem": "EdDSA"][file] ?? ""
        #expect(try await exchange.send(.get("/", fields: bearer(Self.token("\(algorithm) by PyJWT")))).status == .ok)
    }

    @Test func `HS256 with a secret will do, where it was asked for`() async throws {
        let options: ConfigNode = ["key": "a secret of the tests, thirty-two bytes and more", "algorithms": ["HS256"]]
        let exchange = try TestExchange(Jwt.self, options: options)
        for token in try Self.text("hs256.txt").split(separator: "\n") {
            #expect(try await exchange.send(.get("/", fields: bearer(String(token)))).status == .ok)
        }
        #expect(try await exchange.send(.get("/", fields: good())).status == .unauthorized)
    }

    @Test func `a token is looked for where from says, and taken out there`() async throws {
        let token = try Self.token("ES256 by PyJWT")
        let exchange = try TestExchange(
            Jwt.self, options: options(["from": ["header.X-Token", "query.t", "cookie.s"]]))
        #expect(try await exchange.send(.get("/p?a=1&t=\(token)")).status == .ok)
        var fields = HttpFields()
        try fields.append("X-Token", token)
        #expect(try await exchange.send(.get("/", fields: fields)).status == .ok)
        fields = HttpFields()
        try fields.append(.cookie, "a=1; s=\(token)")
        #expect(try await exchange.send(.get("/", fields: fields)).status == .ok)
        #expect(exchange.upstream.requests.map(\.receivedTarget) == ["/p?a=1", "/", "/"])
        #expect(exchange.upstream.requests.last?.fields[.cookie] == "a=1")
        #expect(try await exchange.send(.get("/", fields: good())).status == .unauthorized)
        #expect(Redaction.target("/?t=\(token)") == "/?t=…")
        #expect(try await exchange.send(.get("/p?t=\(token)", fields: fields)).status == .badRequest)
    }

    // MARK: Claims as fields

    @Test func `claims become fields, and those of the client go, whatever the token says`() async throws {
        let options = options(["claimsToHeaders": ["sub": "X-User", "scope": "X-Scope", "absent": "X-Absent"]])
        let exchange = try TestExchange(Jwt.self, options: options)
        for _ in 0..<2 {
            var fields = try good()
            for name in ["x-user", "X-USER", "X-Absent"] as [FieldName] { try fields.append(name, "root") }
            _ = try await exchange.send(.get("/", fields: fields))
        }
        for request in exchange.upstream.requests {
            #expect(request.fields.values(of: "X-User") == ["ada"])
            #expect(request.fields.values(of: "X-Scope") == ["read write"])
            #expect(!request.fields.contains("X-Absent"))
        }
    }

    @Test func `a claim in another language becomes a field`() async throws {
        let exchange = try TestExchange(Jwt.self, options: options(["claimsToHeaders": ["sub": "X-User"]]))
        #expect(
            try await exchange.send(.get("/", fields: bearer(Self.token("claims in other languages")))).status == .ok)
        #expect(exchange.upstream.requests.first?.fields["X-User"] == "Ада Лавлейс")
    }

    // MARK: Refusing

    @Test func `RFC 6750 §3.1, without a token there is a challenge without an error`() async throws {
        let exchange = try TestExchange(Jwt.self, options: options())
        for fields in [[:], ["Authorization": "Basic YTpi"], ["Authorization": "Bearer"]] as [HttpFields] {
            let response = try await exchange.send(.get("/", fields: fields))
            #expect(response.status == .unauthorized)
            #expect(response.fields.values(of: .wwwAuthenticate) == ["Bearer realm=\"httpware\""])
            #expect(response.fields[.contentType] == "application/problem+json")
        }
    }

    @Test func `RFC 6750 §3.1, a token that is not good is invalid_token, and nothing of it is told`() async throws {
        let exchange = try TestExchange(Jwt.self, options: options())
        let token = try Self.token("RFC 7519 §4.1.4: expired a second beyond the skew")
        let response = try await exchange.send(.get("/", fields: bearer(token)))
        #expect(response.status == .unauthorized)
        let challenge =
            "Bearer realm=\"httpware\", error=\"invalid_token\", error_description=\"the token has expired\""
        #expect(response.fields.values(of: .wwwAuthenticate) == [challenge])
        let problem =
            #"{"type":"about:blank","title":"Unauthorized","status":401,"detail":"the token has expired","id":"#
        #expect(response.content.text?.hasPrefix(problem) == true)
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test func `RFC 6750 §3.1, two tokens are invalid_request`() async throws {
        var fields = try good()
        try fields.append(.authorization, "Bearer x")
        let response = try await TestExchange(Jwt.self, options: options()).send(.get("/", fields: fields))
        #expect(response.status == .badRequest)
        #expect(response.fields[.wwwAuthenticate]?.contains("error=\"invalid_request\"") == true)
    }

    @Test func `RFC 6750 §3.1, what the scope does not allow is 403, also the second time`() async throws {
        let exchange = try TestExchange(Jwt.self, options: options(["require": ["scope": ["read", "admin"]]]))
        for _ in 0..<2 {
            let response = try await exchange.send(.get("/", fields: good()))
            #expect(response.status == .forbidden)
            let challenge = try #require(response.fields[.wwwAuthenticate])
            #expect(challenge.contains("error=\"insufficient_scope\"") && challenge.hasSuffix(", scope=\"read admin\""))
        }
        #expect(
            try await TestExchange(Jwt.self, options: options(["require": ["scope": ["read"]]])).send(
                .get("/", fields: good())
            ).status == .ok)
        #expect(
            try await TestExchange(Jwt.self, options: options(["require": ["sub": "eve"]])).send(
                .get("/", fields: good())
            ).status == .forbidden)
    }

    @Test func `RFC 9110 §11.7, on a forward listener it reads Proxy-Authorization`() async throws {
        var setting = TestExchange.Setting()
        setting.isForward = true
        let exchange = try TestExchange(Jwt.self, options: options(), setting: setting)
        let refused = try await exchange.send(.get("http://a.test/", fields: good()))
        #expect(refused.status == .proxyAuthenticationRequired)
        #expect(refused.fields[.proxyAuthenticate] == "Bearer realm=\"httpware\"")
        var request = try HttpRequest(.get, "http://a.test/", fields: ["Authorization": "for the origin"])
        request.proxyAuthorization = "Bearer \(try Self.token("RS256 by PyJWT"))"
        #expect(try await exchange.send(request).status == .ok)
        #expect(exchange.upstream.requests.first?.fields[.authorization] == "for the origin")
        request.proxyAuthorization = "Bearer x.y.z"
        #expect(try await exchange.send(request).fields[.proxyAuthenticate]?.contains("invalid_token") == true)
    }

    @Test func `a token that was found good is refused once it has expired`() async throws {
        let exchange = try TestExchange(Jwt.self, options: options())
        #expect(try await exchange.send(.get("/", fields: good())).status == .ok)
        await exchange.advance(by: .seconds(3659))
        #expect(try await exchange.send(.get("/", fields: good())).status == .ok)
        await exchange.advance(by: .seconds(1))
        #expect(try await exchange.send(.get("/", fields: good())).status == .unauthorized)
    }

    // MARK: Keys by URL

    private static let url = "https://login.example.com/keys"

    private func fetching(_ calls: ScriptedCalls, _ place: KeySource.Place = .url(url)) throws -> TestExchange {
        try TestExchange([Jwt(JwtVerifier(), keys: KeySource(place, ttl: .seconds(600), client: calls))])
    }

    private func keySet(without kid: String? = nil) throws -> ScriptedCalls.Step {
        let json = try JsonValue(Self.text("jwks.json").utf8)
        let keys = json["keys"]?.elements?.filter { $0["kid"]?.string != kid } ?? []
        return ScriptedCalls.json("{\"keys\":[\(keys.map(\.json).joined(separator: ","))]}".utf8)
    }

    @Test func `keys are fetched once for all who wait, without redirects and bounded`() async throws {
        let calls = ScriptedCalls()
        calls.script(Self.url, .hold)
        let exchange = try fetching(calls)
        var pending: [TestExchange.Pending] = []
        for _ in 0..<10 { pending.append(await exchange.start(.get("/", fields: try good()))) }
        #expect(calls.requests.count == 1)
        calls.release(with: try keySet())
        for one in pending { #expect(try await one.response().status == .ok) }
        #expect(calls.requests.count == 1)
        #expect(calls.limits.first?.redirects == 0)
        #expect(calls.limits.first?.content == .kibibytes(256))
    }

    @Test func `a client that leaves does not end the fetch for the others`() async throws {
        let calls = ScriptedCalls()
        calls.script(Self.url, .hold)
        let exchange = try fetching(calls)
        let first = await exchange.start(.get("/", fields: try good()))
        let second = await exchange.start(.get("/", fields: try good()))
        await first.leave()
        calls.release(with: try keySet())
        #expect(try await second.response().status == .ok)
    }

    @Test(arguments: [302, 404, 500])
    func `without keys no client gets in, for now`(status: Int) async throws {
        let calls = ScriptedCalls()
        calls.script(
            Self.url,
            .respond(HttpResponse(try #require(HttpStatus(status)), fields: ["Location": "http://10.0.0.1/keys"])),
            try keySet())
        let exchange = try fetching(calls)
        for _ in 0..<3 {
            let response = try await exchange.send(.get("/", fields: good()))
            #expect(response.status == .serviceUnavailable)
            #expect(response.fields.contains(.retryAfter))
        }
        // Others are told so at once, and it is tried again later.
        #expect(calls.requests.count == 1)
        await exchange.advance(by: .seconds(2))
        #expect(try await exchange.send(.get("/", fields: good())).status == .ok)
    }

    @Test(arguments: ["", "[]", "{\"keys\":[]}", "<html>"])
    func `garbage in place of keys gives no keys`(body: String) async throws {
        let calls = ScriptedCalls()
        calls.script(Self.url, ScriptedCalls.json(body.utf8))
        #expect(try await fetching(calls).send(.get("/", fields: good())).status == .serviceUnavailable)
    }

    @Test func `old keys stay in use when they cannot be fetched again`() async throws {
        let calls = ScriptedCalls()
        calls.script(Self.url, try keySet(), .fail(GatewayError(.upstream, .connectionRefused, "refused")))
        let exchange = try fetching(calls)
        for algorithm in ["RS256", "ES256", "PS256", "EdDSA"] {
            #expect(
                try await exchange.send(.get("/", fields: bearer(Self.token("\(algorithm) by PyJWT")))).status == .ok)
            await exchange.advance(by: .seconds(601))
        }
        #expect(calls.requests.count == 4)
    }

    @Test func `an unknown kid fetches once, and again after ten seconds only`() async throws {
        let calls = ScriptedCalls()
        calls.script(Self.url, try keySet(without: "rsa-1"), try keySet(without: "rsa-1"), try keySet())
        let exchange = try fetching(calls)
        #expect(try await exchange.send(.get("/", fields: bearer(Self.token("ES256 by PyJWT")))).status == .ok)
        for _ in 0..<5 { #expect(try await exchange.send(.get("/", fields: good())).status == .unauthorized) }
        #expect(calls.requests.count == 2)
        await exchange.advance(by: .seconds(10))
        #expect(try await exchange.send(.get("/", fields: good())).status == .ok)
        #expect(calls.requests.count == 3)
    }

    @Test func `a key that was withdrawn opens no more, also for tokens that were found good`() async throws {
        let calls = ScriptedCalls()
        calls.script(Self.url, try keySet(), try keySet(without: "rsa-1"))
        let exchange = try fetching(calls)
        #expect(try await exchange.send(.get("/", fields: good())).status == .ok)
        await exchange.advance(by: .seconds(601))
        // This one still uses the old keys, and has new ones fetched.
        _ = try await exchange.send(.get("/", fields: good()))
        #expect(try await exchange.send(.get("/", fields: good())).status == .unauthorized)
    }

    @Test func `OpenID Connect Discovery §4, an issuer's metadata say where its keys are`() async throws {
        let calls = ScriptedCalls()
        let issuer = "https://login.example.com/tenant"
        calls.script(
            "\(issuer)/.well-known/openid-configuration",
            ScriptedCalls.json("{\"issuer\":\"\(issuer)\",\"jwks_uri\":\"https://keys.example.com/k\"}".utf8))
        calls.script("https://keys.example.com/k", try keySet())
        let exchange = try fetching(calls, .issuer(issuer))
        #expect(try await exchange.send(.get("/", fields: good())).status == .ok)
        #expect(calls.limits.map(\.deniesPrivate) == [false, true])
    }

    @Test(arguments: [
        #"{"issuer":"https://evil.example.com","jwks_uri":"https://login.example.com/keys"}"#,
        #"{"issuer":"https://login.example.com"}"#,
        #"{"issuer":"https://login.example.com","jwks_uri":"http://login.example.com/keys"}"#,
        #"{"issuer":"https://login.example.com","jwks_uri":"file:///etc/passwd"}"#, "x",
    ])
    func `OpenID Connect Discovery §4.3, metadata of another issuer, or that lead elsewhere, are not believed`(
        document: String
    ) async throws {
        let calls = ScriptedCalls()
        calls.script("https://login.example.com/.well-known/openid-configuration", ScriptedCalls.json(document.utf8))
        calls.script(Self.url, try keySet())
        let exchange = try fetching(calls, .issuer("https://login.example.com"))
        #expect(try await exchange.send(.get("/", fields: good())).status == .serviceUnavailable)
        #expect(calls.requests.count == 1)
    }

    // MARK: Options

    @Test(
        arguments: [
            [:], ["jwksUrl": "login.example.com"], ["jwksUrl": "https://user@login.example.com/"],
            ["jwksUrl": "ftp://x/"], ["issuer": "accounts"],
            ["key": "too short", "algorithms": ["HS256"]], ["key": "a secret of the tests, thirty-two bytes and more"],
            ["key": "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"],
            ["jwksFile": "/nonexistent/keys.json"],
            ["jwksUrl": "https://a.test/", "algorithms": ["none"]], ["jwksUrl": "https://a.test/", "algorithms": []],
            ["jwksUrl": "https://a.test/", "algorithms": ["RS1"]],
            ["jwksUrl": "https://a.test/", "algorithms": ["HS256"]],
            ["jwksUrl": "https://a.test/", "key": "a secret of the tests, thirty-two bytes and more"],
            ["jwksUrl": "https://a.test/", "clockSkew": "11m"],
            ["jwksUrl": "https://a.test/", "jwksTtl": "1s"], ["jwksUrl": "https://a.test/", "from": ["body.x"]],
            ["jwksUrl": "https://a.test/", "from": []],
            ["jwksUrl": "https://a.test/", "claimsToHeaders": ["sub": "Content-Length"]],
            ["jwksUrl": "https://a.test/", "claimsToHeaders": ["sub": "Host"]],
            ["jwksUrl": "https://a.test/", "forward": "maybe"], ["jwksUrl": "https://a.test/", "audiense": "x"],
        ] as [ConfigNode])
    func `options that cannot be meant are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(Jwt.self, options) }
    }

    @Test func `a key set that lacks the algorithm says which to write`() throws {
        let error = #expect(throws: ConfigError.self) {
            try TestExchange.make(Jwt.self, options(["algorithms": ["HS256"]]))
        }
        #expect(
            error?.message.contains("write algorithms: [RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA]")
                == true)
    }

    @Test(
        arguments: [
            (["issuer": "https://a.example"], true),
            (["issuer": "https://a.example", "jwksUrl": "https://a.example/keys"], true),
            (["issuer": "https://a.example", "audience": "orders"], false),
            (["issuer": "https://a.example", "audience": []], false),
            (["key": "a secret of thirty-two bytes or more", "algorithms": ["HS256"]], false),
            (["issuers": [["issuer": "https://a.example"]]], false),
        ] as [(ConfigNode, Bool)])
    func `an issuer without an audience draws a warning`(options: ConfigNode, isWarned: Bool) {
        var reader = OptionsReader(options, keyPath: "jwt")
        _ = Jwt(options: &reader)
        let found = reader.finish()
        #expect(found.contains { $0.message.hasPrefix("has no audience") } == isWarned, "\(found)")
        #expect(!found.contains { $0.severity == .error }, "\(found)")
    }

    @Test func `no error shows a secret`() throws {
        let error = #expect(throws: ConfigError.self) {
            try TestExchange.make(Jwt.self, ["key": "hunter2", "algorithms": ["HS256"]])
        }
        #expect(error?.description.contains("hunter2") == false)
    }
}
