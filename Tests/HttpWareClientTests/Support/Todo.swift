import HttpWareClient

/// The content that the tests ask for.
struct Todo: Codable, Sendable, Equatable {
    var id: Int
    var title: String
    var isDone = false
}

struct GetTodo: Route {
    typealias Response = Todo
    var id: Int
    var path: RoutePath { "/todos/\(id)" }
}

struct ListTodos: Route {
    typealias Response = [Todo]
    var tags: [String] = []
    var page: Int?
    var path: RoutePath { "/todos" }
    var query: QueryItems { ["tag": tags, "page": page] }
}

struct AddTodo: Route {
    static let method = HttpMethod.post
    let body: Todo
    let path: RoutePath = "/todos"
    typealias Response = Todo
}

struct DeleteTodo: Route {
    static let method = HttpMethod.delete
    var id: Int
    var path: RoutePath { "/todos/\(id)" }
}

extension HttpResponse {
    /// A response of JSON.
    static func json(_ text: String, _ status: HttpStatus = .ok, type: StaticString = "application/json")
        -> HttpResponse
    {
        var response = HttpResponse(status, content: .text(text))
        response.fields.append(FieldLine(literal: .contentType, type))
        return response
    }
}

extension ServiceDefinition {
    /// A service on this host.
    static func local(_ port: UInt16) throws -> ServiceDefinition {
        var service = ServiceDefinition(baseURL: try BaseUrl("http://127.0.0.1:\(port)"))
        // A machine that is busy with other tests makes no test fail.
        service.timeouts.connect = .seconds(600)
        service.timeouts.response = .seconds(600)
        service.timeouts.idle = .seconds(600)
        return service
    }
}
