import HttpWareClient
import HttpWareTesting
import Synchronization
import Testing

@Suite struct WholeResponseTests {
    /// Sees the content in both directions.
    private final class Reader: Middleware, Postware {
        let limit: Int
        let request = Mutex<String?>(nil)
        let response = Mutex<String?>(nil)

        init(limit: Int = 1 << 20) { self.limit = limit }

        var contentNeed: ContentNeed { .whole(upTo: limit) }

        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
            self.request.withLock { [text = request.content.text] in $0 = text }
            return .pass
        }

        func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
            self.response.withLock { [text = response.content.text] in $0 = text }
            return .pass
        }
    }

    @Test func `the response half of a ware that needs the whole content gets it`() async throws {
        let origin = try LocalOrigin { _ in .json(#"{"id":1,"title":"a","isDone":false}"#) }
        let reader = Reader()
        let manager = HttpManager(service: try .local(origin.port), middlewares: [reader])
        let todo = try await manager.send(AddTodo(body: Todo(id: 1, title: "b")))
        #expect(todo.title == "a")
        #expect(reader.request.withLock { $0 }?.contains(#""title":"b""#) == true)
        #expect(reader.response.withLock { $0 } == #"{"id":1,"title":"a","isDone":false}"#)
    }

    @Test func `content over its limit fails the exchange`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.ok, content: .bytes(Array(repeating: 1, count: 100_000))) }
        let manager = HttpManager(service: try .local(origin.port), middlewares: [Reader(limit: 1000)])
        let error = try #require(await #expect(throws: HttpError.self) { try await manager.send(DeleteTodo(id: 1)) })
        #expect(error.fault == .exchange(.responseContentTooLarge))
    }
}
