import HttpWare
import HttpWareClient
import HttpWareTesting
import Synchronization
import Testing

@Suite struct AccountTests {
    /// Hands out the tokens that the test wants, and never refuses.
    private final class Login: TokenSource {
        let next = Mutex(NewToken(Secret("token-ada"), lifetime: .seconds(3600), refreshToken: Secret("r")))
        let asked = Mutex(0)

        func newToken(refreshing refreshToken: Secret?) async throws -> NewToken {
            asked.withLock { $0 += 1 }
            return next.withLock { $0 }
        }
    }

    /// Answers with the token that came, to be stored for long.
    private static func origin() throws -> LocalOrigin {
        try LocalOrigin { request in
            let token = request.fields[.authorization] ?? "none"
            var response = HttpResponse.json(#"{"id":1,"title":"\#(token)","isDone":false}"#)
            try response.fields.set(.cacheControl, to: "max-age=1000")
            try response.fields.set(.etag, to: "\"same\"")
            return response
        }
    }

    private static func manager(
        _ origin: LocalOrigin, _ login: Credential, _ cache: any Middleware
    ) throws -> HttpManager {
        HttpManager(
            service: try .local(origin.port), middlewares: [cache, TokenRefresh(login), TokenInject(login)],
            loops: ClientLoops())
    }

    @Test(arguments: [true, false])
    func `the second user does not get what was stored for the first`(isCleared: Bool) async throws {
        let origin = try AccountTests.origin()
        let login = Credential(name: "login", source: Login())
        let cache = HttpCache(store: .memory(), mode: .private)
        let manager = try AccountTests.manager(origin, login, cache)
        #expect(try await manager.send(GetTodo(id: 1)).title == "Bearer token-ada")
        #expect(try await manager.response(of: GetTodo(id: 1)).responder == .cache)
        if isCleared { await login.clear() }
        try await login.put(NewToken(Secret("token-bob"), lifetime: .seconds(3600)))
        #expect(try await manager.send(GetTodo(id: 1)).title == "Bearer token-bob")
    }

    @Test func `a refresh keeps what was stored, and so does a start with the same tokens`() async throws {
        let origin = try AccountTests.origin()
        let (source, store) = (Login(), MemoryTokenStore())
        let cache = HttpCache(store: .memory(), mode: .private)
        let login = Credential(name: "login", source: source, store: store)
        let manager = try AccountTests.manager(origin, login, cache)
        _ = try await manager.send(GetTodo(id: 1))
        let account = login.account
        #expect(store.stored?.account == account)
        source.next.withLock { $0 = NewToken(Secret("newer"), lifetime: .seconds(3600), refreshToken: Secret("s")) }
        let loop = try EventLoop.start(name: "refresh")
        _ = await Task(executorPreference: loop) { await login.refresh() }.value
        #expect(login.account == account && store.stored?.accessToken == Secret("newer"))
        #expect(try await manager.response(of: GetTodo(id: 1)).responder == .cache)
        let second = Credential(name: "login", source: source, store: store)
        let next = try AccountTests.manager(origin, second, cache)
        #expect(try await next.response(of: GetTodo(id: 1)).responder == .cache)
        #expect(second.account == account)
        #expect(origin.requests.count == 1)
        loop.stop()
    }

    @Test func `accounts that the program names are kept apart, and tokens of another are not used`() async throws {
        let origin = try AccountTests.origin()
        let (source, store) = (Login(), MemoryTokenStore())
        let cache = HttpCache(store: .memory(), mode: .private)
        let ada = Credential(name: "login", source: source, store: store, account: "ada")
        _ = try await AccountTests.manager(origin, ada, cache).send(GetTodo(id: 1))
        source.next.withLock { $0 = NewToken(Secret("token-bob"), lifetime: .seconds(3600)) }
        let bob = Credential(name: "login", source: source, store: store, account: "bob")
        #expect(try await AccountTests.manager(origin, bob, cache).send(GetTodo(id: 1)).title == "Bearer token-bob")
        // And back: what was stored for the first is still the first's.
        let again = Credential(name: "login", source: source, store: MemoryTokenStore(), account: "ada")
        let response = try await AccountTests.manager(origin, again, cache).response(of: GetTodo(id: 1))
        #expect(response.model.title == "Bearer token-ada" && response.responder == .cache)
    }

    @Test func `a source may name the account of its tokens`() async throws {
        let origin = try AccountTests.origin()
        let source = Login()
        let login = Credential(name: "login", source: source)
        let cache = HttpCache(store: .memory(), mode: .private)
        let manager = try AccountTests.manager(origin, login, cache)
        try await login.put(NewToken(Secret("a"), lifetime: .seconds(3600), account: "ada"))
        _ = try await manager.send(GetTodo(id: 1))
        try await login.put(NewToken(Secret("b"), lifetime: .seconds(3600), account: "bob"))
        #expect(login.account == "bob")
        #expect(try await manager.send(GetTodo(id: 1)).title == "Bearer b")
        try await login.put(NewToken(Secret("c"), lifetime: .seconds(3600), account: "ada"))
        #expect(try await manager.send(GetTodo(id: 1)).title == "Bearer a")
    }

    @Test func `a request that waited is not sent with the token of another account`() async throws {
        /// Logs another user in while the request is on its way.
        struct Switch: AsyncMiddleware {
            let login: Credential
            func handle(_ request: inout HttpRequest, in exchange: Exchange) async throws -> Verdict {
                try await login.put(NewToken(Secret("token-bob"), lifetime: .seconds(3600)))
                return .pass
            }
        }
        let origin = try AccountTests.origin()
        let login = Credential(name: "login", source: Login())
        try await login.put(NewToken(Secret("token-ada"), lifetime: .seconds(3600)))
        let manager = HttpManager(
            service: try .local(origin.port),
            middlewares: [HttpCache(store: .memory(), mode: .private), Switch(login: login), TokenInject(login)])
        let error = try #require(await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 1)) })
        #expect(error.underlying is AccountChanged && error.side == .chain)
        #expect(origin.requests.isEmpty)
    }

    /// Answers with the cookie that came, to be stored for long.
    private static func cookieOrigin() throws -> LocalOrigin {
        try LocalOrigin { request in
            var response = HttpResponse.json(#"{"id":1,"title":"\#(request.fields[.cookie] ?? "-")","isDone":false}"#)
            try response.fields.set(.cacheControl, to: "max-age=1000")
            return response
        }
    }

    @Test(arguments: [true, false])
    func `responses stored for the cookies of one user are not for those of another`(isOutside: Bool) async throws {
        let origin = try AccountTests.cookieOrigin()
        let cache = HttpCache(store: .memory(), mode: .private)
        func manager(_ jar: CookieJar) throws -> HttpManager {
            HttpManager(
                service: try .local(origin.port),
                middlewares: isOutside ? [cache, Cookies(jar)] : [Cookies(jar), cache])
        }
        func cookie(_ user: String) -> Cookie {
            Cookie(name: "user", value: user, domain: "127.0.0.1", isSecure: false)
        }
        let jar = CookieJar([cookie("ada")], account: "ada")
        let app = try manager(jar)
        #expect(try await app.send(GetTodo(id: 1)).title == "user=ada")
        #expect(try await app.response(of: GetTodo(id: 1)).responder == .cache)
        jar.removeAll()
        jar.set(cookie("bob"))
        #expect(try await app.send(GetTodo(id: 1)).title == "user=bob")
        #expect(try await manager(CookieJar([cookie("eve")])).send(GetTodo(id: 1)).title == "user=eve")
        // The next start of the first user's program.
        let again = try await manager(CookieJar([cookie("ada")], account: "ada")).response(of: GetTodo(id: 1))
        #expect(again.responder == .cache && again.model.title == "user=ada")
        #expect(origin.requests.count == 3)
    }

    @Test func `a request that waited is not sent with the cookies of another user`() async throws {
        struct Switch: Middleware {
            let jar: CookieJar
            func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
                jar.removeAll()
                return .pass
            }
        }
        let origin = try AccountTests.cookieOrigin()
        let jar = CookieJar()
        let manager = HttpManager(
            service: try .local(origin.port), middlewares: [Switch(jar: jar), Cookies(jar)], loops: ClientLoops())
        let error = await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 1)) }
        #expect(error?.underlying is AccountChanged)
        #expect(origin.requests.isEmpty)
    }

    @Test func `a response that comes after logging out sets no cookies`() async throws {
        let jar = CookieJar()
        let origin = try LocalOrigin { request in
            if request.method == .delete { jar.removeAll() }
            return HttpResponse(.noContent, fields: ["Set-Cookie": "session=old"])
        }
        let manager = HttpManager(service: try .local(origin.port), middlewares: [Cookies(jar)])
        try await manager.send(DeleteTodo(id: 1))
        #expect(jar.cookies.isEmpty)
        try await manager.send(Request<NoContent>(.get, "/"))
        #expect(jar.cookies.map(\.value) == ["old"])
    }

    @Test func `NotModified keeps the users of a program apart`() async throws {
        let answered = Mutex<[String]>([])
        let origin = try LocalOrigin { request in
            let token = request.fields[.authorization] ?? "none"
            answered.withLock { $0.append(request.fields[.ifNoneMatch] ?? "-") }
            if request.fields[.ifNoneMatch] != nil { return HttpResponse(.notModified) }
            var response = HttpResponse.json(#"{"id":1,"title":"\#(token)","isDone":false}"#)
            try response.fields.set(.cacheControl, to: "max-age=1000, private")
            try response.fields.set(.etag, to: "\"same\"")
            return response
        }
        let login = Credential(name: "login", source: Login())
        let manager = try AccountTests.manager(origin, login, NotModified())
        for _ in 0..<2 { #expect(try await manager.send(GetTodo(id: 1)).title == "Bearer token-ada") }
        try await login.put(NewToken(Secret("token-bob"), lifetime: .seconds(3600)))
        #expect(try await manager.send(GetTodo(id: 1)).title == "Bearer token-bob")
        #expect(answered.withLock { $0 } == ["-", "\"same\"", "-"])
    }
}
