import HttpCaching
import HttpWareTesting
import Testing

@testable import Authentication
import Credentials
@testable import HttpWare
@testable import GatewayWares

@Suite(.timeLimit(.minutes(5))) struct OidcLoginTests {
    // MARK: Without a session

    @Test func `a page load without a session goes to the provider with PKCE, state and nonce`() async throws {
        let stand = try OidcStand { $0.change = { $0.scopes = ["openid", "email"] } }
        let response = try await stand.send("/orders?a=b")
        #expect(response.status == .found)
        #expect(response.fields[.cacheControl] == "no-store")
        let sent = try OidcStand.parameters(response)
        #expect(sent[""] == "\(OidcStand.issuer)/authorize")
        #expect(sent["response_type"] == "code")
        #expect(sent["client_id"] == "app")
        #expect(sent["scope"] == "openid email")
        #expect(sent["redirect_uri"] == "https://example.test/oauth2/callback")
        #expect(sent["code_challenge_method"] == "S256")
        for name in ["state", "nonce", "code_challenge"] { #expect(sent[name]?.utf8.count == 43, "\(name)") }
        let cookie = try #require(response.fields[.setCookie])
        #expect(cookie.hasPrefix("__Host-session.login-\(try #require(sent["state"]).prefix(8))="))
        #expect(cookie.hasSuffix("; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure"))
        #expect(stand.exchange.upstream.requests.isEmpty)
        let other = try OidcStand.parameters(await stand.send("/orders?a=b"))
        for name in ["state", "nonce", "code_challenge"] { #expect(other[name] != sent[name], "\(name)") }
    }

    @Test func `anything but a page load without a session is refused with 401`() async throws {
        let stand = try OidcStand()
        let requests: [(HttpMethod, HttpFields)] = [
            (.get, OidcStand.script), (.get, ["Accept": "application/json"]), (.get, [:]),
            (.get, ["Accept": "text/html", "X-Requested-With": "XMLHttpRequest"]), (.post, OidcStand.page),
            (.head, OidcStand.page), (.put, OidcStand.page), (.options, OidcStand.page),
            (.get, ["Sec-Fetch-Mode": "websocket"]),
        ]
        for (method, fields) in requests {
            let response = try await stand.send("/orders", fields, method: method)
            #expect(response.status == .unauthorized, "\(method) \(fields)")
            #expect(response.fields[.wwwAuthenticate]?.hasPrefix("Cookie ") == true)
            #expect(!response.fields.contains(.setCookie))
        }
        #expect(stand.calls.requests.isEmpty)
        #expect(stand.exchange.upstream.requests.isEmpty)
    }

    @Test func `with unauthenticated refuse a page load is 401, too`() async throws {
        let stand = try OidcStand { $0.change = { $0.unauthenticated = .refuse } }
        #expect(try await stand.send("/orders").status == .unauthorized)
    }

    @Test func `on a forward listener every request is refused`() async throws {
        var setting = TestExchange.Setting()
        setting.isForward = true
        let exchange = try TestExchange([try OidcStand().ware], setting: setting)
        #expect(try await exchange.send(.get("http://a.example/", fields: OidcStand.page)).status == .forbidden)
    }

    // MARK: A login

    @Test func `after a login the browser is where it wanted to go, and its requests pass with the user's claims`()
        async throws
    {
        let seen = Seen("{jwt.email}")
        let stand = try OidcStand { $0.behind = [seen] }
        let back = try await stand.logIn()
        #expect(back.status == .seeOther)
        #expect(back.fields[.location] == "/orders?a=b")
        #expect(back.fields[.cacheControl] == "no-store")
        #expect(Array(stand.cookies.keys) == ["__Host-session"])
        let form = try #require(stand.tokenCalls.first)
        #expect(
            form.hasPrefix(
                "grant_type=authorization_code&code=c1&redirect_uri=https%3A%2F%2Fexample.test%2Foauth2%2Fcallback&code_verifier="
            ))
        let call = try #require(stand.calls.requests.last { $0.receivedTarget == OidcStand.token })
        #expect(call.fields[.authorization] == "Basic YXBwOmElMjBzZWNyZXQ=")
        #expect(stand.calls.limits.allSatisfy { $0.redirects == 0 })
        for fields in [OidcStand.page, OidcStand.script, ["X-User": "root", "x_user": "root", "X-Email": "root"]] {
            #expect(try await stand.send("/orders", fields, also: "theme=dark").status == .ok)
        }
        #expect(try await stand.send("/orders", OidcStand.script, method: .post).status == .ok)
        for request in stand.exchange.upstream.requests {
            #expect(request.fields.values(of: "X-User") == ["ada"])
            #expect(request.fields.values(of: "X-Email") == ["ada@example.com"])
            #expect(!request.fields.contains("x_user"))
            #expect(!request.fields.contains(.authorization))
        }
        #expect(
            stand.exchange.upstream.requests.map { $0.fields[.cookie] } == [
                "theme=dark", "theme=dark", "theme=dark", nil,
            ])
        #expect(seen.principals.prefix(2) == ["oidcLogin ada", "ada@example.com"])
        #expect(stand.ware.sessions.counts.count(.completed) == 1)
    }

    @Test func `the PKCE challenge is the digest of the verifier - RFC 7636 §4.2`() async throws {
        let stand = try OidcStand()
        let sent = try OidcStand.parameters(await stand.send("/"))
        let idToken = try OidcStand.sign(stand.claims(nonce: try #require(sent["nonce"])))
        stand.calls.script(OidcStand.token, OidcStand.tokens(idToken))
        try await stand.send("/oauth2/callback?code=c1&state=\(try #require(sent["state"]))")
        let verifier = try #require(stand.tokenCalls.first?.split(separator: "=").last)
        #expect(verifier.utf8.count == 43)
        let digest = Array(verifier.utf8).withUnsafeBytes { Digest256(of: $0) }
        #expect(sent["code_challenge"] == Base64.encodeUrl(digest.bytes))
    }

    @Test(arguments: [
        ("//evil.example/x", "/evil.example/x"), ("/\\evil.example", "/evil.example"), ("/a//b", "/a//b"),
        ("///\\/evil.example", "/evil.example"), ("/%2F%2Fevil.example", "/%2F%2Fevil.example"),
        ("/?next=//evil.example", "/?next=//evil.example"), ("http://evil.example/", "/http://evil.example/"),
        ("/" + String(repeating: "a", count: 2001), "/"), ("/a b", "/"), ("/a\tb", "/"), ("", "/"),
    ])
    func `the page to return to is a path of this host`(target: String, expected: String) {
        #expect(OidcPendingLogin.returnTarget(target) == expected)
    }

    @Test func `a client secret goes in the form if the provider takes it only there`() async throws {
        let stand = try OidcStand()
        stand.calls.script(
            OidcStand.metadata,
            ScriptedCalls.json(
                OidcStand.metadata(#","token_endpoint_auth_methods_supported":["client_secret_post"]"#).utf8))
        #expect(try await stand.logIn().status == .seeOther)
        #expect(stand.tokenCalls.first?.hasSuffix("&client_id=app&client_secret=a%20secret") == true)
    }

    @Test func `a client without a secret is a public one`() async throws {
        let stand = try OidcStand { $0.clientSecret = nil }
        #expect(try await stand.logIn().status == .seeOther)
        #expect(stand.tokenCalls.first?.hasSuffix("&client_id=app") == true)
    }

    @Test func `with passToken the access token goes upstream, and nothing of the client's in its place`() async throws
    {
        let stand = try OidcStand { $0.passesToken = true }
        try await stand.logIn()
        #expect(try await stand.send("/", ["Authorization": "Bearer forged"]).status == .ok)
        #expect(stand.exchange.upstream.requests.last?.fields.values(of: .authorization) == ["Bearer access1"])
    }

    // MARK: The way back

    @Test func `a callback that this browser did not begin is refused, and so is a second one`() async throws {
        let stand = try OidcStand()
        let sent = try OidcStand.parameters(await stand.send("/"))
        let (state, nonce) = (try #require(sent["state"]), try #require(sent["nonce"]))
        stand.calls.script(OidcStand.token, OidcStand.tokens(try OidcStand.sign(stand.claims(nonce: nonce))))
        let begun = stand.cookies
        let bad = [
            "", "?code=c1", "?state=\(state)", "?state=\(state)&code=", "?state=\(state)&code=c1&code=c2",
            "?state=\(state)&state=\(state)&code=c1", "?state=\(state)x&code=c1", "?state=\(state.prefix(8))&code=c1",
            "?state=\(state.dropLast())_&code=c1", "?state=\(state)&code=c%0a1", "?state=\(state)&code=c1&error=x",
        ]
        for query in bad {
            // A login begins again where the answer could be that of another login.
            let status = try await stand.send("/oauth2/callback\(query)").status
            #expect(
                status == .badRequest || status == .found && query.contains("&code=c1") && query.contains("state="),
                "\(query)")
        }
        stand.cookies = begun
        #expect(
            try await stand.send("/oauth2/callback?state=\(state)&code=c1", method: .post).status == .methodNotAllowed)
        #expect(stand.tokenCalls.isEmpty)
        #expect(try await stand.send("/oauth2/callback?state=\(state)&code=c1").status == .seeOther)
        stand.cookies = begun
        #expect(try await stand.send("/oauth2/callback?state=\(state)&code=c1").status == .found)
        #expect(stand.tokenCalls.count == 1)
        #expect(stand.exchange.upstream.requests.isEmpty)
    }

    @Test func `a callback of a logged-in browser goes on to its page`() async throws {
        let stand = try OidcStand()
        let sent = try OidcStand.parameters(await stand.send("/orders?x=1"))
        let (state, nonce) = (try #require(sent["state"]), try #require(sent["nonce"]))
        let pending = stand.cookies
        stand.calls.script(OidcStand.token, OidcStand.tokens(try OidcStand.sign(stand.claims(nonce: nonce))))
        #expect(try await stand.send("/oauth2/callback?state=\(state)&code=c1").fields[.location] == "/orders?x=1")
        for query in ["?state=\(state)&code=c1", "?state=other&code=c1", "", "?error=access_denied"] {
            let again = try await stand.send("/oauth2/callback\(query)")
            #expect(again.status == .seeOther && again.fields[.location] == "/", "\(query)")
            #expect(again.fields[.cacheControl] == "no-store")
        }
        // The browser has restored the cookie of the login, too.
        stand.cookies.merge(pending) { kept, _ in kept }
        let restored = try await stand.send("/oauth2/callback?state=\(state)&code=c1")
        #expect(restored.status == .seeOther && restored.fields[.location] == "/orders?x=1")
        #expect(stand.tokenCalls.count == 1)
    }

    @Test func `a callback without a session begins a login again, once`() async throws {
        let stand = try OidcStand()
        let state = try #require(try OidcStand.parameters(await stand.send("/"))["state"])
        stand.cookies = [:]
        let again = try await stand.send("/oauth2/callback?state=\(state)&code=c1")
        #expect(again.status == .found)
        let sent = try OidcStand.parameters(again)
        let (second, nonce) = (try #require(sent["state"]), try #require(sent["nonce"]))
        // A browser that keeps no cookies does not go back and forth.
        let kept = stand.cookies
        stand.cookies = [:]
        #expect(try await stand.send("/oauth2/callback?state=\(second)&code=c2").status == .badRequest)
        stand.cookies = kept
        stand.calls.script(OidcStand.token, OidcStand.tokens(try OidcStand.sign(stand.claims(nonce: nonce))))
        let back = try await stand.send("/oauth2/callback?state=\(second)&code=c2")
        #expect(back.status == .seeOther && back.fields[.location] == "/")
        // A script is told that it needs a login.
        stand.cookies = [:]
        #expect(
            try await stand.send("/oauth2/callback?state=\(state)&code=c1", OidcStand.script).status == .unauthorized)
    }

    @Test func `a login holds for ten minutes`() async throws {
        for (wait, status) in [(599, 303), (600, 302)] {
            let stand = try OidcStand()
            let sent = try OidcStand.parameters(await stand.send("/"))
            await stand.advance(by: wait)
            let idToken = try OidcStand.sign(stand.claims(nonce: try #require(sent["nonce"])))
            stand.calls.script(OidcStand.token, OidcStand.tokens(idToken))
            let back = try await stand.send("/oauth2/callback?code=c1&state=\(try #require(sent["state"]))")
            #expect(back.status.code == status)
        }
    }

    @Test func `several logins of one browser stand side by side, at most four`() async throws {
        let stand = try OidcStand()
        var sent: [[String: String]] = []
        for number in 0..<6 {
            sent.append(try OidcStand.parameters(await stand.send("/page\(number)")))
            await stand.advance(by: 1)
        }
        #expect(stand.cookies.count == 4)
        let begun = stand.cookies
        for (number, login) in sent.enumerated() {
            stand.cookies = begun
            let idToken = try OidcStand.sign(stand.claims(nonce: try #require(login["nonce"])))
            stand.calls.script(OidcStand.token, OidcStand.tokens(idToken))
            let back = try await stand.send("/oauth2/callback?code=c1&state=\(try #require(login["state"]))")
            #expect(back.status == (number < 2 ? .found : .seeOther))
            if number >= 2 { #expect(back.fields[.location] == "/page\(number)") }
        }
    }

    @Test(arguments: [("access_denied", "access_denied"), ("%3Cscript%3E", "an unknown error")])
    func `the provider's refusal is told, and nothing unknown is repeated`(code: String, shown: String) async throws {
        let stand = try OidcStand()
        let sent = try OidcStand.parameters(await stand.send("/"))
        let back = try await stand.send("/oauth2/callback?error=\(code)&state=\(try #require(sent["state"]))")
        #expect(back.status == .forbidden)
        #expect(back.content.text?.contains("he provider refused the login: \(shown)") == true)
        #expect(stand.tokenCalls.isEmpty)
    }

    @Test func `RFC 9207 §2.4, an answer in the name of another provider is refused`() async throws {
        for (issuer, promises, status) in [
            ("", false, 303), ("&iss=https%3A%2F%2Flogin.example.com", true, 303), ("", true, 502),
            ("&iss=https%3A%2F%2Fevil.example", false, 502),
        ] {
            let stand = try OidcStand()
            stand.calls.script(
                OidcStand.metadata,
                ScriptedCalls.json(
                    OidcStand.metadata(#","authorization_response_iss_parameter_supported":\#(promises)"#).utf8))
            let sent = try OidcStand.parameters(await stand.send("/"))
            let idToken = try OidcStand.sign(stand.claims(nonce: try #require(sent["nonce"])))
            stand.calls.script(OidcStand.token, OidcStand.tokens(idToken))
            let back = try await stand.send("/oauth2/callback?code=c1&state=\(try #require(sent["state"]))\(issuer)")
            #expect(back.status.code == status, "\(issuer) \(promises)")
        }
    }

    // MARK: ID tokens

    private static let now = OidcStand.start
    /// Claims in place of the usual ones; NONCE is that of the login.
    private static let badTokens: [String] = [
        #"{"iss":"https://evil.example","aud":"app","sub":"ada","nonce":"NONCE","iat":\#(now),"exp":\#(now + 300)}"#,
        #"{"iss":"https://login.example.com/","aud":"app","sub":"ada","nonce":"NONCE","iat":\#(now),"exp":\#(now + 300)}"#,
        #"{"aud":"app","sub":"ada","nonce":"NONCE","iat":\#(now),"exp":\#(now + 300)}"#,
        #"{"iss":"https://login.example.com","aud":"other","sub":"ada","nonce":"NONCE","iat":\#(now),"exp":\#(now + 300)}"#,
        #"{"iss":"https://login.example.com","sub":"ada","nonce":"NONCE","iat":\#(now),"exp":\#(now + 300)}"#,
        #"{"iss":"https://login.example.com","aud":["app","other"],"sub":"ada","nonce":"NONCE","iat":\#(now),"exp":\#(now + 300)}"#,
        #"{"iss":"https://login.example.com","aud":["app","other"],"azp":"other","sub":"ada","nonce":"NONCE","iat":\#(now),"exp":\#(now + 300)}"#,
        #"{"iss":"https://login.example.com","aud":"app","azp":"other","sub":"ada","nonce":"NONCE","iat":\#(now),"exp":\#(now + 300)}"#,
        #"{"iss":"https://login.example.com","aud":"app","sub":"ada","nonce":"another","iat":\#(now),"exp":\#(now + 300)}"#,
        #"{"iss":"https://login.example.com","aud":"app","sub":"ada","iat":\#(now),"exp":\#(now + 300)}"#,
        #"{"iss":"https://login.example.com","aud":"app","sub":"ada","nonce":["NONCE"],"iat":\#(now),"exp":\#(now + 300)}"#,
        #"{"iss":"https://login.example.com","aud":"app","sub":"ada","nonce":"NONCE","iat":\#(now),"exp":\#(now - 61)}"#,
        #"{"iss":"https://login.example.com","aud":"app","sub":"ada","nonce":"NONCE","iat":\#(now)}"#,
        #"{"iss":"https://login.example.com","aud":"app","sub":"ada","nonce":"NONCE","iat":\#(now + 61),"exp":\#(now + 300)}"#,
        #"{"iss":"https://login.example.com","aud":"app","sub":"ada","nonce":"NONCE","exp":\#(now + 300)}"#,
        #"{"iss":"https://login.example.com","aud":"app","nonce":"NONCE","iat":\#(now),"exp":\#(now + 300)}"#,
        #"{"iss":"https://login.example.com","aud":"app","sub":"","nonce":"NONCE","iat":\#(now),"exp":\#(now + 300)}"#,
        #"{"iss":"https://login.example.com","aud":"app","sub":"ada\u000a","nonce":"NONCE","iat":\#(now),"exp":\#(now + 300)}"#,
        #"{"iss":"https://login.example.com","aud":"app","sub":"ada","nonce":"NONCE","iat":\#(now),"exp":\#(now + 300),"at_hash":"AAAA"}"#,
        #"{"iss":"https://login.example.com","aud":"app","sub":"ada","nonce":"NONCE","iat":\#(now),"exp":\#(now + 300),"at_hash":5}"#,
    ]

    private func back(_ stand: OidcStand, _ make: (String) throws -> String?) async throws -> HttpResponse {
        let sent = try OidcStand.parameters(await stand.send("/"))
        stand.calls.script(OidcStand.token, OidcStand.tokens(try make(try #require(sent["nonce"]))))
        return try await stand.send("/oauth2/callback?code=c1&state=\(try #require(sent["state"]))")
    }

    @Test(arguments: badTokens.indices)
    func `OpenID Connect Core 1.0 §3.1.3.7, an ID token that breaks a rule gives no session`(index: Int) async throws {
        let stand = try OidcStand()
        let response = try await back(stand) { try OidcStand.sign(Self.badTokens[index].replacing("NONCE", with: $0)) }
        #expect(response.status == .badGateway)
        #expect(!response.fields.contains(.setCookie))
        #expect(try await stand.send("/", OidcStand.script).status == .unauthorized)
        #expect(stand.tokenCalls.count == 1)
    }

    @Test func `an ID token with another key, another algorithm, a changed signature or none gives no session`()
        async throws
    {
        let headers = [
            #"{"alg":"EdDSA","kid":"two"}"#, #"{"alg":"none"}"#, #"{"alg":"HS256"}"#, #"{"alg":"RS256","kid":"one"}"#,
            #"{"alg":"EdDSA","kid":"one","crit":["x"],"x":1}"#,
        ]
        for header in headers {
            let stand = try OidcStand()
            #expect(
                try await back(stand) { try OidcStand.sign(stand.claims(nonce: $0), header: header) }.status
                    == .badGateway)
        }
        for change in [{ $0 + "A" }, { String($0.dropLast(3)) + "AAA" }, { $0 + ".x" }, { _ in "x" }, { _ in nil }]
            as [(String) -> String?]
        {
            let stand = try OidcStand()
            #expect(try await back(stand) { change(try OidcStand.sign(stand.claims(nonce: $0))) }.status == .badGateway)
        }
    }

    @Test func `an ID token with several audiences, azp, at_hash and a clock that is a minute off is accepted`()
        async throws
    {
        let hash = OidcProvider.hash(of: Secret("access1"), by: .edDSA)
        let claims =
            #"{"iss":"https://login.example.com","aud":["app","other"],"azp":"app","sub":"ada","nonce":"NONCE","iat":\#(Self.now + 59),"exp":\#(Self.now + 359),"at_hash":"\#(hash)"}"#
        let late =
            #"{"iss":"https://login.example.com","aud":"app","sub":"ada","nonce":"NONCE","iat":\#(Self.now - 359),"exp":\#(Self.now - 59)}"#
        for claims in [claims, late] {
            let stand = try OidcStand()
            let response = try await back(stand) { try OidcStand.sign(claims.replacing("NONCE", with: $0)) }
            #expect(response.status == .seeOther)
            // However far the clocks are apart: no loop of logins.
            #expect(try await stand.send("/", OidcStand.script).status == .ok)
        }
    }

    @Test func `at_hash is half of the digest that the algorithm has - OpenID Connect Core 1.0 §3.1.3.6`() {
        // Core A.3: the example's access token.
        let token = Secret("jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y")
        #expect(OidcProvider.hash(of: token, by: .rs256) == "77QmUPtjPfzWtF2AnpK9RQ")
        #expect(OidcProvider.hash(of: token, by: .es384).utf8.count == 32)
        #expect(OidcProvider.hash(of: token, by: .edDSA).utf8.count == 43)
    }

    // MARK: Hostile providers

    private static let badMetadata: [String] = [
        "", "[]", "{}",
        OidcStand.metadata().replacing(
            "\"issuer\":\"\(OidcStand.issuer)\"", with: "\"issuer\":\"https://evil.example\""),
        OidcStand.metadata().replacing("\(OidcStand.issuer)/authorize", with: "http://login.example.com/authorize"),
        OidcStand.metadata().replacing("\(OidcStand.issuer)/token", with: "http://login.example.com/token"),
        OidcStand.metadata().replacing("\(OidcStand.issuer)/authorize", with: "javascript:alert(1)"),
        OidcStand.metadata().replacing("\(OidcStand.issuer)/authorize", with: "/authorize"),
        OidcStand.metadata().replacing("\"token_endpoint\"", with: "\"x\""),
        OidcStand.metadata(#","issuer":"\#(OidcStand.issuer)""#),
    ]

    @Test(arguments: badMetadata.indices)
    func `metadata of another issuer or without usable endpoints begin no login`(index: Int) async throws {
        let stand = try OidcStand()
        stand.calls.script(OidcStand.metadata, ScriptedCalls.json(Self.badMetadata[index].utf8))
        let response = try await stand.send("/")
        #expect(response.status == .serviceUnavailable)
        #expect(response.fields.contains(.retryAfter))
        #expect(!response.fields.contains(.location))
    }

    @Test func `while the provider is down, requests are answered 503 and the provider is asked once in a while`()
        async throws
    {
        let stand = try OidcStand()
        stand.calls.script(OidcStand.metadata, .fail(GatewayError(.upstream, .connectionRefused, "refused")))
        // The pauses are 1, 2, 4, 8, 16 and 30 seconds.
        for second in 0..<90 {
            for _ in 0..<10 {
                let response = try await stand.send("/")
                #expect(response.status == .serviceUnavailable)
                #expect(response.fields[.retryAfter] == "5")
            }
            // A decision that needs no provider is still made.
            if second == 0 { #expect(try await stand.send("/", OidcStand.script).status == .unauthorized) }
            await stand.advance(by: 1)
        }
        #expect(stand.count(OidcStand.metadata) == 7)
        stand.calls.script(OidcStand.metadata, ScriptedCalls.json(OidcStand.metadata().utf8))
        await stand.advance(by: 30)
        #expect(try await stand.send("/").status == .found)
    }

    @Test func `all requests that come while metadata are read wait for one call`() async throws {
        let stand = try OidcStand()
        stand.calls.script(OidcStand.metadata, .hold)
        var pending: [TestExchange.Pending] = []
        for _ in 0..<10 { pending.append(await stand.exchange.start(try stand.request(.get, "/"))) }
        #expect(stand.count(OidcStand.metadata) == 1)
        stand.calls.release(with: ScriptedCalls.json(OidcStand.metadata().utf8))
        for one in pending { #expect(try await one.response().status == .found) }
    }

    @Test func `metadata are read again after an hour, and stay in use if that fails`() async throws {
        let stand = try OidcStand()
        #expect(try await stand.send("/").status == .found)
        stand.calls.script(OidcStand.metadata, .fail(GatewayError(.upstream, .connectionRefused, "refused")))
        await stand.advance(by: 3599)
        #expect(try await stand.send("/").status == .found)
        #expect(stand.count(OidcStand.metadata) == 1)
        await stand.advance(by: 1)
        for _ in 0..<10 { #expect(try await stand.send("/").status == .found) }
        #expect(stand.count(OidcStand.metadata) == 2)
    }

    @Test func `a code is redeemed once: a failure is told, and is not tried again`() async throws {
        let answers: [(ScriptedCalls.Step, Int)] = [
            (.fail(GatewayError(.upstream, .responseTimeout, "late")), 503),
            (.respond(HttpResponse(.badGateway)), 503),
            (.respond(HttpResponse(.found, fields: ["Location": "https://evil.example/"])), 503),
            (ScriptedCalls.json("{".utf8), 503), (ScriptedCalls.json("{}".utf8), 503),
            (
                .respond(
                    HttpResponse(
                        .badRequest, fields: ["Content-Type": "application/json"],
                        content: .text(#"{"error":"invalid_grant"}"#))), 403
            ),
        ]
        for (answer, status) in answers {
            let stand = try OidcStand()
            let sent = try OidcStand.parameters(await stand.send("/"))
            stand.calls.script(OidcStand.token, answer)
            for _ in 0..<3 {
                let back = try await stand.send("/oauth2/callback?code=c1&state=\(try #require(sent["state"]))")
                #expect([status, 302, 400, 503].contains(back.status.code))
            }
            #expect(stand.tokenCalls.count == 1)
            #expect(try await stand.send("/", OidcStand.script).status == .unauthorized)
        }
    }

    @Test(
        arguments: [
            .fail(GatewayError(.upstream, .responseContentTooLarge, "larger than 256KiB")),
            .fail(GatewayError(.upstream, .responseMalformed, "no HTTP")),
            .fail(GatewayError(.upstream, .responseIncomplete, "cut off")),
            .respond(HttpResponse(.internalServerError)), .respond(HttpResponse(.found)), ScriptedCalls.json("{".utf8),
            ScriptedCalls.json("{}".utf8), ScriptedCalls.json(#"{"access_token":"a b","token_type":"Bearer"}"#.utf8),
            .respond(HttpResponse(.ok, content: .text("no JSON"))),
        ] as [ScriptedCalls.Step])
    func `one login whose answer is unusable pauses no other`(answer: ScriptedCalls.Step) async throws {
        let stand = try OidcStand()
        let first = try OidcStand.parameters(await stand.send("/"))
        stand.calls.script(OidcStand.token, answer)
        let failed = try await stand.send("/oauth2/callback?code=c1&state=\(try #require(first["state"]))")
        #expect([400, 403, 502, 503].contains(failed.status.code))
        let second = try OidcStand.parameters(await stand.send("/"))
        stand.calls.script(
            OidcStand.token, OidcStand.tokens(try OidcStand.sign(stand.claims(nonce: #require(second["nonce"])))))
        let back = try await stand.send("/oauth2/callback?code=c2&state=\(try #require(second["state"]))")
        #expect(back.status == .seeOther)
    }

    @Test(
        arguments: [
            .fail(GatewayError(.upstream, .connectionRefused, "refused")),
            .fail(GatewayError(.upstream, .responseTimeout, "late")), .respond(HttpResponse(.serviceUnavailable)),
            .respond(HttpResponse(.tooManyRequests)),
        ] as [ScriptedCalls.Step])
    func `a provider that does not answer, or is busy, is left alone for a second`(answer: ScriptedCalls.Step)
        async throws
    {
        let stand = try OidcStand()
        let first = try OidcStand.parameters(await stand.send("/"))
        let second = try OidcStand.parameters(await stand.send("/"))
        stand.calls.script(OidcStand.token, answer)
        for login in [first, second] {
            let back = try await stand.send("/oauth2/callback?code=c1&state=\(try #require(login["state"]))")
            #expect(back.status == .serviceUnavailable)
        }
        #expect(stand.tokenCalls.count == 1)
    }

    private static let elsewhere = HttpResponse(.found, fields: ["Location": "https://evil.example/x"])

    @Test func `a redirect instead of metadata or keys is not followed`() async throws {
        let stand = try OidcStand()
        stand.calls.script(OidcStand.metadata, .respond(Self.elsewhere))
        for _ in 0..<20 { #expect(try await stand.send("/").status == .serviceUnavailable) }
        #expect(stand.calls.requests.count == 1)
        #expect(stand.calls.limits.allSatisfy { $0.redirects == 0 && $0.content == .kibibytes(256) })
    }

    @Test(
        arguments: [
            .respond(elsewhere), .respond(HttpResponse(.internalServerError)), ScriptedCalls.json("{".utf8),
            ScriptedCalls.json(#"{"keys":[]}"#.utf8), .fail(GatewayError(.upstream, .responseTimeout, "late")),
            .fail(GatewayError(.upstream, .contentTooLarge, "larger than 256KiB")),
        ] as [ScriptedCalls.Step])
    func `without the provider's keys no code is redeemed, and the calls are few`(keys: ScriptedCalls.Step) async throws
    {
        let stand = try OidcStand()
        stand.calls.script(OidcStand.keys, keys)
        let sent = try OidcStand.parameters(await stand.send("/"))
        let (state, nonce) = (try #require(sent["state"]), try #require(sent["nonce"]))
        stand.calls.script(OidcStand.token, OidcStand.tokens(try OidcStand.sign(stand.claims(nonce: nonce))))
        for _ in 0..<60 {
            for _ in 0..<5 {
                let back = try await stand.send("/oauth2/callback?code=c1&state=\(state)")
                #expect(back.status == .serviceUnavailable && !back.fields.contains(.setCookie))
            }
            await stand.advance(by: 1)
        }
        // The pauses are 1, 2, 4, 8, 16 and 30 seconds.
        #expect(stand.count(OidcStand.keys) <= 7)
        #expect(stand.tokenCalls.isEmpty)
        #expect(!stand.calls.requests.contains { $0.receivedTarget.contains("evil") })
        // The same login goes on when the keys are there.
        stand.calls.script(OidcStand.keys, ScriptedCalls.json(OidcStand.keySet.utf8))
        await stand.advance(by: 30)
        #expect(try await stand.send("/oauth2/callback?code=c1&state=\(state)").status == .seeOther)
    }

    @Test func `ID tokens of unknown keys make the keys be read again once in ten seconds`() async throws {
        let stand = try OidcStand()
        for _ in 0..<20 {
            let response = try await back(stand) {
                try OidcStand.sign(stand.claims(nonce: $0), header: #"{"alg":"EdDSA","kid":"two"}"#)
            }
            #expect(response.status == .badGateway)
        }
        #expect(stand.count(OidcStand.keys) <= 2)
        #expect(stand.count(OidcStand.metadata) <= 3)
        #expect(stand.tokenCalls.count == 20)
    }

    @Test func `an endpoint at another host must not have a private address`() async throws {
        let stand = try OidcStand()
        let elsewhere = "https://tokens.example.com/token"
        stand.calls.script(
            OidcStand.metadata,
            ScriptedCalls.json(OidcStand.metadata().replacing(OidcStand.token, with: elsewhere).utf8))
        let sent = try OidcStand.parameters(await stand.send("/"))
        try await stand.send("/oauth2/callback?code=c1&state=\(try #require(sent["state"]))")
        let index = try #require(stand.calls.requests.firstIndex { $0.receivedTarget == elsewhere })
        #expect(stand.calls.limits[index].deniesPrivate)
        #expect(!stand.calls.limits[0].deniesPrivate)
    }

    // MARK: Logout

    @Test func `a logout ends the session here and at the provider, and a copy of its cookie is worth nothing`()
        async throws
    {
        let stand = try OidcStand { $0.change = { $0.afterLogout = "/bye" } }
        try await stand.logIn()
        let copy = stand.cookies
        let response = try await stand.send("/oauth2/logout", ["Sec-Fetch-Site": "same-origin"], method: .post)
        #expect(response.status == .seeOther)
        let sent = try OidcStand.parameters(response)
        #expect(sent[""] == "\(OidcStand.issuer)/logout")
        #expect(sent["client_id"] == "app")
        #expect(sent["post_logout_redirect_uri"] == "https://example.test/bye")
        #expect(sent["id_token_hint"]?.split(separator: ".").count == 3)
        #expect(stand.cookies.isEmpty)
        stand.cookies = copy
        #expect(try await stand.send("/", OidcStand.script).status == .unauthorized)
        #expect(try await stand.send("/").status == .found)
        #expect(stand.exchange.upstream.requests.isEmpty)
    }

    @Test func `without a place for it at the provider, a logout leads to afterLogout, or says so`() async throws {
        for page in [nil, "/bye", "https://www.example.com/"] {
            let stand = try OidcStand { $0.change = { $0.afterLogout = page } }
            stand.calls.script(
                OidcStand.metadata,
                ScriptedCalls.json(OidcStand.metadata().replacing("end_session_endpoint", with: "x").utf8))
            try await stand.logIn()
            let response = try await stand.send("/oauth2/logout", method: .post)
            #expect(response.status == (page == nil ? .ok : .seeOther))
            #expect(response.fields[.location] == page.map { $0.hasPrefix("/") ? "https://example.test\($0)" : $0 })
            #expect(stand.cookies.isEmpty)
        }
    }

    private static let logouts: [(HttpMethod, HttpFields, Bool)] = [
        (.post, [:], true), (.post, ["Origin": "https://example.test"], true),
        (.get, ["Sec-Fetch-Site": "same-origin"], true),
        (.get, ["Referer": "https://example.test/a"], true), (.get, [:], false),
        (.get, ["Sec-Fetch-Site": "cross-site"], false),
        (.get, ["Sec-Fetch-Site": "none"], false), (.get, ["Sec-Fetch-Site": "same-site"], false),
        (.post, ["Sec-Fetch-Site": "cross-site"], false), (.post, ["Origin": "https://evil.example"], false),
        (.post, ["Origin": "null"], false), (.post, ["Origin": "http://example.test"], false),
        (.get, ["Referer": "https://example.test.evil.example/"], false),
        (.get, ["Referer": "https://evil.example/"], false),
        (.get, ["Origin": "https://evil.example", "Referer": "https://example.test/"], false),
    ]

    @Test(arguments: logouts.indices) func `another site cannot log anybody out`(index: Int) async throws {
        let (method, fields, isAllowed) = Self.logouts[index]
        let stand = try OidcStand()
        try await stand.logIn()
        let response = try await stand.send("/oauth2/logout", fields, method: method)
        #expect(response.status == (isAllowed ? .seeOther : .forbidden))
        #expect(try await stand.send("/", OidcStand.script).status == (isAllowed ? .unauthorized : .ok))
    }

    @Test func `a logout ends the session here even if the provider is down`() async throws {
        let stand = try OidcStand()
        try await stand.logIn()
        let other = try OidcStand { $0.calls = ScriptedCalls() }
        other.cookies = stand.cookies
        #expect(try await other.send("/", OidcStand.script).status == .ok)
        #expect(try await other.send("/oauth2/logout", method: .post).status == .ok)
        #expect(other.cookies.isEmpty)
    }

    // MARK: Options

    private static let good: [String: ConfigNode] = [
        "issuer": "https://login.example.com", "clientId": "app",
        "cookie": ["secret": "a random text of thirty-two bytes or more"],
    ]

    private static func node(_ more: [String: ConfigNode?]) -> ConfigNode {
        let all = good.merging(more.compactMapValues { $0 }) { _, new in new }.filter { more[$0.key] != .some(nil) }
        return ConfigNode(.map(all.map { .init(key: $0.key, location: .code, value: $0.value) }))
    }

    @Test func `good options are read`() throws {
        let ware = try TestExchange.make(
            OidcLogin.self,
            Self.node([
                "clientSecret": "s", "scopes": ["openid", "email"], "callback": "/cb", "logout": "/out",
                "afterLogout": "https://www.example.com/", "lifetime": "1h", "refresh": "false",
                "claimsToHeaders": ["sub": "X-User"], "passToken": "true", "unauthenticated": "refuse",
                "algorithms": ["ES256"], "clockSkew": "10s", "timeout": "1s",
                "cookie": [
                    "secret": [
                        "a new secret of thirty-two bytes or more", "an old secret of thirty-two bytes or more",
                    ], "name": "sid",
                ],
            ]))
        #expect(ware.callback == "/cb")
        #expect(ware.unauthenticated == .refuse)
        #expect(ware.sessions.cookies.name == "sid")
        #expect(ware.sessions.lifetime == 3600)
        #expect(!ware.sessions.renews && ware.sessions.passesToken && ware.bindsAuthority)
    }

    private static let bad: [[String: ConfigNode?]] = [
        ["issuer": nil], ["issuer": "login"], ["issuer": "https://login.example.com?a=b"], ["clientId": nil],
        ["clientId": ""],
        ["cookie": nil], ["cookie": [:]], ["cookie": ["secret": "short"]], ["cookie": ["secret": []]],
        ["cookie": ["secret": "a random text of thirty-two bytes or more", "name": "a b"]],
        ["cookie": ["secret": "a random text of thirty-two bytes or more", "name": "__Host-a"]],
        ["scopes": ["email"]], ["scopes": ["openid", "a b"]], ["callback": "/"], ["callback": "cb"],
        ["callback": "/a/../b"],
        ["callback": "/cb?x"], ["callback": "/same", "logout": "/same"], ["afterLogout": "//evil.example"],
        ["afterLogout": "bye"],
        ["algorithms": []], ["algorithms": ["HS256"]], ["claimsToHeaders": ["sub": "Cookie"]],
        ["claimsToHeaders": ["sub": "Authorization"]], ["claimsToHeaders": ["sub": "Host"]],
        ["unauthenticated": "pass"],
        ["lifetime": "1s"], ["store": "none"], ["lock": "none"], ["refresh": "false", "lock": "none"], ["session": "x"],
    ]

    @Test(arguments: bad.indices) func `an option that cannot be meant is refused at load`(index: Int) {
        #expect(throws: ConfigError.self) { try TestExchange.make(OidcLogin.self, Self.node(Self.bad[index])) }
    }
}
