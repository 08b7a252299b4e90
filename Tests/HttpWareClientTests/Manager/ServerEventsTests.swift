import HttpWareClient
import HttpWareTesting
import Testing

@Suite struct ServerEventsTests {
    private struct Prices: Route {
        var path: RoutePath { "/prices" }
    }

    private static let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"

    @Test func `events go on after a lost connection, with the id of the last one`() async throws {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /prices", lines: ["Accept: text/event-stream"], without: ["Last-Event-ID"]),
            .send(ServerEventsTests.head + "retry: 10\n\nid: 7\ndata: one\n\ndata: unfin"), .close,
            .accept, .expectHead(startingWith: "GET /prices", lines: ["Last-Event-ID: 7"]),
            .send("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), .close,
            .accept, .expectHead(startingWith: "GET /prices", lines: ["Last-Event-ID: 7"]),
            .send(ServerEventsTests.head + "id: 8\ndata: two\n\n"), .close,
            .accept, .expectHead(startingWith: "GET /prices", lines: ["Last-Event-ID: 8"]),
            .send("HTTP/1.1 204 No Content\r\n\r\n"),
        ]) { origin in
            let manager = HttpManager(service: try .local(origin.port))
            var seen: [String] = []
            for try await event in manager.events(of: Prices()) { seen.append("\(event.id) \(event.data)") }
            #expect(seen == ["7 one", "8 two"])
        }
    }

    @Test func `the last id holds until the server sends another, with data or without`() async throws {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /prices", without: ["Last-Event-ID"]),
            .send(ServerEventsTests.head + "retry: 1\n\nid: 7\ndata: one\n\nid: 8\n\nid: 9\ndata: cut"), .close,
            .accept, .expectHead(startingWith: "GET /prices", lines: ["Last-Event-ID: 8"]),
            .send(ServerEventsTests.head + "data: two\n\n"), .close,
            .accept, .expectHead(startingWith: "GET /prices", lines: ["Last-Event-ID: 8"]),
            .send("HTTP/1.1 204 No Content\r\n\r\n"),
        ]) { origin in
            let manager = HttpManager(service: try .local(origin.port))
            var seen: [String] = []
            for try await event in manager.events(of: Prices()) { seen.append("\(event.id) \(event.data)") }
            #expect(seen == ["7 one", "8 two"])
        }
    }

    @Test(arguments: [HttpResponse(.notFound), .json("{}")])
    func `a refusal, or another media type, ends the events with an error`(response: HttpResponse) async throws {
        let origin = try LocalOrigin { _ in response }
        let manager = HttpManager(service: try .local(origin.port))
        let error = await #expect(throws: HttpError.self) {
            for try await _ in manager.events(of: Prices()) {}
        }
        #expect(error?.isOffline == false)
        #expect(origin.requests.count == 1)
    }
}
