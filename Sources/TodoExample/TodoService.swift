import HttpWareClient

/// The server as the rest of the app sees it, without requests and responses.
protocol TodoService: Sendable {
    func todos() async throws -> [Todo]
    func add(_ title: String) async throws -> Todo
    func finish(_ todo: Todo) async throws
    /// The todos of other sources, and the number of unreadable ones.
    func imported() async throws -> (todos: [Todo], unreadable: Int)
    /// Deletes all todos.
    func clear() async throws
}

/// The service over the network.
struct NetworkedTodoService: TodoService {
    let manager: HttpManager

    func todos() async throws -> [Todo] { try await manager.send(ListTodos()) }
    func add(_ title: String) async throws -> Todo { try await manager.send(AddTodo(body: Todo(id: 0, title: title))) }
    func finish(_ todo: Todo) async throws { _ = try await manager.send(FinishTodo(id: todo.id)) }

    func imported() async throws -> (todos: [Todo], unreadable: Int) {
        let response = try await manager.response(of: ImportTodos())
        return (response.model.elements, response.model.skipped.count)
    }

    func clear() async throws { _ = try await manager.result(of: ClearTodos()).get() }
}

extension NetworkedTodoService {
    /// Makes a service with all settings that the app needs for its network. They are given once, for all requests.
    static func make(
        _ service: ServiceDefinition, user: String, store: any TokenStore, client: any HttpClient = .libevent,
        times: RouteTimes = RouteTimes(), records: RecordRing? = nil,
        askForCode: @escaping @Sendable () async throws -> String = { throw CancellationError() }
    ) -> NetworkedTodoService {
        let plain = HttpManager(service: service, client: client)
        let login = Credential(name: "login", source: Login(manager: plain, name: user), store: store)
        return NetworkedTodoService(
            manager: HttpManager(
                service: service, client: client,
                middlewares: [
                    times,
                    RequestHeaders(set: ["User-Agent": "todo/1.0"]),
                    Offline(),
                    HttpCache(store: .memory(.mebibytes(50)), mode: .private),
                    TokenRefresh(login),
                    TokenInject(login),
                    Challenge(statuses: [403]) { response, _ in
                        response.fields["X-Step-Up"] == nil ? nil : ["X-Code": try await askForCode()]
                    },
                ],
                postwares: [
                    Unauthorized { event in print("please log in: \(event.status)") },
                    StatusCheck(success: 200..<300),
                ],
                records: records))
    }
}
