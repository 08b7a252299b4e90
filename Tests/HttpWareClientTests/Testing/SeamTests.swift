import HttpWare
import HttpWareClient
import HttpWareTesting
import Testing

@Suite struct SeamTests {
    /// A service needs only the protocol.
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

    /// Answers, and notes what each request would look like.
    private struct Noting: HttpSending {
        let seen = ThreadLock<[(limit: Duration?, tags: Set<RequestTag>, call: String?)]>([])

        func send<R: Route>(_ route: R) async throws -> R.Response { try await send(route, with: []) }

        func send<R: Route>(_ route: R, with options: [CallOption]) async throws -> R.Response {
            let request = try route.makeRequest(in: "https://api.example.com".service).with(options)
            seen.withLock { $0.append((request.timeouts.total, request.tags, request.headers["X-Call"])) }
            guard let none = NoContent() as? R.Response else { throw HttpError(response: HttpResponse(.notFound)) }
            return none
        }
    }

    @Test func `a test sees the options of a service's calls`() async throws {
        let answers = Noting()
        let http: any HttpSending = answers
        try await http.send(DeleteTodo(id: 1), .timeout(.seconds(5)), .tag("list"), .field("X-Call", "one"))
        try await http.send(DeleteTodo(id: 2))
        let seen = answers.seen.withLock { $0 }
        #expect(seen.map(\.limit) == [.seconds(5), nil])
        #expect(seen.map(\.tags) == [["list"], []])
        #expect(seen.map(\.call) == ["one", nil])
        // Without an implementation of their own, options change nothing.
        let plain: any HttpSending = Answers()
        #expect(try await plain.send(ListTodos(), .timeout(.seconds(5))).map(\.title) == ["test"])
    }

    @Test func `options reach a manager and a queue through the protocol`() async throws {
        let client = ScriptedClient()
        client.answer(.delete, "/todos/1", with: HttpResponse(.noContent))
        let manager = HttpManager(service: "https://api.example.com".service, client: client)
        for http: any HttpSending in [manager, RequestQueue(manager)] {
            try await http.send(DeleteTodo(id: 1), .field("X-Call", "one"))
        }
        #expect(client.requests.map { $0.fields["X-Call"] } == ["one", "one"])
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

    private struct Broken: Error { let code: Int }

    private struct Streamed: StreamingHttpClient {
        func respond(to request: HttpRequest, content: RequestPieces) async throws -> StreamedAnswer {
            if request.path == "/late" {
                let content = AsyncThrowingStream<[UInt8], any Error> { $0.finish(throwing: Broken(code: 9)) }
                return StreamedAnswer(HttpResponse(.ok), content: content)
            }
            throw Broken(code: 8)
        }
    }

    private struct Echo: AsyncHttpClient {
        func respond(to request: HttpRequest) async throws -> HttpResponse {
            if request.path == "/slow" { try await untilCancelled() }
            if request.path == "/broken" { throw Broken(code: 7) }
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
        #expect((broken?.underlying as? Broken)?.code == 7)
    }

    @Test func `an error of a transport that streams keeps its type`() async throws {
        let manager = HttpManager(service: "https://api.example.com".service, client: .streaming(Streamed()))
        let early = await #expect(throws: HttpError.self) { try await manager.send(Request<String>(.get, "/")) }
        #expect((early?.underlying as? Broken)?.code == 8)
        let late = await #expect(throws: HttpError.self) {
            for try await _ in try await manager.stream(Request<String>(.get, "/late")).bytes {}
        }
        #expect((late?.underlying as? Broken)?.code == 9)
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
