import HttpWareClient

/// All todos.
struct ListTodos: Route {
    typealias Response = [Todo]
    var path: RoutePath { "/todos" }
}

/// One more.
struct AddTodo: Route {
    typealias Response = Todo
    static let method = HttpMethod.post
    var body: Todo
    var path: RoutePath { "/todos" }
}

/// One is done.
struct FinishTodo: Route {
    static let method = HttpMethod.put
    var id: Int
    var path: RoutePath { "/todos/\(id)/done" }
}

/// A token for a name and a password, or for a refresh token.
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
