import Foundation
import Testing

/// Five published designs of networking layers, A to E, that this library carries out whole: each of their ideas, the test that
/// shows it, and where the runnable example has it.
@Suite struct SeedsTests {
    /// An idea; a test's name; code of the example, white space aside.
    struct Row: Sendable, CustomTestStringConvertible {
        let idea: String
        let test: String
        let code: String

        init(_ idea: String, _ test: String, _ code: String) {
            self.idea = idea
            self.test = test
            self.code = code
        }

        var testDescription: String { idea }
    }

    static let rows = [
        // A. Modular networking: middlewares and postwares.
        Row(
            "A: a manager runs a request through middlewares, the client, then postwares",
            "SEEDS A: a manager runs a request through middlewares, the client, then postwares", "HttpManager("),
        Row(
            "A: a client sends to the network, behind a protocol",
            "SEEDS E: a scripted client stands behind the protocol", "client: any HttpClient = .libevent"),
        Row(
            "A: a request without a result type, and a typed one on top",
            "SEEDS A: a typed request makes a message that knows no type", "-> Request<Response>"),
        Row(
            "A: a middleware passes on or aborts", "SEEDS A: a middleware aborts, and nothing goes upstream",
            "-> Verdict {"),
        Row(
            "A: wares have an order; most need none",
            "SEEDS A: wares are sorted by their order, stably, and most need none", "var order: WareOrder { .first }"),
        Row(
            "A: a class may be both",
            "SEEDS A and D: the example lives through a worn-out token, 304 and a lost network",
            "final class RouteTimes: Middleware, Postware"),
        Row(
            "A: authentication over a token service that can be mocked",
            "SEEDS A: requests wait while one token is asked for, and all carry it", "struct Login: TokenSource"),
        Row(
            "A: requests are collected while the token refreshes",
            "SEEDS A: requests wait while one token is asked for, and all carry it", "TokenRefresh(login)"),
        Row("A: a postware logs the user out on 401", "SEEDS A: a postware logs the user out on 401", "Unauthorized {"),
        Row(
            "A: a service definition: base URL and default encodings, injected",
            "SEEDS A and C: a service definition brings base URL, coders, fields and time limits", "ServiceDefinition("),
        Row(
            "A: their list of wares", "SEEDS A: the gateway's wares are built in code, and make one chain",
            "HttpCache(store: .memory(.mebibytes(50)), mode: .private)"),
        // B. Request, worker, engine.
        Row(
            "B: a request apart from how it is sent, decoded by its type", "SEEDS B: a request is a few lines",
            ": Route {"),
        Row(
            "B: environments are swapped", "SEEDS B: a manager moves to another environment with all its wares",
            ".using(.development)"),
        Row(
            "B: network errors become useful ones",
            "SEEDS B: a refused connection is an error of the way there, and may be tried again",
            "catch let error as HttpError"),
        Row(
            "B: middleware for requests and responses", "SEEDS B: closures are wares, in both directions",
            "RequestHeaders(set:"),
        Row(
            "B: a response with its model, and the data it came from",
            "SEEDS B: a model comes with its response, and the data that it came from",
            "manager.response(of: ImportTodos())"),
        Row(
            "B: logic of some requests stays out of the engine",
            "SEEDS B: a challenge is answered by a ware, and the request replayed with its content", "Challenge("),
        Row(
            "B: publishers", "SEEDS B: a publisher brings the model, and sends nothing before it has a subscriber",
            "manager.send(ListTodos())"),
        Row("B: 25 lines for a request", "SEEDS B: a request is a few lines", "struct ListTodos: Route {"),
        // C. A network layer of operations.
        Row(
            "C: one place for the base URL, injected",
            "SEEDS A and C: a service definition brings base URL, coders, fields and time limits",
            "baseURL: \"https://todo.example.com\""),
        Row(
            "C: requests that cannot be built incomplete",
            "SEEDS C: a route's values are its initialiser, and its path cannot lead elsewhere", "var id: Int"),
        Row(
            "C: a request is cancellable", "SEEDS C: a cancelled task ends the exchange and its stream upstream",
            "queue.cancelAll(tagged:"),
        Row(
            "C: success and failure by status, time limits",
            "SEEDS C: a status that is no success is an error, and so is a time limit that passes",
            "StatusCheck(success:"),
        Row(
            "C: tokens are persisted",
            "SEEDS C: tokens are kept in a file of 0600, and taken from there by the next run", "FileTokenStore("),
        Row(
            "C: a queue with priorities",
            "SEEDS C: so many requests go at once, those of a higher priority first", "priority: .low"),
        Row(
            "C: a class of requests is cancelled",
            "SEEDS C: requests of a class are cancelled by their tag, waiting or under way",
            "var tags: Set<RequestTag> { [.pictures] }"),
        Row(
            "C: mappers: invalid and missing attributes",
            "SEEDS C: a missing attribute is named with its path, and the content is shown", "typealias Response = Todo"
        ),
        Row(
            "C: arrays that skip bad elements", "SEEDS C: LossyArray skips bad elements and says which",
            "LossyArray<Todo>"),
        Row(
            "C: persistence stays out of the network layer",
            "SEEDS C: the rooms of the client know no storage but files that are sent or downloaded",
            "protocol TodoService: Sendable"),
        Row(
            "C: all of it can be tested", "SEEDS E: a scripted client stands behind the protocol",
            "client: any HttpClient = .libevent"),
        // D. Routes and a router.
        Row(
            "D: a route: method, path, authentication, body, response",
            "SEEDS D: the body of a route goes as JSON, and the response comes back as its type",
            "static let authentication = RouteAuthentication.none"),
        Row(
            "D: a route that answers nothing of interest",
            "SEEDS D: a route without a response type answers Empty, whatever comes", "struct FinishTodo: Route {"),
        Row(
            "D: a request is made by default, and otherwise where that is not enough",
            "SEEDS D: makeRequest can be overridden, and starts from the default", "func makeRequest(in service:"),
        Row(
            "D: media and forms of several parts", "SEEDS D: a form of fields and a file is streamed as one",
            "form.add(\"picture\", file)"),
        Row(
            "D: any route is sent without further ado",
            "SEEDS D: the body of a route goes as JSON, and the response comes back as its type",
            "manager.send(AddTodo("),
        Row(
            "D: no strings at the call site",
            "SEEDS C: a route's values are its initialiser, and its path cannot lead elsewhere",
            "manager.send(FinishTodo(id: todo.id))"),
        Row(
            "D: a request is tried again with a new token",
            "SEEDS D: a request whose token is refused is replayed with a new one", "TokenInject(login)"),
        // E. Protocols.
        Row(
            "E: a view model sees the service's protocol only",
            "SEEDS E: a view model knows the service's protocol only", "private let service: any TodoService"),
        Row(
            "E: a result, or what comes thrown",
            "SEEDS E: result(of:) brings the model or the error, and throws nothing",
            "manager.result(of: ClearTodos())"),
        Row(
            "E: everything down to the request can be replaced",
            "SEEDS E: a scripted client stands behind the protocol", "protocol PictureService: Sendable"),
        Row(
            "E: defaults in extensions of protocols",
            "SEEDS D: makeRequest can be overridden, and starts from the default", "try defaultRequest(in: service)"),
        // What none of the five has.
        Row(
            "the same chain, told by a file", "a chain of a configuration file is a client's chain", "HttpManager("),
        Row(
            "uploads and downloads are streamed, with progress",
            "a download goes to its place when it is whole, with progress", "FileContent(path:"),
        Row("HTTP/2", "many requests share one connection of HTTP/2", "HttpManager("),
        Row(
            "a cache, and work without a network",
            "SEEDS A and D: the example lives through a worn-out token, 304 and a lost network", "Offline(),"),
        Row(
            "what each ware did to a request", "a closure is told by its label in records", "ExchangeReport(record)"),
    ]

    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    private static func text(of folder: String) throws -> String {
        let files = FileManager.default.enumerator(at: root.appending(path: folder), includingPropertiesForKeys: nil)
        return try (files?.compactMap { $0 as? URL } ?? []).filter { $0.pathExtension == "swift" }
            .map { try String(contentsOf: $0, encoding: .utf8) }.joined(separator: "\n")
    }

    @Test func `each idea has a test that shows it, and a place in the example`() throws {
        let tests = try SeedsTests.text(of: "Tests/HttpWareClientTests")
        let example = try SeedsTests.text(of: "Sources/TodoExample").filter { !$0.isWhitespace }
        for row in SeedsTests.rows {
            #expect(tests.contains("@Test func `\(row.test)`"), "\(row.idea): \(row.test)")
            #expect(example.contains(row.code.filter { !$0.isWhitespace }), "\(row.idea): \(row.code)")
        }
    }

    @Test func `SEEDS C: the rooms of the client know no storage but files that are sent or downloaded`() throws {
        for room in ["Routes", "Manager", "Decoding", "Queue"] {
            let code = try SeedsTests.text(of: "Sources/HttpWareClient/\(room)")
            #expect(code.contains("struct"))
            for word in ["CacheStore", "TokenStore", "MemoryStore", "DiskStore", "UserDefaults", "FileManager"] {
                #expect(!code.contains(word), "\(room) uses \(word)")
            }
        }
    }
}
