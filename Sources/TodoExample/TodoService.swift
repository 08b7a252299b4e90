import HttpWareClient

/// What the rest of the app knows of the server: no requests, no responses.
protocol TodoService: Sendable {
    func todos() async throws -> [Todo]
    func add(_ title: String) async throws -> Todo
    func finish(_ todo: Todo) async throws
}

/// The service over the network.
struct NetworkedTodoService: TodoService {
    let manager: HttpManager

    func todos() async throws -> [Todo] { try await manager.send(ListTodos()) }
    func add(_ title: String) async throws -> Todo { try await manager.send(AddTodo(body: Todo(id: 0, title: title))) }
    func finish(_ todo: Todo) async throws { _ = try await manager.send(FinishTodo(id: todo.id)) }
}

extension NetworkedTodoService {
    /// A service with everything that the app wants of its network: told once, for all requests.
    static func make(
        _ service: ServiceDefinition, user: String, store: any TokenStore, client: any HttpClient = .libevent,
        records: RecordRing? = nil
    ) -> NetworkedTodoService {
        let plain = HttpManager(service: service, client: client)
        let login = Credential(name: "login", source: Login(manager: plain, name: user), store: store)
        return NetworkedTodoService(
            manager: HttpManager(
                service: service, client: client,
                middlewares: [
                    RequestHeaders(set: ["User-Agent": "todo/1.0"]),
                    StoredAnswers(),
                    TokenRefresh(credential: login),
                    TokenInject(credential: login),
                ],
                postwares: [Unauthorized { event in print("please log in: \(event.status)") }],
                records: records))
    }
}
