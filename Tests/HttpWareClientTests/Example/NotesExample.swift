import DiskCaching
import Foundation
import HttpWareClient
import HttpWareTesting
import Synchronization
import Testing

// The code of the articles, as an app would have it.

private struct Note: Codable, Sendable, Equatable { var text: String }
private struct Problems: Decodable, Sendable { var fields: [String] }
private struct QuotaSpent: Error {}

private struct GetNote: Route {
    typealias Response = Note
    var id: Int
    var path: RoutePath { "/notes/\(id)" }
}

private struct ListNotes: Route {
    typealias Response = [Note]
    var path: RoutePath { "/notes" }
}

private enum Errors {
    struct FindNote: Route {
        typealias Response = Note?
        var id: Int
        var path: RoutePath { "/notes/\(id)" }
        var absent: StatusSet { [404] }
    }

    static func text(_ id: Int, _ manager: HttpManager) async throws -> String {
        do {
            return try await manager.send(GetNote(id: id)).text
        } catch let error as HttpError {
            if error.isOffline { return "You are offline." }
            if error.isTimeout { return "The server takes too long." }
            if error.isAuthentication { return "Please log in." }
            if error.status == 404 { return "There is no such note." }
            return error.localizedDescription
        }
    }

    static func problems(_ manager: HttpManager) async throws -> [String] {
        do {
            _ = try await manager.send(ListNotes())
            return []
        } catch let error as HttpError where error.status == 422 {
            return try error.model(Problems.self).fields
        }
    }

    static func mayGoOn(_ manager: HttpManager) async throws -> Bool {
        do {
            _ = try await manager.send(ListNotes())
            return true
        } catch let error as HttpError where error.underlying is QuotaSpent { return false }
    }

    static func note(_ id: Int, _ manager: HttpManager) async -> Note {
        do throws(HttpError) {
            return try await manager.result(of: GetNote(id: id)).get()
        } catch {
            return Note(text: error.reason)
        }
    }
}

private enum Chains {
    struct WordCount: Middleware, Postware {
        var contentNeed: ContentNeed { .whole(upTo: 1 << 20) }

        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }

        func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
            let words = (response.content.text ?? "").split(separator: " ").count
            try response.fields.set("X-Words", to: "\(words)")
            return .pass
        }
    }

    struct Locate: AsyncMiddleware {
        let position: @Sendable () async throws -> String

        func handle(_ request: inout HttpRequest, in exchange: Exchange) async throws -> Verdict {
            try request.fields.set("X-Position", to: try await position())
            return .pass
        }
    }

    private static func sign(_ path: String) async throws -> String { "signed \(path)" }

    static func middlewares() -> [any Middleware] {
        [
            OnRequest("name the app") { request, _ in try request.fields.set("X-App", to: "notes/1.0") },
            OnRequest.deciding("maintenance") { request, _ in
                request.path.hasPrefix("/beta") ? .abort(with: HttpResponse(.serviceUnavailable)) : .pass
            },
            HttpCache(store: .memory(), mode: .private).when { request, _ in request.tags.contains("pages") },
            WordCount(), Locate { "north" },
            AsyncOnRequest("sign") { request, _ in request.fields["X-Signature"] = try await sign(request.path) },
        ]
    }
}

private enum Tokens {
    struct NotesLogin: TokenSource {
        let answer: @Sendable (Secret?) async throws -> String?

        func newToken(refreshing refreshToken: Secret?) async throws -> NewToken {
            guard let token = try await answer(refreshToken) else { throw TokenRefused("the session has ended") }
            return NewToken(Secret(token), lifetime: .seconds(600), refreshToken: Secret("next"))
        }
    }

    static func make(
        _ service: ServiceDefinition, _ source: any TokenSource, path: String,
        loggedOut: @escaping @Sendable (String) -> Void
    ) -> (Credential, HttpManager) {
        let login = Credential(name: "login", source: source, store: FileTokenStore(path: path))
        let manager = HttpManager(
            service: service, middlewares: [TokenRefresh(login), TokenInject(login)],
            postwares: [Unauthorized { event in loggedOut(event.reason ?? "the server said \(event.status.code)") }])
        return (login, manager)
    }

    static func reason(_ manager: HttpManager) async throws -> String {
        do {
            _ = try await manager.send(ListNotes())
            return ""
        } catch let error as HttpError where error.isAuthentication { return error.reason }
    }

    static func replace(_ login: Credential) async throws {
        await login.clear()
        try await login.put(NewToken(Secret("fresh"), lifetime: .seconds(600)))
    }

    static func named(_ source: any TokenSource, _ store: any TokenStore) -> Credential {
        let ada = Credential(name: "login", source: source, store: store, account: "ada")
        return ada
    }
}

