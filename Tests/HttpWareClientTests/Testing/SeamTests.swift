import HttpWare
import HttpWareClient
import HttpWareTesting
import Testing

@Suite struct SeamTests {
    /// What a service needs is the protocol.
    private struct TodoService {
        let http: any HttpSending
        func titles() async throws -> [String] { try await http.send(ListTodos()).map(\.title) }
        func remove(_ id: Int) async throws { try await http.send(DeleteTodo(id: id)) }
    }

    private struct Answers: HttpSending {
        func send<R: Route>(_ route: R) async throws -> R.Response {
            if let todos = [Todo(id: 1, title: "test")] as? R.Response { return todos }
            throw HttpError(response: HttpResponse(.notFound))
        }
    }

    @Test func `a service is tested without a manager`() async throws {
        let service = TodoService(http: Answers())
        #expect(try await service.titles() == ["test"])
        let error = await #expect(throws: HttpError.self) { try await service.remove(1) }
        #expect(error?.status == 404)
        #expect(throws: HttpError.self) { try Result<Int, HttpError>.failure(HttpError(.cancelled)).get() }
        guard case .failure(let failure) = await service.http.result(of: DeleteTodo(id: 1)) else {
            Issue.record("nothing is answered")
            return
        }
        #expect(failure.status == 404)
    }

    @Test func `a manager and a queue send for a service`() async throws {
        let client = ScriptedClient()
        client.answer(.get, "/todos", json: #"[{"id":1,"title":"a","isDone":false}]"#)
        client.answer(.delete, "/todos/1", with: HttpResponse(.noContent))
        let manager = HttpManager(service: "https://api.example.com".service, client: client)
        for http: any HttpSending in [manager, RequestQueue(manager)] {
            let service = TodoService(http: http)
            try await service.remove(1)
            #expect(try await service.titles() == ["a"])
        }
    }

    @Test func `a script answers by method and path, in any order`() async throws {
        let client = ScriptedClient()
        client.answer(.get, "/todos/1", json: #"{"id":1,"title":"one","isDone":false}"#)
        client.answer(.get, "/todos/2") { request in
            .success(.json(#"{"id":2,"title":"\#(request.fields["X-Call"] ?? "")","isDone":false}"#))
        }
        client.answerCall(.failure(GatewayError(.upstream, .dnsError, "no such host")))
        let manager = HttpManager(service: "https://api.example.com".service, client: client)
        #expect(try await manager.send(GetTodo(id: 2), .field("X-Call", "two")).title == "two")
        #expect(try await manager.send(GetTodo(id: 1)).title == "one")
        #expect(try await manager.send(GetTodo(id: 1)).title == "one")
        let error = await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 3)) }
        #expect(error?.isOffline == true)
    }

    @Test func `a rule may name a query, and a request without a rule fails in time and says so`() async throws {
        let client = ScriptedClient()
        client.answer(.get, "/todos", json: "[]")
        client.answer(.get, "/todos?page=2", json: #"[{"id":1,"title":"two","isDone":false}]"#)
        var service = "https://api.example.com".service
        service.timeouts.response = .milliseconds(100)
        let manager = HttpManager(service: service, client: client)
        #expect(try await manager.send(ListTodos(page: 2)).map(\.title) == ["two"])
        #expect(try await manager.send(ListTodos(page: 1)).isEmpty)
        let error = await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 3)) }
        #expect(error?.isTimeout == true)
        #expect(error?.reason.contains("GET /todos/3") == true && error?.reason.contains("GET /todos?page=2") == true)
    }

    private struct Echo: AsyncHttpClient {
        func respond(to request: HttpRequest) async throws -> HttpResponse {
            if request.path == "/slow" { try await Task.sleep(for: .seconds(600)) }
            if request.path == "/broken" { throw CancellationError() }
            await Task.yield()
            return HttpResponse(.ok, content: request.content)
        }
    }

    @Test func `a client is one async function`() async throws {
        var service = "https://api.example.com".service
        service.timeouts.response = .seconds(600)
        let manager = HttpManager(service: service, client: Echo())
        #expect(try await manager.send(Request<String>(.post, "/", content: .text("hello"))) == "hello")
        service.timeouts.response = .milliseconds(200)
        let hasty = HttpManager(service: service, client: Echo())
        let slow = await #expect(throws: HttpError.self) { try await hasty.send(Request<String>(.get, "/slow")) }
        #expect(slow?.isTimeout == true)
        let broken = await #expect(throws: HttpError.self) { try await manager.send(Request<String>(.get, "/broken")) }
        #expect(broken?.side == .upstream)
    }

    @Test func `waiting requests get another priority`() async throws {
        let manager = HttpManager(service: "https://api.example.com".service, client: Echo())
        let queue = RequestQueue(manager, maxConcurrent: 1)
        queue.pause()
        let order = ThreadLock<[String]>([])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (count, name) in ["a", "b", "c"].enumerated() {
                group.addTask {
                    try await queue.run(priority: .normal, tags: [RequestTag(name)]) {
                        order.withLock { $0.append(name) }
                    }
                }
                while queue.waitingCount <= count { await Task.yield() }
            }
            queue.setPriority(.high, tagged: "c")
            queue.setPriority(.low, tagged: "a")
            queue.resume()
            try await group.waitForAll()
        }
        #expect(order.withLock { $0 } == ["c", "b", "a"])
    }
}
