import HttpWareClient

/// Lists all todos.
struct ListTodos: Route {
    typealias Response = [Todo]
    var path: RoutePath { "/todos" }
}

/// Adds a todo.
struct AddTodo: Route {
    typealias Response = Todo
    static let method = HttpMethod.post
    var body: Todo
    var path: RoutePath { "/todos" }
}

/// Marks a todo as done.
struct FinishTodo: Route {
    static let method = HttpMethod.put
    var id: Int
    var path: RoutePath { "/todos/\(id)/done" }
}

/// Deletes all todos.
struct ClearTodos: Route {
    static let method = HttpMethod.delete
    var path: RoutePath { "/todos" }
}

/// Imports todos from another source. Invalid ones are left out.
struct ImportTodos: Route {
    typealias Response = LossyArray<Todo>
    var since: Int?
    var path: RoutePath { "/import" }
    var query: QueryItems { ["since": since] }

    // Everything else is as usual.
    func makeRequest(in service: ServiceDefinition) throws -> Request<Response> {
        var request = try defaultRequest(in: service)
        request.headers.append("Prefer", "respond-async, wait=10")
        return request
    }
}

/// Uploads a picture for a todo, which is read from disk while it is sent.
struct AttachPicture: Route {
    static let method = HttpMethod.post
    var id: Int
    var file: FileContent
    var path: RoutePath { "/todos/\(id)/picture" }

    func content(in service: ServiceDefinition) -> RequestContent {
        var form = Multipart()
        form.add("picture", file)
        return .multipart(form)
    }
}

/// Downloads the picture of a todo.
struct GetPicture: Route {
    typealias Response = RawContent
    var id: Int
    var path: RoutePath { "/todos/\(id)/picture" }
    var tags: Set<RequestTag> { [.pictures] }
}

/// Obtains a token for a name and a password, or for a refresh token.
struct GetToken: Route {
    struct Body: Encodable, Sendable {
        var name: String
        var refreshToken: String?
    }

    struct Response: Decodable, Sendable {
        var accessToken: String
        var refreshToken: String
        var expiresIn: Int
    }

    static let method = HttpMethod.post
    static let authentication = RouteAuthentication.none
    var body: Body
    var path: RoutePath { "/token" }
}
