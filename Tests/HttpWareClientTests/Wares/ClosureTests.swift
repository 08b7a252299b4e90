import HttpWareClient
import HttpWareTesting
import Synchronization
import Testing

@Suite struct ClosureTests {
    @Test func `closures are wares, in both directions`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.ok, content: .text("a")) }
        let seen = Mutex<[String]>([])
        let manager = HttpManager(
            service: try .local(origin.port),
            middlewares: [
                OnRequest { request, _ in try request.fields.set("X-App", to: "todo") },
                OnRequest.deciding { request, _ in request.path == "/stop" ? .abort(with: HttpResponse(.ok)) : .pass },
            ],
            postwares: [
                OnResponse { response, exchange in
                    seen.withLock { $0.append("\(exchange[ClientRequest.self]?.route ?? "") \(response.status.code)") }
                }
            ])
        _ = try await manager.send(DeleteTodo(id: 1))
        _ = try await manager.send(Request<NoContent>(.get, "/stop", name: "Stop"))
        #expect(origin.requests.map(\.path) == ["/todos/1"])
        #expect(origin.requests.first?.fields["X-App"] == "todo")
        #expect(seen.withLock { $0 } == ["DeleteTodo 200", "Stop 200"])
    }

    @Test func `a postware logs the user out on 401`() async throws {
        let origin = try LocalOrigin { _ in
            HttpResponse(.unauthorized, fields: ["WWW-Authenticate": "Bearer realm=\"todo\""])
        }
        let events = Mutex<[Unauthorized.Event]>([])
        let manager = HttpManager(
            service: try .local(origin.port),
            postwares: [Unauthorized { event in events.withLock { $0.append(event) } }])
        let error = await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 3)) }
        #expect(error?.fault == .status(.unauthorized))
        let event = try #require(events.withLock { $0.first })
        #expect(event.path == "/todos/3" && event.challenges == ["Bearer realm=\"todo\""])
    }

    @Test func `a challenge is answered by a ware, and the request replayed with its content`() async throws {
        let origin = try LocalOrigin { request in
            guard request.fields["X-Code"] == "123456" else {
                return HttpResponse(.forbidden, fields: ["X-Step-Up": "code"])
            }
            return HttpResponse(.ok, fields: ["Content-Type": "application/json"], content: request.content)
        }
        let asked = Mutex(0)
        let manager = HttpManager(
            service: try .local(origin.port),
            middlewares: [
                Challenge(statuses: [403]) { response, _ in
                    guard response.fields["X-Step-Up"] == "code" else { return nil }
                    asked.withLock { $0 += 1 }
                    await Task.yield()
                    return ["X-Code": "123456"]
                }
            ])
        let todo = Todo(id: 1, title: "a")
        #expect(try await manager.send(AddTodo(body: todo)) == todo)
        #expect(asked.withLock { $0 } == 1)
        #expect(origin.requests.count == 2)
    }

    @Test func `a challenge that is answered wrongly is not asked again`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.unauthorized) }
        let manager = HttpManager(
            service: try .local(origin.port), middlewares: [Challenge { _, _ in ["X-Code": "wrong"] }])
        let error = await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 1)) }
        #expect(error?.status == .unauthorized)
        #expect(origin.requests.count == 2)
    }

    @Test func `a route that needs no credentials is passed by the token wares`() async throws {
        struct Login: Route {
            static let authentication = RouteAuthentication.none
            var path: RoutePath { "/login" }
        }
        let origin = try LocalOrigin { _ in HttpResponse(.ok) }
        let manager = HttpManager(
            service: try .local(origin.port), middlewares: [try TokenInject(value: Secret("token"))])
        _ = try await manager.send(Login())
        _ = try await manager.send(DeleteTodo(id: 1))
        #expect(origin.requests.map { $0.fields[.authorization] } == [nil, "Bearer token"])
    }
}
