import Foundation
import HttpWareClient
import HttpWareTesting
import Testing

@Suite struct UnixSocketTests {
    @Test func `a service on a Unix socket is told the host of the base URL`() async throws {
        let folder = TemporaryFolder()
        let path = "\(folder.path)/s"
        let origin = try LocalOrigin(unixSocket: path) { request in
            .json(#"{"id":1,"title":"\#(request.fields["Host"] ?? "") \#(request.path)","isDone":false}"#)
        }
        var service = try ServiceDefinition.local(80)
        service.baseURL = "http://docker.test/v1"
        service.unixSocket = path
        let manager = HttpManager(service: service, loops: ClientLoops())
        #expect(try await manager.send(GetTodo(id: 1)).title == "docker.test /v1/todos/1")
        let response = try await manager.response(of: GetTodo(id: 2))
        #expect(response.metrics.reusedConnection && response.metrics.attempts == 1)
        #expect(origin.requests.count == 2)
    }

    @Test func `a socket that is not there is a refused connection`() async throws {
        let service = ServiceDefinition(baseURL: "http://docker.test", unixSocket: "/nowhere/at/all")
        let error = await #expect(throws: HttpError.self) {
            try await HttpManager(service: service).send(GetTodo(id: 1))
        }
        #expect(error?.isOffline == true, "\(error as Any)")
    }

    @Test(arguments: [
        ("https://docker.test", "/run/s", ClientProxy.none), ("http://docker.test", "run/s", ClientProxy.none),
        ("http://docker.test", "/" + String(repeating: "x", count: 107), ClientProxy.none),
        ("http://docker.test", "/run/s", ClientProxy.url("http://proxy.test:3128")),
    ])
    func `a socket that cannot be used is an error of the definition`(
        url: String, path: String, proxy: ClientProxy
    ) async throws {
        let service = ServiceDefinition(baseURL: try BaseUrl(url), proxy: proxy, unixSocket: path)
        let error = await #expect(throws: HttpError.self) {
            try await HttpManager(service: service).send(GetTodo(id: 1))
        }
        #expect(error?.reason.hasPrefix("unixSocket is an absolute path") == true, "\(error as Any)")
    }

    @Test func `the times of a request are those of its steps`() async throws {
        let origin = try LocalOrigin { _ in
            // The client has real time.
            let began = ContinuousClock.now
            try await eventually(every: .milliseconds(1)) { ContinuousClock.now - began >= .milliseconds(25) }
            return .json(#"{"id":1,"title":"a","isDone":false}"#)
        }
        let manager = HttpManager(service: try .local(origin.port), loops: ClientLoops())
        let first = try await manager.response(of: GetTodo(id: 1)).metrics
        #expect(first.wait >= .milliseconds(25) && first.total >= first.wait && first.attempts == 1)
        #expect(first.handshake == .zero && !first.reusedConnection && first.receivedBytes == 35)
        let second = try await manager.response(of: GetTodo(id: 1)).metrics
        #expect(second.reusedConnection && second.connect == .zero && second.resolve == .zero)
    }

    @Test func `a response for a test is made without a request`() {
        let response = ModelResponse(Todo(id: 1, title: "a"))
        #expect(response.status == .ok && response.model.id == 1 && response.metrics.total == .zero)
        #expect(response.links["next"] == nil)
    }
}
