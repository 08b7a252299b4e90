import Foundation
import HttpWareClient
import HttpWareTesting
import Testing

@Suite struct ClientProxyTests {
    private static func service(_ proxy: ClientProxy) -> ServiceDefinition {
        var service = "http://api.example.test".service
        service.proxy = proxy
        return service
    }

    private static let answer =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 37\r\n\r\n{\"id\":7,\"title\":\"a\",\"isDone\":false}  "

    @Test func `requests go to the proxy, with its credentials`() async throws {
        try await ScriptedOrigin.run([
            .expectHead(
                startingWith: "GET http://api.example.test/todos/7 HTTP/1.1",
                lines: ["Host: api.example.test", "Proxy-Authorization: Basic YWRhOnA6dw=="]),
            .send(ClientProxyTests.answer),
        ]) { origin in
            let proxy = ClientProxy.url("http://ada:p%3Aw@127.0.0.1:\(origin.port)")
            let manager = HttpManager(service: ClientProxyTests.service(proxy))
            let todo = try await manager.send(GetTodo(id: 7))
            #expect(todo.title == "a")
        }
    }

    @Test func `a request with TLS goes through a tunnel`() async throws {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "CONNECT api.example.test:443 HTTP/1.1"),
            .send("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"),
        ]) { origin in
            var service = "https://api.example.test".service
            service.proxy = .url("http://127.0.0.1:\(origin.port)")
            let error = await #expect(throws: HttpError.self) {
                try await HttpManager(service: service).send(GetTodo(id: 7))
            }
            #expect(error?.reason.contains("proxy") == true)
        }
    }

    @Test func `an excepted host is reached without the proxy`() async throws {
        let origin = try LocalOrigin { _ in .json("{\"id\":7,\"title\":\"direct\",\"isDone\":false}") }
        var service = try ServiceDefinition.local(origin.port)
        service.proxy = .url("http://127.0.0.1:9", except: ["127.0.0.0/8"])
        #expect(try await HttpManager(service: service).send(GetTodo(id: 7)).title == "direct")
    }

    @Test func `a proxy that is not valid is an error without its password`() async throws {
        let manager = HttpManager(service: ClientProxyTests.service(.url("ftp://ada:secret@proxy")))
        let error = try #require(await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 7)) })
        #expect(error.fault == .invalidRequest && error.stage == .making)
        #expect(!"\(error)".contains("secret"))
    }

    @Test func `the environment names the proxy`() async {
        await #expect(processExitsWith: .success) {
            setenv("http_proxy", "127.0.0.1:9", 1)
            let manager = HttpManager(service: ClientProxyTests.service(.environment))
            guard case .failure(let error) = await manager.result(of: GetTodo(id: 7)) else { exit(1) }
            // Without the proxy it would be the name that is not found.
            exit(error.fault == .exchange(.connectionRefused) ? 0 : 2)
        }
    }
}