private enum Caching {
    struct GetPage: Route {
        typealias Response = String
        var path: RoutePath { "/page" }
    }

    static func chain(_ login: Credential) -> [any Middleware] {
        [
            HttpCache(store: .memory(.mebibytes(50)), mode: .private),
            TokenRefresh(login),
            TokenInject(login),
        ]
    }

    static func onDisk(_ folder: String) -> HttpCache {
        HttpCache(store: DiskStore(path: folder, limit: .mebibytes(200)), mode: .private)
    }

    static func isStored(_ manager: HttpManager) async throws -> Bool {
        let page = try await manager.response(of: GetPage())
        return page.responder == .cache
    }
}

private enum Streaming {
    struct GetLog: Route {
        typealias Response = RawContent
        var path: RoutePath { "/log" }
    }

    struct Prices: Route {
        var path: RoutePath { "/prices" }
    }

    struct PutLog<Pieces: AsyncSequence & Sendable>: Route where Pieces.Element == [UInt8] {
        let method = HttpMethod.put
        var pieces: Pieces
        var path: RoutePath { "/log" }
        func content(in service: ServiceDefinition) -> RequestContent { .stream(pieces) }
    }

    struct PutAgain<Pieces: AsyncSequence & Sendable>: Route where Pieces.Element == [UInt8] {
        let method = HttpMethod.put
        let open: @Sendable () -> Pieces
        var path: RoutePath { "/log" }
        func content(in service: ServiceDefinition) -> RequestContent { .reopening { open() } }
    }

    static func lines(_ manager: HttpManager) async throws -> [String] {
        var lines: [String] = []
        let response = try await manager.stream(GetLog())
        for try await line in response.lines { lines.append(line) }
        return lines
    }

    static func prices(_ manager: HttpManager) async throws -> [String] {
        var prices: [String] = []
        for try await event in manager.events(of: Prices()) {
            if event.data == "closed" { break }
            prices.append(event.data)
        }
        return prices
    }

    static func save(_ manager: HttpManager, to path: String, show: @escaping @Sendable (Double?) -> Void) async throws
    {
        try await manager.download(GetLog(), to: path) { progress in show(progress.fraction) }
    }
}

private enum InTests {
    struct Answers: HttpSending {
        func send<R: Route>(_ route: R) async throws -> R.Response {
            if let notes = [Note(text: "test")] as? R.Response { return notes }
            throw HttpError(response: HttpResponse(.notFound))
        }
    }

    struct Echo: AsyncHttpClient {
        func respond(to request: HttpRequest) async throws -> HttpResponse {
            HttpResponse(.ok, content: request.content)
        }
    }

    static func scripted(_ service: ServiceDefinition) -> HttpManager {
        let client = ScriptedClient()
        client.answer(.get, "/notes", json: #"[{"text":"a"}]"#)
        client.answerCall(.failure(GatewayError(.upstream, .dnsError, "no such host")))
        let manager = HttpManager(service: service, client: client)
        return manager
    }

    static func local() async throws -> String {
        let origin = try LocalOrigin { request in HttpResponse(.ok, content: .text(request.path)) }
        let text = try await HttpManager(service: ServiceDefinition(baseURL: BaseUrl(origin.url)))
            .send(Request<String>(.get, "/hello"))
        return text
    }
}

@Suite struct NotesExampleTests {
    private static let service = "https://notes.example.com".service

