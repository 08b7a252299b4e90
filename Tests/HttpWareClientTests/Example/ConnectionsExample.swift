import HttpWareClient

// The code of the article about servers and connections, as an app would have it.

private struct Note: Codable, Sendable, Equatable { var text: String }

private struct ListNotes: Route {
    typealias Response = [Note]
    var path: RoutePath { "/notes" }
}

private enum Connections {
    static func cookies(_ service: ServiceDefinition) -> (CookieJar, HttpManager) {
        let jar = CookieJar()
        let manager = HttpManager(service: service, middlewares: [Cookies(jar)])
        return (jar, manager)
    }

    static func pages(_ manager: HttpManager, show: ([Note]) -> Void) async throws {
        for try await page in manager.pages(of: ListNotes()) { show(page.model) }
    }

    static func options(_ manager: HttpManager) async throws {
        struct GetNote: Route {
            typealias Response = Note
            var id: Int
            var path: RoutePath { "/notes/\(id)" }
        }
        _ =
            try await manager.send(GetNote(id: 7), .timeout(.seconds(5)), .field("Prefer", "return=minimal"))
    }

    static func first() async throws {
        struct ListTodos: Route {
            typealias Response = [Todo]
            var path: RoutePath { "/todos" }
        }
        let manager = HttpManager(service: ServiceDefinition(baseURL: "https://todo.example.com"))
        let todos = try await manager.send(ListTodos())
        print(todos.count)
    }

    static func unix() -> ServiceDefinition {
        let docker = ServiceDefinition(baseURL: "http://localhost/v1.45", unixSocket: "/run/docker.sock")
        return docker
    }

    static func pins(_ service: inout ServiceDefinition, _ current: String, _ following: String) throws {
        var options = TlsContext.Client()
        options.pins = [try PublicKeyPin(current), try PublicKeyPin(following)]
        service.tls = try TlsContext(client: options)
    }

    static func limits(_ service: inout ServiceDefinition) {
        service.pool.maxPerEndpoint = 16
    }

    static func metrics(_ manager: HttpManager) async throws {
        let response = try await manager.response(of: ListNotes())
        print("waited \(response.metrics.wait) of \(response.metrics.total)")
    }
}

struct Echo: StreamingHttpClient {
    func respond(to request: HttpRequest, content: RequestPieces) async throws -> StreamedAnswer {
        StreamedAnswer(HttpResponse(.ok), content: content)
    }
}
