import Foundation
import Testing

/// The ideas of five published designs of networking layers, all of which this library implements. Each idea has a test
/// that shows it and a place in the runnable example.
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
        // Modular networking: middlewares and postwares.
        Row(
            "a manager runs a request through middlewares, the client, then postwares",
            "a manager runs a request through middlewares, the client, then postwares", "HttpManager("),
        Row(
            "a client sends to the network, behind a protocol",
            "a scripted client stands behind the protocol", "client: any HttpClient = .libevent"),
        Row(
            "a request without a result type, and a typed one on top",
            "a typed request makes a message that knows no type", "-> Request<Response>"),
        Row(
            "a middleware passes on or aborts", "a middleware aborts, and nothing goes upstream",
            "-> Verdict {"),
        Row(
            "wares have an order; most need none",
            "wares are sorted by their order, stably, and most need none", "var order: WareOrder { .first }"),
        Row(
            "a class may be both",
            "the example lives through a worn-out token, 304 and a lost network",
            "final class RouteTimes: Middleware, Postware"),
        Row(
            "authentication over a token service that can be mocked",
            "requests wait while one token is asked for, and all carry it", "struct Login: TokenSource"),
        Row(
            "requests are collected while the token refreshes",
            "requests wait while one token is asked for, and all carry it", "TokenRefresh(login)"),
        Row("a postware logs the user out on 401", "a postware logs the user out on 401", "Unauthorized {"),
        Row(
            "a service definition: base URL and default encodings, injected",
            "a service definition brings base URL, coders, fields and time limits", "ServiceDefinition("),
        Row(
            "their list of wares", "the gateway's wares are built in code, and make one chain",
            "HttpCache(store: .memory(.mebibytes(50)), mode: .private)"),
        // Request, worker, engine.
        Row(
            "a request apart from how it is sent, decoded by its type", "a request is a few lines",
            ": Route {"),
        Row(
            "environments are swapped", "a manager moves to another environment with all its wares",
            ".using(.development)"),
        Row(
            "network errors become useful ones",
            "a refused connection is an error of the way there, and may be tried again",
            "catch let error as HttpError"),
        Row(
            "middleware for requests and responses", "closures are wares, in both directions",
            "RequestHeaders(set:"),
        Row(
            "a response with its model, and the data it came from",
            "a model comes with its response, and the data that it came from",
            "manager.response(of: ImportTodos())"),
        Row(
            "logic of some requests stays out of the engine",
            "a challenge is answered by a ware, and the request replayed with its content", "Challenge("),
        Row(
            "publishers", "a publisher brings the model, and sends nothing before it has a subscriber",
            "manager.send(ListTodos())"),
        Row("25 lines for a request", "a request is a few lines", "struct ListTodos: Route {"),
        // A network layer of operations.
        Row(
            "one place for the base URL, injected",
            "a service definition brings base URL, coders, fields and time limits",
            "baseURL: \"https://todo.example.com\""),
        Row(
            "requests that cannot be built incomplete",
            "a route's values are its initialiser, and its path cannot lead elsewhere", "var id: Int"),
        Row(
            "a request is cancellable", "a cancelled task ends the exchange and its stream upstream",
            "queue.cancelAll(tagged:"),
        Row(
            "success and failure by status, time limits",
            "a status outside of 2xx is an error, and so is a time limit that passes",
            "StatusCheck(success:"),
        Row(
            "tokens are persisted",
            "tokens are kept in a file of 0600, and taken from there by the next run", "FileTokenStore("),
        Row(
            "a queue with priorities",
            "at most the given number of requests go at once, higher priorities first", "priority: .low"),
        Row(
            "a class of requests is cancelled",
            "requests of a class are cancelled by their tag, waiting or under way",
            "var tags: Set<RequestTag> { [.pictures] }"),
        Row(
            "mappers: invalid and missing attributes",
            "a missing attribute is named with its path, and the content is shown", "typealias Response = Todo"
        ),
        Row(
            "arrays that skip bad elements", "LossyArray skips bad elements and says which",
            "LossyArray<Todo>"),
        Row(
            "persistence stays out of the network layer",
            "the rooms of the client know no storage but files that are sent or downloaded",
            "protocol TodoService: Sendable"),
        Row(
            "all of it can be tested", "a scripted client stands behind the protocol",
            "client: any HttpClient = .libevent"),
        // Routes and a router.
        Row(
            "a route: method, path, authentication, body, response",
            "the body of a route goes as JSON, and the response comes back as its type",
            "static let authentication = RouteAuthentication.none"),
        Row(
            "a route that answers nothing of interest",
            "a route without a response type answers NoContent, whatever comes", "struct FinishTodo: Route {"),
        Row(
            "a request is made by default, and otherwise where that is not enough",
            "makeRequest can be overridden, and starts from the default", "func makeRequest(in service:"),
        Row(
            "media and forms of several parts", "a form of fields and a file is streamed as one",
            "form.add(\"picture\", file)"),
        Row(
            "any route is sent without further ado",
            "the body of a route goes as JSON, and the response comes back as its type",
            "manager.send(AddTodo("),
        Row(
            "no strings at the call site",
            "a route's values are its initialiser, and its path cannot lead elsewhere",
            "manager.send(FinishTodo(id: todo.id))"),
        Row(
            "a request is tried again with a new token",
            "a request whose token is refused is replayed with a new one", "TokenInject(login)"),
        // Protocols.
        Row(
            "a view model sees the service's protocol only",
            "a view model knows the service's protocol only", "private let service: any TodoService"),
        Row(
            "a result, or what comes thrown",
            "result(of:) brings the model or the error, and throws nothing",
            "manager.result(of: ClearTodos())"),
        Row(
            "everything down to the request can be replaced",
            "a scripted client stands behind the protocol", "protocol PictureService: Sendable"),
        Row(
            "defaults in extensions of protocols",
            "makeRequest can be overridden, and starts from the default", "try defaultRequest(in: service)"),
        // Missing in all of the five.
        Row(
            "the same chain, told by a file", "a chain of a configuration file is a client's chain", "HttpManager("),
        Row(
            "uploads and downloads are streamed, with progress",
            "a download goes to its place when it is whole, with progress", "FileContent(path:"),
        Row("HTTP/2", "many requests share one connection of HTTP/2", "HttpManager("),
        Row(
            "a cache, and work without a network",
            "the example lives through a worn-out token, 304 and a lost network", "Offline(),"),
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

    @Test func `the rooms of the client know no storage but files that are sent or downloaded`() throws {
        for room in ["Routes", "Manager", "Decoding", "Queue"] {
            let code = try SeedsTests.text(of: "Sources/HttpWareClient/\(room)")
            #expect(code.contains("struct"))
            for word in ["CacheStore", "TokenStore", "MemoryStore", "DiskStore", "UserDefaults", "FileManager"] {
                #expect(!code.contains(word), "\(room) uses \(word)")
            }
        }
    }
}
