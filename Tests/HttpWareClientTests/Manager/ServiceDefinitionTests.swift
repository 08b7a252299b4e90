import Foundation
import HttpWareClient
import HttpWareTesting
import Testing

@Suite struct ServiceDefinitionTests {
    private struct Note: Codable, Sendable, Equatable { var writtenAt: Date }

    private struct SendNote: Route {
        typealias Response = Note
        static let method = HttpMethod.post
        var body: Note
        var path: RoutePath { "/notes" }
    }

    @Test func `a service definition brings base URL, coders, fields and time limits`() async throws {
        let client = ScriptedClient()
        client.answerCall(json: #"{"written_at":"2026-11-21T00:00:00Z"}"#)
        let coder = JsonCoder(
            encoding: {
                $0.keyEncodingStrategy = .convertToSnakeCase
                $0.dateEncodingStrategy = .iso8601
            },
            decoding: {
                $0.keyDecodingStrategy = .convertFromSnakeCase
                $0.dateDecodingStrategy = .iso8601
            })
        let service = ServiceDefinition(
            baseURL: "https://api.example.test/v2", encoder: coder, decoder: coder, headers: ["X-App": "notes"])
        let note = Note(writtenAt: Date(timeIntervalSince1970: 1_795_219_200))
        #expect(try await HttpManager(service: service, client: client).send(SendNote(body: note)) == note)
        let request = try #require(client.requests.first)
        #expect(request.scheme == "https" && request.host == "api.example.test" && request.path == "/v2/notes")
        #expect(request.fields["X-App"] == "notes")
        #expect(request.content.text == #"{"written_at":"2026-11-21T00:00:00Z"}"#)
    }

    @Test func `a model comes with its response, and the data that it came from`() async throws {
        let client = ScriptedClient()
        client.answerCall(.created, json: #"{"id":1,"title":"a","isDone":true}"#)
        let service = ServiceDefinition(baseURL: "https://api.example.test")
        let response = try await HttpManager(service: service, client: client).response(of: GetTodo(id: 1))
        #expect(response.model == Todo(id: 1, title: "a", isDone: true))
        #expect(response.status == .created)
        #expect(response.fields[.contentType] == "application/json")
        #expect(response.response.content.text == #"{"id":1,"title":"a","isDone":true}"#)
    }

    @Test func `a typed request makes a message that knows no type`() async throws {
        let client = ScriptedClient()
        client.answerCall(json: #"{"id":1,"title":"a","isDone":true}"#)
        let manager = HttpManager(service: ServiceDefinition(baseURL: "https://api.example.test"), client: client)
        let typed = Request<Todo>(.get, "/todos/\(1)", query: ["full": true])
        #expect(try await manager.send(typed).title == "a")
        let message: HttpRequest = try #require(client.requests.first)
        #expect(message.method == .get && message.upstreamTarget == "/todos/1?full=true")
    }

    @Test func `a status outside of 2xx is an error, and so is a time limit that passes`() async throws {
        let client = ScriptedClient()
        client.answerCall(.success(HttpResponse(.accepted)))
        let service = ServiceDefinition(baseURL: "https://api.example.test")
        let strict = HttpManager(service: service, client: client, postwares: [StatusCheck(success: 200..<202)])
        let refused = await #expect(throws: HttpError.self) { try await strict.send(DeleteTodo(id: 1)) }
        #expect(refused?.fault == .status(.accepted))

        // A request of its own time limit, which passes before anything is answered.
        let clock = ManualClock()
        let slow = HttpManager(service: service, client: client, loops: ClientLoops(clock: clock))
        var request = Request<NoContent>(.get, "/slow")
        request.timeouts.total = .seconds(3)
        async let answer = slow.result(of: Fixed(request: request))
        while client.waitingCount == 0 { await Task.yield() }
        clock.advance(by: .seconds(4))
        guard case .failure(let error) = await answer else {
            Issue.record("it was answered")
            return
        }
        #expect(error.fault == .exchange(.responseTimeout))
        #expect(error.side == .upstream)
    }

    private struct Fixed: Route {
        let request: Request<NoContent>
        var path: RoutePath { request.path }
        var timeouts: ExchangeTimeouts { request.timeouts }
    }
}
