import HttpWareClient
import HttpWareTesting
import Testing

/// A user's whole service layer, tested without a socket: everything down to the request is replaceable.
@Suite struct ServiceLayerTests {
    /// The protocol that a view model sees.
    protocol TodoService: Sendable {
        func todos() async throws -> [Todo]
        func add(_ todo: Todo) async throws -> Todo
    }

    /// The manager that a service sees.
    struct NetworkedTodoService: TodoService {
        let manager: HttpManager

        func todos() async throws -> [Todo] { try await manager.send(ListTodos()) }
        func add(_ todo: Todo) async throws -> Todo { try await manager.send(AddTodo(body: todo)) }
    }

    @Test func `a scripted client stands behind the protocol`() async throws {
        let client = ScriptedClient()
        client.answerCall(json: #"[{"id":1,"title":"a","isDone":false}]"#)
        client.answerCall(.created, json: #"{"id":2,"title":"b","isDone":false}"#)
        client.answerCall(.failure(GatewayError(.upstream, .connectionTimeout, "no answer", mayRetry: true)))
        let service = NetworkedTodoService(
            manager: HttpManager(
                service: ServiceDefinition(baseURL: "https://api.example.test/v1"), client: client,
                middlewares: [RequestHeaders(set: ["X-App": "todo"])]))
        #expect(try await service.todos().map(\.id) == [1])
        #expect(try await service.add(Todo(id: 2, title: "b")).id == 2)
        let error = await #expect(throws: HttpError.self) { try await service.todos() }
        #expect(error?.fault == .exchange(.connectionTimeout) && error?.mayRetry == true)
        let requests = client.requests
        #expect(requests.map(\.receivedTarget).first == "https://api.example.test/v1/todos")
        #expect(requests.map { $0.fields["X-App"] } == ["todo", "todo", "todo"])
        #expect(requests[1].content.text?.contains(#""title":"b""#) == true)
    }

    @Test func `a task that is cancelled cancels the call of a scripted client`() async throws {
        let client = ScriptedClient()
        let manager = HttpManager(service: "https://api.example.test".service, client: client)
        let task = Task { try await manager.send(ListTodos()) }
        while client.waitingCount == 0 { await Task.yield() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        while client.waitingCount > 0 { await Task.yield() }
    }

    @Test func `a scripted client is given content that was streamed, whole`() async throws {
        let client = ScriptedClient()
        client.answerCall(.success(HttpResponse(.ok)))
        let manager = HttpManager(service: "https://api.example.test".service, client: client)
        let pieces = AsyncStream<[UInt8]> { continuation in
            continuation.yield([0x61])
            continuation.yield([0x62])
            continuation.finish()
        }
        _ = try await manager.send(Request<NoContent>(.post, "/", content: .stream(pieces)))
        #expect(client.requests.first?.content.text == "ab")
    }

    @Test func `recorded responses answer in place of the network, and come from it`() async throws {
        let origin = try LocalOrigin { request in
            request.method == .post
                ? .json(#"{"id":9,"title":"ü","isDone":false}"#, .created)
                : HttpResponse(.ok, content: .bytes([0xff, 0x00, 0x80]))
        }
        let recording = RecordingClient()
        let live = HttpManager(
            service: try .local(origin.port), client: recording, middlewares: [try TokenInject(value: Secret("token"))])
        let added = try await live.send(AddTodo(body: Todo(id: 9, title: "ü")))
        let raw = try await live.send(Request<RawContent>(.get, "/raw?a=b"))
        let json = try recording.archive.json()
        #expect(!String(decoding: json, as: UTF8.self).contains("Bearer token"))

        let recorded = RecordedClient(try HarArchive(json: json))
        let replayed = HttpManager(service: try .local(origin.port), client: recorded)
        #expect(try await replayed.send(AddTodo(body: Todo(id: 9, title: "ü"))) == added)
        #expect(try await replayed.send(Request<RawContent>(.get, "/raw?a=b")) == raw)
        let error = await #expect(throws: HttpError.self) { try await replayed.send(GetTodo(id: 1)) }
        #expect(error?.fault == .exchange(.connectionRefused))
        #expect(origin.requests.count == 2)
        #expect(recorded.requests.count == 3)
    }

    @Test(arguments: [
        "", "{}",
        #"{"log":{"entries":[{"request":{"method":"G T","url":"http://a/","headers":[]},"response":{"status":200,"headers":[],"content":{}}}]}}"#,
        #"{"log":{"entries":[{"request":{"method":"GET","url":"nowhere","headers":[]},"response":{"status":200,"headers":[],"content":{}}}]}}"#,
    ])
    func `an archive that holds no messages is refused`(text: String) {
        #expect(throws: (any Error).self) { try HarArchive(json: Array(text.utf8)) }
    }

    @Test func `an archive gives back what was there`() async throws {
        func entry(_ response: String, _ path: String, method: String = "GET") -> String {
            #"{"request":{"method":"\#(method)","url":"http://a.test/\#(path)","headers":[]},"response":{\#(response)}}"#
        }
        let entries = [
            entry(
                #""status":200,"headers":[{"name":"Content-Length","value":"1000"}],"content":{"size":0}"#, "head",
                method: "head"),
            entry(
                #""status":200,"headers":[{"name":"Content-Encoding","value":"snappy"}],"content":{"text":"/wA=","encoding":"base64"}"#,
                "snappy"),
            entry(#""status":200,"headers":[],"content":{},"_failureText":"net::ERR_ABORTED""#, "failed"),
            entry(#""status":0,"headers":[],"content":{}"#, "unanswered"),
            entry(
                #""status":999,"headers":[],"content":{"text":"odd"},"_trailers":[{"name":"grpc-status","value":"0"}]"#,
                "odd", method: "get"),
        ].joined(separator: ",")
        let archive = try HarArchive(json: Array(#"{"log":{"entries":[\#(entries)]}}"#.utf8))
        #expect(archive.entries.map(\.request.method) == [.head, .get, .get])
        let (head, snappy, odd) = (
            archive.entries[0].response, archive.entries[1].response, archive.entries[2].response
        )
        #expect(head.fields[.contentLength] == "1000" && head.content.isEmpty)
        #expect(snappy.fields["Content-Encoding"] == "snappy" && snappy.content.bytes == [0xff, 0])
        #expect(odd.status.code == 999 && odd.trailers?["grpc-status"] == "0")
        let again = try HarArchive(json: try archive.json())
        #expect(again.entries.map(\.response.content.bytes) == archive.entries.map(\.response.content.bytes))
        #expect(again.entries.map(\.response.fields).map { $0["Content-Encoding"] } == [nil, "snappy", nil])
        #expect(again.entries[2].response.trailers?["grpc-status"] == "0")
    }

    @Test func `time in wares is a manual clock`() async throws {
        let clock = ManualClock()
        let client = ScriptedClient()
        let loops = ClientLoops(clock: clock)
        var service = "https://api.example.test".service
        service.timeouts.total = .seconds(30)
        let manager = HttpManager(service: service, client: client, loops: loops)
        let task = Task { try await manager.send(ListTodos()) }
        while client.waitingCount == 0 { await Task.yield() }
        clock.advance(by: .seconds(31))
        let error = await #expect(throws: HttpError.self) { try await task.value }
        #expect(error?.fault == .exchange(.responseTimeout))
        await loops.shutdown()
    }
}