    @Test func `errors are told apart as the article says`() async throws {
        let client = ScriptedClient()
        client.answer(.get, "/notes/1", json: #"{"text":"a"}"#)
        client.answer(.get, "/notes/2", .notFound, json: "{}")
        client.answer(.get, "/notes/3") { _ in .failure(GatewayError(.upstream, .dnsError, "no such host")) }
        client.answer(.get, "/notes/4") { _ in .failure(GatewayError(.upstream, .responseTimeout, "late")) }
        client.answer(.get, "/notes/5", .unauthorized, json: "{}")
        client.answer(.get, "/notes", .unprocessableContent, json: #"{"fields":["text"]}"#)
        let manager = HttpManager(service: NotesExampleTests.service, client: client)
        var texts: [String] = []
        for id in 1...5 { texts.append(try await Errors.text(id, manager)) }
        #expect(
            texts == [
                "a", "There is no such note.", "You are offline.", "The server takes too long.", "Please log in.",
            ])
        #expect(try await Errors.problems(manager) == ["text"])
        #expect(try await manager.send(Errors.FindNote(id: 2)) == nil)
        #expect(await Errors.note(1, manager).text == "a")
        let limited = HttpManager(
            service: NotesExampleTests.service, client: client,
            middlewares: [OnRequest { _, _ in throw QuotaSpent() }])
        #expect(try await Errors.mayGoOn(limited) == false)
    }

    @Test func `wares act as the article says`() async throws {
        let client = ScriptedClient()
        client.answer(.get, "/notes", json: #"[ {"text":"a b"} ]"#)
        let manager = HttpManager(
            service: NotesExampleTests.service, client: client, middlewares: Chains.middlewares())
        #expect(try await manager.response(of: ListNotes()).fields["X-Words"] == "4")
        #expect(client.requests.first?.fields["X-App"] == "notes/1.0")
        #expect(client.requests.first?.fields["X-Position"] == "north")
        let beta = await #expect(throws: HttpError.self) { try await manager.send(Request<String>(.get, "/beta/1")) }
        #expect(beta?.responder == .ware("maintenance"))
    }

    @Test func `tokens are obtained, refused and replaced as the article says`() async throws {
        let origin = try LocalOrigin { _ in .json("[]") }
        let folder = TemporaryFolder()
        let heard = Mutex<[String]>([])
        let source = Tokens.NotesLogin { refreshing in refreshing == nil ? "first" : nil }
        let (login, manager) = Tokens.make(try .local(origin.port), source, path: folder.path + "/tokens") { text in
            heard.withLock { $0.append(text) }
        }
        #expect(try await Tokens.reason(manager) == "")
        #expect(origin.requests.first?.fields[.authorization] == "Bearer first")
        try await Tokens.replace(login)
        _ = try await manager.send(ListNotes())
        #expect(origin.requests.last?.fields[.authorization] == "Bearer fresh")
        let (_, ended) = Tokens.make(
            try .local(origin.port), Tokens.NotesLogin { _ in nil }, path: folder.path + "/none"
        ) { text in heard.withLock { $0.append(text) } }
        #expect(try await Tokens.reason(ended).contains("the session has ended"))
        #expect(heard.withLock { $0 } == ["the session has ended"])
        #expect(Tokens.named(source, MemoryTokenStore()).account == "ada")
    }

    @Test func `responses are stored on disk from the first one on`() async throws {
        let origin = try LocalOrigin { _ in
            HttpResponse(.ok, fields: ["Cache-Control": "max-age=100"], content: .text("page"))
        }
        let folder = TemporaryFolder()
        let manager = HttpManager(
            service: try .local(origin.port), middlewares: [Caching.onDisk(folder.path + "/store")])
        #expect(try await Caching.isStored(manager) == false)
        while try await !Caching.isStored(manager) { await Task.yield() }
        #expect(origin.requests.count < 50)
        #expect(Caching.chain(Credential(name: "a", source: Tokens.NotesLogin { _ in "t" })).count == 3)
    }

    @Test func `content streams as the article says`() async throws {
        let origin = try LocalOrigin { request in
            if request.method == .put { return HttpResponse(.noContent) }
            if request.path == "/prices" {
                return HttpResponse(
                    .ok, fields: ["Content-Type": "text/event-stream"],
                    content: .text("data: 1\n\ndata: 2\n\ndata: closed\n\n"))
            }
            return HttpResponse(.ok, content: .text("a\nb\n"))
        }
        let manager = HttpManager(service: try .local(origin.port))
        #expect(try await Streaming.lines(manager) == ["a", "b"])
        #expect(try await Streaming.prices(manager) == ["1", "2"])
        let pieces = AsyncStream<[UInt8]> { continuation in
            continuation.yield(Array("x".utf8))
            continuation.finish()
        }
        try await manager.send(Streaming.PutLog(pieces: pieces))
        #expect(origin.requests.last?.content.text == "x")
        try await manager.send(
            Streaming.PutAgain {
                AsyncStream { continuation in
                    continuation.yield(Array("again".utf8))
                    continuation.finish()
                }
            })
        #expect(origin.requests.last?.content.text == "again")
        let folder = TemporaryFolder()
        try await Streaming.save(manager, to: folder.path + "/log") { _ in }
        #expect(try String(contentsOfFile: folder.path + "/log", encoding: .utf8) == "a\nb\n")
    }

    @Test func `tests stand in three places`() async throws {
        #expect(try await InTests.Answers().send(ListNotes()) == [Note(text: "test")])
        #expect(try await InTests.scripted(NotesExampleTests.service).send(ListNotes()) == [Note(text: "a")])
        let echo = HttpManager(service: NotesExampleTests.service, client: InTests.Echo())
        #expect(try await echo.send(Request<String>(.post, "/", content: .text("hi"))) == "hi")
        #expect(try await InTests.local() == "/hello")
    }
}
