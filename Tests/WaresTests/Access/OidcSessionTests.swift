import HttpCaching
import HttpWareTesting
import Synchronization
import Testing

@testable import Credentials
@testable import HttpWare
@testable import GatewayWares
@testable import Wares

/// A session after the login: its cookies, its renewal, its store.
@Suite(.timeLimit(.minutes(5))) struct OidcSessionTests {
    private static let name = "__Host-session"

    // MARK: Cookies

    @Test func `a cookie that is cut, changed, swapped or there twice gives no session`() async throws {
        let stand = try OidcStand()
        try await stand.logIn()
        let value = try #require(stand.cookies[Self.name])
        var bad = [
            "", "1", "2", "1A", "x", value + "A", "2" + value.dropFirst(), "0" + value.dropFirst(),
            "5" + value.dropFirst(),
        ]
        for place in [1, 10, value.count / 2, value.count - 1] {
            bad.append(String(value.prefix(place)))
            var bytes = Array(value.utf8)
            bytes[place] = bytes[place] == 0x41 ? 0x42 : 0x41
            bad.append(String(decoding: bytes, as: UTF8.self))
        }
        for value in bad {
            stand.cookies[Self.name] = value
            #expect(try await stand.send("/", OidcStand.script).status == .unauthorized, "\(value)")
        }
        stand.cookies[Self.name] = value
        #expect(try await stand.send("/", OidcStand.script, also: "\(Self.name)=x").status == .unauthorized)
        #expect(try await stand.send("/", OidcStand.script, also: "\(Self.name)=\(value)").status == .unauthorized)
        // The name of clear connections, which anybody could have set.
        stand.cookies = ["session": value]
        #expect(try await stand.send("/", OidcStand.script).status == .unauthorized)
        // The cookie of a login that is under way.
        let sent = try OidcStand.parameters(await stand.send("/"))
        let state = try #require(sent["state"])
        let login = try #require(stand.cookies["\(Self.name).login-\(state.prefix(8))"])
        stand.cookies = [Self.name: "1" + login]
        #expect(try await stand.send("/", OidcStand.script).status == .unauthorized)
        #expect(stand.exchange.upstream.requests.isEmpty)
        stand.cookies = [Self.name: value]
        #expect(try await stand.send("/", OidcStand.script).status == .ok)
    }

    @Test func `a session survives a restart, opens with every listed secret, and for no other client or issuer`()
        async throws
    {
        let stand = try OidcStand()
        try await stand.logIn()
        func status(_ change: (inout OidcStand.Make) -> Void) async throws -> Int {
            let other = try OidcStand {
                $0.calls = stand.calls
                change(&$0)
            }
            other.cookies = stand.cookies
            return try await other.send("/", OidcStand.script).status.code
        }
        let new = "a new secret of the tests, thirty-two bytes and more"
        #expect(try await status { _ in } == 200)
        #expect(try await status { $0.secrets = [new, OidcStand.secret] } == 200)
        #expect(try await status { $0.secrets = [new] } == 401)
        #expect(try await status { $0.clientId = "other" } == 401)
        let cookies = OidcCookies(
            "session", secrets: [Secret(OidcStand.secret)], issuer: "https://a.example", clientId: "app")
        let text = try #require(stand.cookies[Self.name]).dropFirst()
        for kind in [OidcCookies.Kind.session, .reference, .stored, .login] {
            #expect(cookies.open(text: text.utf8, as: kind) == nil)
            #expect((stand.ware.sessions.cookies.open(text: text.utf8, as: kind) != nil) == (kind == .session))
        }
    }

    @Test func `a large session is split into parts, which only open together`() async throws {
        let stand = try OidcStand { $0.claims = [("sub", "X-User")] }
        let back = try await stand.logIn(claims: #","groups":"\#(String(repeating: "g", count: 5000))""#)
        let names = stand.cookies.keys.sorted()
        #expect(names == [Self.name, "\(Self.name).1", "\(Self.name).2"])
        // RFC 6265 §6.1.
        for line in back.fields.values(of: .setCookie) { #expect(line.utf8.count <= 4096) }
        for _ in 0..<2 { #expect(try await stand.send("/", OidcStand.script).status == .ok) }
        #expect(!stand.exchange.upstream.requests.contains { $0.fields.contains(.cookie) })
        let whole = stand.cookies
        for name in names {
            stand.cookies[name] = nil
            #expect(try await stand.send("/", OidcStand.script).status == .unauthorized, "\(name)")
            stand.cookies = whole
        }
        (stand.cookies[names[1]], stand.cookies[names[2]]) = (whole[names[2]], whole[names[1]])
        #expect(try await stand.send("/", OidcStand.script).status == .unauthorized)
        // The next session is smaller: what is left of this one goes.
        stand.cookies = [:]
        let sent = try OidcStand.parameters(await stand.send("/"))
        stand.cookies.merge(whole) { one, _ in one }
        let idToken = try OidcStand.sign(stand.claims(nonce: try #require(sent["nonce"])))
        stand.calls.script(OidcStand.token, OidcStand.tokens(idToken))
        try await stand.send("/oauth2/callback?code=c1&state=\(try #require(sent["state"]))")
        #expect(Array(stand.cookies.keys) == [Self.name])
        #expect(try await stand.send("/", OidcStand.script).status == .ok)
    }

    @Test func `a session that needs more than four cookies is refused`() async throws {
        let stand = try OidcStand()
        let response = try await stand.logIn(claims: #","groups":"\#(String(repeating: "g", count: 9000))""#)
        #expect(response.status == .badGateway)
        #expect(response.content.text?.contains("too large for cookies") == true)
        #expect(try await stand.send("/", OidcStand.script).status == .unauthorized)
    }

    @Test func `over a clear connection the cookies have no prefix and are not secure`() async throws {
        let stand = try OidcStand { $0.isSecure = false }
        let back = try await stand.logIn()
        #expect(back.status == .seeOther)
        #expect(Array(stand.cookies.keys) == ["session"])
        #expect(back.fields.values(of: .setCookie).allSatisfy { $0.hasSuffix("; HttpOnly; SameSite=Lax") })
        #expect(try await stand.send("/", OidcStand.script).status == .ok)
    }

    // MARK: Identity

    @Test func `issuer and subject identify the user, and the session cookie does not`() async throws {
        let seen = Identities()
        let digests = ThreadLock<[Digest256?]>([])
        struct Keys: Middleware {
            let note: @Sendable (Digest256?) -> Void
            func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
                note(CacheIdentity.digest(request, in: exchange))
                return .pass
            }
        }
        let keys = Keys { digest in digests.withLock { $0.append(digest) } }
        let stand = try OidcStand { $0.behind = [seen, keys] }
        for (sub, cookie) in [("ada", nil), ("ada", nil), ("bob", nil), ("ada", "theme=dark")] as [(String, String?)] {
            stand.cookies = [:]
            try await stand.logIn(sub: sub)
            #expect(try await stand.send("/", OidcStand.script, also: cookie).status == .ok)
        }
        #expect(seen.same == [0, 0, 1, 0])
        #expect(seen.names == ["ada", "ada", "bob", "ada"])
        let found = digests.withLock { $0 }
        #expect(found[0] != nil && found[0] == found[1])
        #expect(found[2] != found[0] && found[3] != found[0] && found[3] != found[2])
    }

    @Test func `a request that is sent again from further out keeps its session`() async throws {
        struct Again: Middleware, Postware {
            var mayReplay: Bool { true }
            func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }
            func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
                exchange.responder == .upstream && exchange.record.replays < 2 ? .replay(after: .zero) : .pass
            }
        }
        for cookie in [nil, "theme=dark"] {
            let stand = try OidcStand { $0.around = [Again()] }
            try await stand.logIn()
            let before = stand.exchange.upstream.requests.count
            #expect(try await stand.send("/", OidcStand.script, also: cookie).status == .ok)
            #expect(stand.exchange.upstream.requests.count == before + 3)
            #expect(stand.exchange.upstream.requests.allSatisfy { $0.fields[.cookie] == cookie })
        }
    }

    @Test func `each of two wares in a chain requires a session of its own`() async throws {
        let inner = try OidcStand {
            $0.cookie = "second"
            $0.change = { $0.callback = "/second/callback" }
        }
        let stand = try OidcStand { $0.behind = [inner.ware] }
        try await stand.logIn()
        // The session of the first ware is not a session of the second one, the second time too.
        for _ in 0..<2 { #expect(try await stand.send("/", OidcStand.script).status == .unauthorized) }
        #expect(stand.exchange.upstream.requests.isEmpty)
        let sent = try OidcStand.parameters(await stand.send("/orders"))
        let idToken = try OidcStand.sign(stand.claims(nonce: try #require(sent["nonce"]), sub: "bob"))
        inner.calls.script(OidcStand.token, OidcStand.tokens(idToken))
        let back = try await stand.send("/second/callback?state=\(try #require(sent["state"]))&code=c1")
        #expect(back.fields[.location] == "/orders")
        #expect(try await stand.send("/", OidcStand.script, also: "theme=dark").status == .ok)
        let request = try #require(stand.exchange.upstream.requests.last)
        #expect(request.fields["X-User"] == "bob" && request.fields[.cookie] == "theme=dark")
        // Each renews the tokens of its session, and the client gets both cookies.
        let (first, second) = (stand.cookies["__Host-session"], stand.cookies["__Host-second"])
        for calls in [stand.calls, inner.calls] {
            calls.script(OidcStand.token, OidcStand.tokens(nil, refresh: "r2", access: "access2"))
        }
        await stand.advance(by: 290)
        #expect(try await stand.send("/", OidcStand.script).status == .ok)
        #expect(stand.cookies["__Host-session"] != first && stand.cookies["__Host-second"] != second)
        stand.cookies["__Host-second"] = nil
        #expect(try await stand.send("/", OidcStand.script).status == .unauthorized)
    }

    // MARK: Renewal

    private func renewed(_ stand: OidcStand, refresh: String = "r2") -> ScriptedCalls.Step {
        OidcStand.tokens(nil, refresh: refresh, lifetime: 300, access: "access2")
    }

    @Test func `tokens are renewed shortly before they expire, once for all requests`() async throws {
        let stand = try OidcStand { $0.passesToken = true }
        try await stand.logIn()
        let former = stand.cookies
        await stand.advance(by: 269)
        #expect(try await stand.send("/", OidcStand.script).status == .ok)
        #expect(stand.tokenCalls.count == 1)
        await stand.advance(by: 1)
        stand.calls.script(OidcStand.token, .hold)
        var pending: [TestExchange.Pending] = []
        for _ in 0..<5 { pending.append(await stand.exchange.start(try stand.request(.get, "/", OidcStand.script))) }
        #expect(stand.tokenCalls.dropFirst() == ["grant_type=refresh_token&refresh_token=r1"])
        stand.calls.release(with: renewed(stand))
        for one in pending {
            let response = try await one.response()
            #expect(response.status == .ok)
            #expect(response.fields[.cacheControl] == "no-store")
            stand.take(response)
        }
        #expect(stand.cookies != former)
        // Requests with the cookie before it get the same for a while.
        let latter = stand.cookies
        stand.cookies = former
        await stand.advance(by: 29)
        let late = try await stand.send("/", OidcStand.script)
        #expect(late.status == .ok)
        #expect(stand.cookies == latter)
        #expect(stand.exchange.upstream.requests.suffix(6).allSatisfy { $0.fields[.authorization] == "Bearer access2" })
        #expect(stand.tokenCalls.count == 2)
        #expect(try await stand.send("/", OidcStand.script).fields.values(of: .setCookie).isEmpty)
        // After that the refresh token that was spent is shown again, and the provider refuses it.
        stand.cookies = former
        await stand.advance(by: 31)
        stand.calls.script(OidcStand.token, Self.refusal)
        for _ in 0..<3 { #expect(try await stand.send("/", OidcStand.script).status == .unauthorized) }
        #expect(stand.tokenCalls.count == 3)
        stand.cookies = latter
        #expect(try await stand.send("/", OidcStand.script).status == .ok)
    }

    private static let refusal = ScriptedCalls.Step.respond(
        HttpResponse(
            .badRequest, fields: ["Content-Type": "application/json"], content: .text(#"{"error":"invalid_grant"}"#)))

    @Test func `without a refresh token the next page load goes to the provider again`() async throws {
        let stand = try OidcStand()
        try await stand.logIn(refresh: nil)
        await stand.advance(by: 299)
        #expect(try await stand.send("/", OidcStand.script).status == .ok)
        await stand.advance(by: 1)
        #expect(try await stand.send("/", OidcStand.script).status == .unauthorized)
        #expect(try await stand.send("/").status == .found)
        #expect(stand.tokenCalls.count == 1)
    }

    @Test func `while the provider is down a session is used until its tokens expire, and the calls are few`()
        async throws
    {
        let stand = try OidcStand()
        try await stand.logIn()
        await stand.advance(by: 270)
        stand.calls.script(OidcStand.token, .fail(GatewayError(.upstream, .connectionRefused, "refused")))
        let before = stand.tokenCalls.count
        for second in 0..<60 {
            for _ in 0..<5 {
                let status = try await stand.send("/", OidcStand.script).status
                #expect(status == (second < 30 ? .ok : .serviceUnavailable))
            }
            await stand.advance(by: 1)
        }
        #expect((2...7).contains(stand.tokenCalls.count - before))
        await stand.advance(by: 30)
        stand.calls.script(OidcStand.token, renewed(stand))
        #expect(try await stand.send("/", OidcStand.script).status == .ok)
    }

    @Test func `a session ends with its lifetime, however often its tokens were renewed`() async throws {
        let stand = try OidcStand()
        try await stand.logIn(lifetime: 40_000)
        await stand.advance(by: 39_990)
        stand.calls.script(OidcStand.token, OidcStand.tokens(nil, refresh: "r2", lifetime: 40_000))
        let response = try await stand.send("/", OidcStand.script)
        #expect(response.status == .ok)
        #expect(response.fields[.setCookie]?.contains("Max-Age=\(43_200 - 39_990);") == true)
        await stand.advance(by: 43_200 - 39_990 - 1)
        #expect(try await stand.send("/", OidcStand.script).status == .ok)
        await stand.advance(by: 1)
        #expect(try await stand.send("/", OidcStand.script).status == .unauthorized)
    }

    @Test func `OpenID Connect Core 1.0 §12.2, a renewed ID token is that of the same login`() async throws {
        let changes: [((String) -> String, Int)] = [
            ({ $0 }, 200), ({ $0.replacing(#""nonce":"n""#, with: #""x":"n""#) }, 200),
            ({ $0.replacing("ada", with: "bob") }, 401),
            ({ $0.replacing(OidcStand.issuer, with: "https://evil.example") }, 401),
            ({ $0.replacing(#""aud":"app""#, with: #""aud":"other""#) }, 401),
            ({ $0.replacing(#""nonce":"n""#, with: #""nonce":"other""#) }, 401),
        ]
        for (change, status) in changes {
            let stand = try OidcStand()
            try await stand.logIn()
            let cookie = try #require(stand.cookies[Self.name])
            let session = try #require(stand.ware.sessions.open(Array(cookie.utf8), at: Int64(stand.now)))
            let nonce = try #require(session.principal.claim("nonce"))
            await stand.advance(by: 300)
            let claims = stand.claims(nonce: "n")
            let idToken = try OidcStand.sign(change(claims).replacing(#""nonce":"n""#, with: #""nonce":"\#(nonce)""#))
            stand.calls.script(OidcStand.token, OidcStand.tokens(idToken, refresh: "r2"))
            #expect(try await stand.send("/", OidcStand.script).status.code == status)
        }
    }

    // MARK: Several gateways

    @Test func `with a lock, one of several gateways renews, and the others get its result`() async throws {
        let server = KeyServer()
        let one = try OidcStand { $0.lock = server }
        try await one.logIn()
        let other = try OidcStand {
            $0.lock = server
            $0.calls = one.calls
        }
        other.cookies = one.cookies
        await one.advance(by: 280)
        await other.advance(by: 280)
        one.calls.script(OidcStand.token, .hold)
        let first = await one.exchange.start(try one.request(.get, "/", OidcStand.script))
        let second = await other.exchange.start(try other.request(.get, "/", OidcStand.script))
        while one.tokenCalls.count < 2 { await Task.yield() }
        one.calls.release(with: renewed(one))
        #expect(try await first.response().status == .ok)
        while !server.isAnswered { await Task.yield() }
        await other.exchange.advance(by: .milliseconds(50))
        let response = try await second.response()
        #expect(response.status == .ok)
        other.take(response)
        #expect(one.tokenCalls.count == 2)
        #expect(try await other.send("/", OidcStand.script).status == .ok)
        #expect(one.tokenCalls.count == 2)
    }

    @Test func `without an answer of the lock's server no gateway asks the provider`() async throws {
        let server = KeyServer()
        let stand = try OidcStand { $0.lock = server }
        try await stand.logIn()
        server.isDown.store(true, ordering: .relaxed)
        await stand.advance(by: 280)
        #expect(try await stand.send("/", OidcStand.script).status == .ok)
        await stand.advance(by: 20)
        #expect(try await stand.send("/", OidcStand.script).status == .serviceUnavailable)
        #expect(stand.tokenCalls.count == 1)
    }

    // MARK: In a store

    @Test func `with a store the cookie holds a reference only, and gateways share the session`() async throws {
        let store = MemoryRecords(limit: .mebibytes(1))
        let stand = try OidcStand {
            $0.store = store
            $0.passesToken = true
        }
        let back = try await stand.logIn(claims: #","groups":"\#(String(repeating: "g", count: 9000))""#)
        #expect(back.status == .seeOther)
        #expect(try #require(stand.cookies[Self.name]).utf8.count < 120)
        let other = try OidcStand {
            $0.store = store
            $0.calls = stand.calls
            $0.passesToken = true
        }
        other.cookies = stand.cookies
        for one in [stand, other] { #expect(try await one.send("/", OidcStand.script).status == .ok) }
        // It is sealed there, too.
        var sealed: [[UInt8]] = []
        store.forEach(at: 0) { _, bytes, _ in sealed.append(bytes) }
        #expect(sealed.count == 1)
        #expect(sealed.allSatisfy { !String(decoding: $0, as: UTF8.self).contains("access1") })
        // A renewal changes no cookie, and is found by others.
        await stand.advance(by: 280)
        await other.advance(by: 280)
        stand.calls.script(OidcStand.token, OidcStand.tokens(nil, refresh: "r2", access: "access2"))
        let renewed = try await stand.send("/", OidcStand.script)
        #expect(renewed.status == .ok && !renewed.fields.contains(.setCookie))
        #expect(try await other.send("/", OidcStand.script).status == .ok)
        #expect(other.exchange.upstream.requests.last?.fields[.authorization] == "Bearer access2")
        #expect(stand.tokenCalls.count == 2)
        // A logout counts here at once, and in the other gateway after ten seconds at most.
        #expect(try await stand.send("/oauth2/logout", method: .post).status == .seeOther)
        stand.cookies = other.cookies
        #expect(try await stand.send("/", OidcStand.script).status == .unauthorized)
        await other.advance(by: 10)
        #expect(try await other.send("/", OidcStand.script).status == .unauthorized)
    }

    @Test func `however often a session in a store is renewed, its cookie stays good at every gateway`() async throws {
        let store = MemoryRecords(limit: .mebibytes(1))
        let stand = try OidcStand { $0.store = store }
        try await stand.logIn(lifetime: 2)
        let other = try OidcStand {
            $0.store = store
            $0.calls = stand.calls
        }
        other.cookies = stand.cookies
        for number in 0..<6 {
            #expect(try await other.send("/", OidcStand.script).status == .ok, "\(number)")
            await stand.advance(by: 300)
            await other.advance(by: 300)
            stand.calls.script(OidcStand.token, OidcStand.tokens(nil, refresh: "r\(number + 2)", lifetime: 300))
            #expect(try await stand.send("/", OidcStand.script).status == .ok, "\(number)")
        }
        #expect(stand.tokenCalls.suffix(6).map { $0.suffix(2) } == (1...6).map { "r\($0)" })
    }

    /// A store that does not answer, or has no room.
    private final class PoorStore: RecordStore {
        let inner = MemoryRecords(limit: .mebibytes(1))
        let answers = Atomic(true)
        let isFull = Atomic(false)

        private var isThere: Bool { answers.load(ordering: .relaxed) }

        func get(_ key: Digest256) async -> RecordReading { isThere ? await inner.get(key) : .unavailable }
        func put(_ bytes: [UInt8], under key: Digest256, for lifetime: Duration) async -> RecordWriting {
            guard isThere else { return .unavailable }
            return isFull.load(ordering: .relaxed) ? .full : await inner.put(bytes, under: key, for: lifetime)
        }
        func claim(_ key: Digest256, with bytes: [UInt8], for lifetime: Duration) async -> RecordClaim {
            isThere ? await inner.claim(key, with: bytes, for: lifetime) : .unavailable
        }
        func remove(_ key: Digest256) async -> Bool { isThere ? await inner.remove(key) : false }
        var census: RecordCensus? { inner.census }
    }

    @Test func `while the store does not answer, a session is neither admitted nor sent to log in again`() async throws
    {
        let store = PoorStore()
        let stand = try OidcStand { $0.store = store }
        try await stand.logIn()
        let other = try OidcStand {
            $0.store = store
            $0.calls = stand.calls
        }
        other.cookies = stand.cookies
        store.answers.store(false, ordering: .relaxed)
        let response = try await other.send("/")
        #expect(response.status == .serviceUnavailable)
        #expect(response.fields[.retryAfter] == "5")
        #expect(other.exchange.upstream.requests.isEmpty)
        store.answers.store(true, ordering: .relaxed)
        #expect(try await other.send("/", OidcStand.script).status == .ok)
    }

    @Test func `if the store has no room, a login fails with 503, and the sessions that it has remain`() async throws {
        let store = PoorStore()
        let stand = try OidcStand { $0.store = store }
        try await stand.logIn()
        store.isFull.store(true, ordering: .relaxed)
        let other = try OidcStand {
            $0.store = store
            $0.calls = stand.calls
        }
        #expect(try await other.logIn().status == .serviceUnavailable)
        let again = try OidcStand {
            $0.store = store
            $0.calls = stand.calls
        }
        again.cookies = stand.cookies
        #expect(try await again.send("/", OidcStand.script).status == .ok)
    }

    @Test func `a reference to nothing, and a cookie with a session in it, give no session with a store`() async throws
    {
        let stand = try OidcStand { $0.store = MemoryRecords(limit: .mebibytes(1)) }
        let cookies = stand.ware.sessions.cookies
        let session = OidcSession(
            id: "a", began: Int64(stand.now), due: 1 << 40, expires: 1 << 40, idToken: Secret("a.e30.c"))
        for (bytes, kind) in [
            (Array("a".utf8), OidcCookies.Kind.reference), (session.json, .session), (session.json, .reference),
            ([0xff], .reference),
        ] {
            stand.cookies = [Self.name: "1" + OidcCookies.text(of: try #require(cookies.seal(bytes, as: kind)))]
            #expect(try await stand.send("/", OidcStand.script).status == .unauthorized)
        }
    }

    // MARK: Values

    @Test func `a session and a login are read as they were written, and from nothing else`() {
        let session = OidcSession(
            id: "i", began: 1, due: 2, expires: 3, idToken: Secret("t"), accessToken: Secret("a"),
            refreshToken: Secret("r"))
        #expect(OidcSession(json: session.json) == session)
        let login = OidcPendingLogin(to: "/a?b", at: 5)
        #expect(OidcPendingLogin(json: login.json) == login)
        #expect(login.until == 605)
        for text in [
            "", "{}", "[]", "null", #"{"id":"i","began":1,"due":2,"expires":-3,"idToken":"t"}"#,
            #"{"id":"i","began":1e3,"due":2,"expires":3,"idToken":"t"}"#,
        ] {
            #expect(OidcSession(json: Array(text.utf8)) == nil)
            #expect(OidcPendingLogin(json: Array(text.utf8)) == nil)
        }
    }
}
