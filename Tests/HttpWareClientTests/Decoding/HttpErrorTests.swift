import HttpWareClient
import HttpWareTesting
import Testing

@Suite struct HttpErrorTests {
    private struct Problem: Decodable, Equatable {
        var title: String
        var code: Int?
    }

    private static func manager(_ response: HttpResponse) throws -> (HttpManager, LocalOrigin) {
        let origin = try LocalOrigin { _ in response }
        return (HttpManager(service: try .local(origin.port)), origin)
    }

    @Test func `an error knows side, fault, stage, route, request and response`() async throws {
        let (manager, origin) = try HttpErrorTests.manager(.json(#"{"title":"no","code":4}"#, .forbidden))
        let error = try #require(await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 7)) })
        #expect(error.side == .client)
        #expect(error.fault == .status(.forbidden))
        #expect(error.stage == .checking)
        #expect(error.mayRetry == false)
        #expect(error.route == "GetTodo")
        #expect(error.request?.path == "/todos/7")
        #expect(error.status == .forbidden)
        #expect(origin.requests.count == 1)
    }

    @Test func `the content of a 4xx is a typed error model`() async throws {
        let (manager, origin) = try HttpErrorTests.manager(
            .json(#"{"title":"no","code":4}"#, .conflict, type: "application/problem+json"))
        let error = try #require(await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 7)) })
        #expect(try error.model(Problem.self) == Problem(title: "no", code: 4))
        #expect(throws: HttpError.self) { try error.model(Todo.self) }
        let streamed = try #require(await #expect(throws: HttpError.self) { try await manager.stream(GetTodo(id: 7)) })
        #expect(try streamed.model(Problem.self).title == "no")
        #expect(origin.requests.count == 2)
    }

    @Test func `a missing attribute is named with its path, and the content is shown`() async throws {
        let text = #"[{"id":1,"title":"a","isDone":true},{"id":2,"isDone":false}]"#
        let (manager, origin) = try HttpErrorTests.manager(.json(text))
        let error = try #require(await #expect(throws: HttpError.self) { try await manager.send(ListTodos()) })
        #expect(error.fault == .decoding)
        #expect(error.stage == .decoding)
        #expect(error.problem?.kind == .missing)
        #expect(error.problem?.path == "[1].title")
        #expect(error.problem?.excerpt == text)
        #expect(error.underlying is DecodingError)
        #expect("\(error)".contains("ListTodos") && "\(error)".contains("[1].title"))
        #expect(origin.requests.count == 1)
    }

    @Test func `an invalid attribute is told from a missing one, and 200 bytes are shown`() async throws {
        let text = #"{"id":"seven","title":""# + String(repeating: "x", count: 500) + #""}"#
        let (manager, origin) = try HttpErrorTests.manager(.json(text))
        let error = try #require(await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 7)) })
        #expect(error.problem?.kind == .invalid)
        #expect(error.problem?.path == "id")
        #expect(error.problem?.excerpt.utf8.count == 200)
        #expect(origin.requests.count == 1)
    }

    @Test func `truncated JSON is a decoding error`() async throws {
        let (manager, origin) = try HttpErrorTests.manager(.json(#"{"id":7,"title":"a""#))
        let error = try #require(await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 7)) })
        #expect(error.fault == .decoding)
        #expect(error.problem?.kind == .invalid)
        #expect(error.response?.status == .ok)
        #expect(origin.requests.count == 1)
    }

    @Test func `content of another type is not decoded`() async throws {
        let (manager, origin) = try HttpErrorTests.manager(
            .json("<html>login</html>", .ok, type: "text/html; charset=utf-8"))
        let error = try #require(await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 7)) })
        #expect(error.fault == .contentType)
        #expect(error.reason.contains("text/html"))
        #expect(origin.requests.count == 1)
    }

    @Test func `a refused connection is an error of the way there, and may be tried again`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.ok) }
        await origin.close()
        let manager = HttpManager(service: try .local(origin.port))
        let error = try #require(await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 7)) })
        #expect(error.fault == .exchange(.connectionRefused))
        #expect(error.side == .upstream)
        #expect(error.stage == .sending)
        #expect(error.mayRetry)
    }

    @Test func `a ware that throws is named`() async throws {
        struct Broken: Middleware {
            func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict { throw Oops() }
            struct Oops: Error {}
        }
        let manager = HttpManager(service: "http://127.0.0.1:9".service, middlewares: [Broken()])
        let error = try #require(await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 7)) })
        #expect(error.side == .chain)
        #expect(error.fault == .exchange(.wareFailed))
        #expect(error.reason.contains("Broken"))
    }

    @Test func `StatusCheck says what a success is`() async throws {
        let origin = try LocalOrigin { _ in .json(#"{"id":1,"title":"odd","isDone":false}"#, .notFound) }
        let manager = HttpManager(service: try .local(origin.port), postwares: [StatusCheck(success: 200..<500)])
        #expect(try await manager.send(GetTodo(id: 1)).title == "odd")
    }

    @Test func `LossyArray skips bad elements and says which`() async throws {
        struct List: Route {
            typealias Response = LossyArray<Todo>
            var path: RoutePath { "/todos" }
        }
        let (manager, origin) = try HttpErrorTests.manager(
            .json(#"[{"id":1,"title":"a","isDone":true},7,{"id":2},[],null,{"id":3,"title":"c","isDone":false}]"#))
        let list = try await manager.send(List())
        #expect(list.map(\.id) == [1, 3])
        #expect(list.skipped.map(\.index) == [1, 2, 3, 4])
        #expect(origin.requests.count == 1)
    }
}

extension String {
    /// A service at this URL; an invalid URL is a mistake of the test.
    var service: ServiceDefinition {
        guard let url = try? BaseUrl(self) else { preconditionFailure("not a base URL") }
        return ServiceDefinition(baseURL: url)
    }
}
