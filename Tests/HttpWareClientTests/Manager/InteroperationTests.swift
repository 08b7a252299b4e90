import HttpWare
import HTTPTypes
import HttpWareClient
import HttpWareCombine
import HttpWareTesting
import OpenCombine
import Synchronization
import Testing

@Suite struct InteroperationTests {
    @Test func `a request goes to swift-http-types and back`() throws {
        let request = try HttpRequest(
            .post, "https://example.com:8443/a%20b?c=d", fields: ["X-A": "1", "X-B": "2", "X-A": "3"])
        let other = try #require(HTTPRequest(request))
        #expect(other.method == .post && other.scheme == "https" && other.authority == "example.com:8443")
        #expect(other.path == "/a%20b?c=d")
        #expect(other.headerFields.map { "\($0.name)=\($0.value)" } == ["X-A=1", "X-B=2", "X-A=3"])
        let back = try HttpRequest(other)
        #expect(back.receivedTarget == "https://example.com:8443/a%20b?c=d")
        #expect(back.fields.map(\.name).map { $0.lowercased() } == ["x-a", "x-b", "x-a"])
    }

    @Test func `a response goes to swift-http-types and back`() throws {
        let other = try #require(HTTPResponse(HttpResponse(.notFound, fields: ["ETag": "\"a\""])))
        #expect(other.status == .notFound)
        #expect(other.headerFields[.eTag] == "\"a\"")
        let back = try HttpResponse(other)
        #expect(back.status == .notFound && back.fields[.etag] == "\"a\"")
    }

    @Test func `a request that cannot be sent is not converted`() {
        var request = HTTPRequest(method: .get, scheme: "https", authority: "exa mple", path: "/")
        #expect(throws: GatewayError.self) { try HttpRequest(request) }
        request.authority = "example.com"
        request.path = "/a b"
        #expect(throws: GatewayError.self) { try HttpRequest(request) }
    }

    @Test func `a publisher brings the model, and sends nothing before it has a subscriber`() async throws {
        let origin = try LocalOrigin { request in
            request.path == "/todos/1" ? .json(#"{"id":1,"title":"a","isDone":false}"#) : HttpResponse(.notFound)
        }
        let manager = HttpManager(service: try .local(origin.port))
        let publisher = manager.publisher(for: GetTodo(id: 1))
        #expect(origin.requests.isEmpty)
        let found = LoopWait<Result<Todo?, HttpError>>()
        let held = publisher.sink { _ in
        } receiveValue: {
            found.resume(returning: .success($0))
        }
        #expect(try await found.value().get()?.title == "a")
        let failed = LoopWait<HttpError?>()
        let other = manager.publisher(for: GetTodo(id: 2)).sink { completion in
            if case .failure(let error) = completion { failed.resume(returning: error) }
        } receiveValue: { _ in
        }
        #expect(try await failed.value()?.status == .notFound)
        withExtendedLifetime((held, other)) {}
    }

    @Test func `a subscriber that cancels ends the exchange`() async throws {
        try await ScriptedOrigin.run([.expectHead(startingWith: "GET /todos/1"), .expectEnd]) { origin in
            let manager = HttpManager(service: try .local(origin.port))
            let held = manager.publisher(for: GetTodo(id: 1)).sink { _ in
            } receiveValue: { _ in
            }
            while origin.heads.isEmpty { await Task.yield() }
            held.cancel()
        }
    }
}
