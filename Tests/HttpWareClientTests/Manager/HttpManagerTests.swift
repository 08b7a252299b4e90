import HttpWare
import HttpWareClient
import HttpWareTesting
import Testing

@Suite struct HttpManagerTests {
    @Test func `a manager runs a request through middlewares, the client, then postwares`() async throws {
        let origin = try LocalOrigin { request in
            HttpResponse.json(#"{"id":7,"title":"\#(request.fields["X-Trace"] ?? "none")","isDone":true}"#)
        }
        let manager = HttpManager(
            service: try .local(origin.port), middlewares: [AddField(name: "X-Trace", value: "before")],
            postwares: [AddResponseField(name: "X-After", value: "after")])
        let response = try await manager.response(of: GetTodo(id: 7))
        #expect(response.model == Todo(id: 7, title: "before", isDone: true))
        #expect(response.fields["X-After"] == "after")
        #expect(response.responder == .upstream)
        #expect(origin.requests.map(\.path) == ["/todos/7"])
        #expect(origin.requests.first?.fields[.accept] == "application/json")
        // A client is not an intermediary. RFC 9110 §7.6.3.
        #expect(origin.requests.first?.fields.contains(.via) == false)
        #expect(origin.requests.first?.fields[.host] == "127.0.0.1:\(origin.port)")
    }

    @Test func `a middleware aborts, and nothing goes upstream`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.ok) }
        let manager = HttpManager(
            service: try .local(origin.port),
            middlewares: [Answering(response: .json(#"{"id":1,"title":"stored"}"#, type: "application/json"))])
        await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 1)) }
        let stored = HttpManager(
            service: try .local(origin.port),
            middlewares: [Answering(response: .json(#"{"id":1,"title":"stored","isDone":false}"#))])
        let response = try await stored.response(of: GetTodo(id: 1))
        #expect(response.model.title == "stored")
        #expect(response.responder == .ware("Answering"))
        #expect(origin.requests.isEmpty)
    }

    @Test func `wares are sorted by their order, stably, and most need none`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.noContent) }
        let manager = HttpManager(
            service: try .local(origin.port),
            middlewares: [
                AddField(name: "X-Order", value: "last", order: .last), AddField(name: "X-Order", value: "b"),
                AddField(name: "X-Order", value: "c"), AddField(name: "X-Order", value: "first", order: .first),
            ])
        _ = try await manager.send(DeleteTodo(id: 1))
        #expect(origin.requests.first?.fields.values(of: "X-Order") == ["first", "b", "c", "last"])
    }

    @Test func `the body of a route goes as JSON, and the response comes back as its type`() async throws {
        let origin = try LocalOrigin { request in
            HttpResponse(.created, fields: ["Content-Type": "application/json"], content: request.content)
        }
        let manager = HttpManager(service: try .local(origin.port))
        let sent = Todo(id: 3, title: "wäsche", isDone: true)
        let response = try await manager.response(of: AddTodo(body: sent))
        #expect(response.model == sent)
        #expect(response.status == .created)
        #expect(origin.requests.first?.fields[.contentType] == "application/json")
        #expect(origin.requests.first?.method == .post)
    }

    @Test func `a route without a response type answers NoContent, whatever comes`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.ok, content: .text("<p>gone</p>")) }
        let manager = HttpManager(service: try .local(origin.port))
        let empty: NoContent = try await manager.send(DeleteTodo(id: 1))
        #expect(empty == NoContent())
        #expect(origin.requests.first?.method == .delete)
        #expect(origin.requests.first?.content.isEmpty == true)
    }

    @Test func `result(of:) brings the model or the error, and throws nothing`() async throws {
        let origin = try LocalOrigin { request in
            request.path == "/todos/1"
                ? .json(#"{"id":1,"title":"a","isDone":false}"#) : .json(#"{"title":"no such todo"}"#, .notFound)
        }
        let manager = HttpManager(service: try .local(origin.port))
        #expect(try await manager.result(of: GetTodo(id: 1)).get().title == "a")
        guard case .failure(let error) = await manager.result(of: GetTodo(id: 2)) else {
            Issue.record("there is no such todo")
            return
        }
        #expect(error.fault == .status(.notFound))
    }

    @Test func `a manager moves to another environment with all its wares`() async throws {
        let production = try LocalOrigin { _ in .json(#"{"id":1,"title":"production","isDone":false}"#) }
        let development = try LocalOrigin { _ in .json(#"{"id":1,"title":"development","isDone":false}"#) }
        let service = ServiceDefinition(
            baseURL: try BaseUrl(production.url), environments: [.development: try BaseUrl(development.url)])
        let manager = HttpManager(service: service, middlewares: [AddField(name: "X-Trace", value: "kept")])
        #expect(try await manager.send(GetTodo(id: 1)).title == "production")
        let other = try manager.using(.development)
        #expect(try await other.send(GetTodo(id: 1)).title == "development")
        #expect(development.requests.first?.fields["X-Trace"] == "kept")
        // And back.
        #expect(try await other.using(.production).send(GetTodo(id: 1)).title == "production")
    }

    @Test func `an environment that the service does not name is refused, and nothing is sent elsewhere`() throws {
        let manager = HttpManager(service: "https://api.example.com".service, client: ScriptedClient())
        let error = #expect(throws: HttpError.self) { try manager.using("staging") }
        #expect(error?.fault == .invalidRequest)
        #expect(error?.reason.contains("staging") == true)
        #expect(try manager.using(.production).service.baseURL == "https://api.example.com")
    }

    @Test func `a ware on the wrong side makes every request fail, and nothing is sent`() async throws {
        let client = ScriptedClient()
        let manager = HttpManager(
            service: "https://api.example.com".service, client: client, postwares: [BothSides()])
        let error = await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 1)) }
        #expect(error?.fault == .invalidRequest && error?.stage == .making)
        #expect(error?.reason.contains("BothSides is a middleware") == true)
        #expect(client.requests.isEmpty)
    }

    @Test func `a base URL's path stands before the route's`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.noContent) }
        let manager = HttpManager(service: ServiceDefinition(baseURL: try BaseUrl(origin.url + "/api/v1/")))
        _ = try await manager.send(
            Request<NoContent>(.get, "/todos/\("a/b c")", query: ["q": "x y&z", "none": nil as Int?]))
        #expect(origin.requests.first?.receivedTarget == "/api/v1/todos/a%2Fb%20c?q=x%20y%26z")
    }

    @Test func `many tasks share one manager and few connections`() async throws {
        let origin = try LocalOrigin { request in .json(#"{"id":1,"title":"\#(request.path)","isDone":false}"#) }
        var service = try ServiceDefinition.local(origin.port)
        service.pool.maxPerEndpoint = 4
        let manager = HttpManager(service: service)
        let titles = try await withThrowingTaskGroup(of: String.self) { group in
            for id in 0..<200 { group.addTask { try await manager.send(GetTodo(id: id)).title } }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(titles.count == 200)
        #expect(await origin.connectionCount() <= 4)
    }

    @Test func `many requests share one connection of HTTP/2`() async throws {
        let origin = try LocalOrigin { request in .json(#"{"id":1,"title":"\#(request.path)","isDone":false}"#) }
        var service = try ServiceDefinition.local(origin.port)
        service.pool.maxPerEndpoint = 1
        service.speaks = .h2
        let manager = HttpManager(service: service)
        let titles = try await withThrowingTaskGroup(of: String.self) { group in
            for id in 0..<50 { group.addTask { try await manager.send(GetTodo(id: id)).title } }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(titles.count == 50)
        #expect(origin.requests.allSatisfy { $0.version == .http2 })
        #expect(await origin.connectionCount() == 1)
    }

    @Test func `a manager that was shut down refuses requests`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.noContent) }
        let manager = HttpManager(service: try .local(origin.port))
        _ = try await manager.send(DeleteTodo(id: 1))
        manager.shutdown()
        let error = await #expect(throws: HttpError.self) { try await manager.send(DeleteTodo(id: 1)) }
        #expect(error?.fault == .shutDown)
    }

    @Test func `loops that are shut down end what is under way`() async throws {
        let gate = LoopWait<Void>()
        let origin = try LocalOrigin { _ in
            try await gate.value()
            return HttpResponse(.ok)
        }
        let loops = ClientLoops(count: 2)
        let manager = HttpManager(service: try .local(origin.port), loops: loops)
        async let first = manager.result(of: DeleteTodo(id: 1))
        while origin.requests.isEmpty { await Task.yield() }
        await loops.shutdown()
        guard case .failure(let error) = await first else {
            Issue.record("it was not answered")
            return
        }
        #expect(error.fault == .shutDown)
        let late = await #expect(throws: HttpError.self) { try await manager.send(DeleteTodo(id: 1)) }
        #expect(late?.fault == .shutDown)
        gate.resume(returning: ())
    }
}

/// Adds a field to requests.
struct AddField: Middleware {
    let name: FieldName
    let value: String
    var order = WareOrder.middle

    func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        try request.fields.append(name, value)
        return .pass
    }
}

/// Adds a field to responses.
struct AddResponseField: Postware {
    let name: FieldName
    let value: String

    func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        try response.fields.append(name, value)
        return .pass
    }
}

/// A ware of both directions.
struct BothSides: Middleware, Postware {
    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }
    func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer { .pass }
}

/// Answers by itself.
struct Answering: Middleware {
    let response: HttpResponse

    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .abort(with: response) }
}
