import HttpWareClient
import HttpWareTesting
import Synchronization

/// The example's own server, with short-lived tokens and validators.
final class TodoServer: Sendable {
    /// The number of requests after which a token is refused.
    static let usesOfToken = 3

    private let pages: Pages
    private let origin: LocalOrigin

    init() throws {
        let pages = Pages()
        self.pages = pages
        origin = try LocalOrigin { try pages.answer($0) }
    }

    /// The URL of the server.
    var url: String { origin.url }

    /// Closes the server, as if the network had failed.
    func stop() async { await origin.close() }
}

/// The state of the server. Guarded by a mutex, because all loops use it.
private final class Pages: Sendable {
    private struct State {
        var todos = [Todo(id: 1, title: "water the plants"), Todo(id: 2, title: "write to Ada")]
        var version = 1
        /// The pictures by the number of the todo.
        var pictures: [Int: [UInt8]] = [:]
        var tokens = 0
        /// The number of further uses of the current token.
        var uses = 0
    }

    private let state = Mutex(State())

    func answer(_ request: HttpRequest) throws -> HttpResponse {
        if request.path == "/token" { return token() }
        return try state.withLock { state in
            guard state.uses > 0, request.fields[.authorization] == "Bearer token-\(state.tokens)" else {
                return HttpResponse(
                    .unauthorized, fields: ["WWW-Authenticate": "Bearer error=\"invalid_token\""])
            }
            state.uses -= 1
            switch (request.method, request.path) {
            case (.get, "/todos"): return try Pages.list(state, request)
            case (.post, "/todos"):
                var todo = try JsonCoder().decode(Todo.self, from: request.content.bytes ?? [])
                todo.id = state.todos.count + 1
                state.todos.append(todo)
                state.version += 1
                return try Pages.json(todo, .created)
            case (.delete, "/todos"):
                guard request.fields["X-Code"] == "123456" else {
                    return HttpResponse(.forbidden, fields: ["X-Step-Up": "code"])
                }
                state.todos = []
                state.version += 1
                return HttpResponse(.noContent)
            case (.get, "/import"):
                return HttpResponse(
                    .ok, fields: ["Content-Type": "application/json"],
                    content: .text(#"[{"id":90,"title":"mend the roof","isDone":false},{"id":91}]"#))
            case (_, let path) where path.hasSuffix("/picture"):
                guard let id = Int(path.dropFirst("/todos/".count).dropLast("/picture".count)) else {
                    return HttpResponse(.notFound)
                }
                if request.method == .post {
                    state.pictures[id] = request.content.bytes
                    return HttpResponse(.noContent)
                }
                guard let picture = state.pictures[id] else { return HttpResponse(.notFound) }
                return HttpResponse(.ok, fields: ["Content-Type": "image/png"], content: .bytes(picture))
            default:
                guard let index = state.todos.firstIndex(where: { "/todos/\($0.id)/done" == request.path }) else {
                    return HttpResponse(.notFound)
                }
                state.todos[index].isDone = true
                state.version += 1
                return HttpResponse(.noContent)
            }
        }
    }

    private static func list(_ state: State, _ request: HttpRequest) throws -> HttpResponse {
        let tag = "\"v\(state.version)\""
        var response =
            request.fields[.ifNoneMatch] == tag ? HttpResponse(.notModified) : try json(state.todos, .ok)
        try response.fields.set(.etag, to: tag)
        // Must be validated each time, but may be used if the server is unreachable. RFC 9111 §4.2.4.
        try response.fields.set(.cacheControl, to: "max-age=0")
        return response
    }

    private func token() -> HttpResponse {
        let number = state.withLock { state in
            state.tokens += 1
            state.uses = TodoServer.usesOfToken
            return state.tokens
        }
        return HttpResponse(
            .ok, fields: ["Content-Type": "application/json"],
            content: .text(
                #"{"accessToken":"token-\#(number)","refreshToken":"refresh-\#(number)","expiresIn":3600}"#))
    }

    private static func json(_ value: some Encodable, _ status: HttpStatus) throws -> HttpResponse {
        HttpResponse(
            status, fields: ["Content-Type": "application/json"], content: .bytes(try JsonCoder().encode(value)))
    }
}
