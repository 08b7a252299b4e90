import Foundation
import HttpWare
import HttpWareClient
import HttpWareTesting
import Testing

/// Short forms of the API, as programs write them.
@Suite struct SurfaceTests {
    @Test func `fields are set by their names`() throws {
        var fields = HttpFields()
        let name = "ada"
        fields["X-Name"] = name
        fields["X-Name"] = "bob"
        fields["X-Other"] = "1"
        fields["X-Other"] = nil
        #expect(fields.map { "\($0.name): \($0.value)" } == ["X-Name: bob"])
        // A line break would begin another field.
        fields["X-Name"] = "a\r\nX-Admin: 1"
        #expect(fields.isEmpty)
        let response = try HttpResponse(.ok, fields: ["X-Id": "\(7)", "X-None": nil])
        #expect(response.fields["X-Id"] == "7" && response.fields.count == 1)
        #expect(throws: HttpError.self) { try HttpResponse(.ok, fields: ["X-Id": "\u{0}\(7)"]) }
        #expect(HttpResponse(.ok, fields: ["X-Id": "7"]).fields["X-Id"] == "7")
        #expect(HeaderFields(["b": "2", "a": "1"])["A"] == "1")
    }

    @Test func `sets of statuses hold codes and ranges`() {
        let set: StatusSet = [404, 410...412, HttpStatus.conflict]
        #expect([404, 409, 410, 411, 412].allSatisfy { set.contains($0) } && !set.contains(413))
        #expect(StatusSet(200...299) == [200...299])
        _ = CallOption.success([100...599])
    }

    @Test func `time limits are written in one expression`() {
        let limits = UpstreamService.Timeouts(connect: .seconds(1), total: .seconds(9))
        #expect(limits.connect == .seconds(1) && limits.response == .seconds(30) && limits.total == .seconds(9))
        let own = ExchangeTimeouts(response: .seconds(2))
        #expect(own.response == .seconds(2) && own.connect == nil && own.total == nil)
    }

    @Test func `base URLs and paths are read with any case of the scheme`() throws {
        #expect(try BaseUrl(checking: "HTTPS://api.example.com/v1/").text == "https://api.example.com/v1")
        let url = try #require(URL(string: "http://localhost:3000/v1"))
        #expect(try BaseUrl(url).text == "http://localhost:3000/v1")
        #expect(throws: HttpError.self) { try BaseUrl(try #require(URL(string: "file:///tmp"))) }
        #expect(throws: HttpError.self) { try BaseUrl(checking: "nowhere") }
        #expect(RoutePath(encoded: "HTTP://host/a").isAbsolute)
    }

    @Test func `an empty value is refused in a path, and is fine behind its question mark`() {
        let term = ""
        let search: RoutePath = "/search?q=\(term)&all=\("a/b")"
        #expect(search.fault == nil && search.text == "/search?q=&all=a%2Fb")
        let path: RoutePath = "/users/\(term)?a=b"
        #expect(path.fault != nil)
    }

    @Test func `dates, decimals, bytes and ids of a form are written as declared`() throws {
        struct Form: Encodable {
            let at = Date(timeIntervalSince1970: 1.5)
            let price = Decimal(string: "12.50")
            let key = Data([0xfb, 0xff, 0x00])
            let id = UUID(uuidString: "01234567-89AB-CDEF-0123-456789ABCDEF")
            let days = [Date(timeIntervalSince1970: 0)]
        }
        #expect(
            try QueryItems(encoding: Form()).query
                == "at=1970-01-01T00%3A00%3A01Z&price=12.5&key=%2B%2F8A&id=01234567-89AB-CDEF-0123-456789ABCDEF"
                + "&days=1970-01-01T00%3A00%3A00Z")
        #expect(
            try QueryItems(encoding: Form(), dates: .millisecondsSince1970, data: .base64Url).query.hasPrefix(
                "at=1500&price=12.5&key=-_8A&"))
        #expect(try QueryItems(encoding: Form(), dates: .secondsSince1970).query.hasPrefix("at=1.5&"))
        #expect(QueryItems(["b": "2", "a": "1"]).query == "a=1&b=2")
    }

    @Test func `a form holds JSON, typed text and any content`() async throws {
        let origin = try LocalOrigin { HttpResponse(.ok, content: $0.content) }
        var form = Multipart()
        try form.add("todo", json: ["id": 1])
        form.add("note", "<b>", contentType: "text/html")
        form.add("log", content: .reopening(contentType: "text/plain") { AsyncStream(pieces: Array("abc".utf8)) })
        let manager = HttpManager(service: try .local(origin.port))
        let text = try await manager.send(Request<String>(.post, "/", content: .multipart(form)))
        #expect(text.contains("name=\"todo\"\r\nContent-Type: application/json\r\n\r\n{\"id\":1}\r\n"))
        #expect(text.contains("name=\"note\"\r\nContent-Type: text/html\r\n\r\n<b>\r\n"))
        #expect(text.contains("name=\"log\"\r\nContent-Type: text/plain\r\n\r\nabc\r\n"))
        #expect(RequestContent.multipart(form).mayRepeat && RequestContent.multipart(form).length == nil)
    }

    @Test func `a missing body sends no content`() async throws {
        struct Save: Route {
            static let method = HttpMethod.put
            var body: Todo?
            let path: RoutePath = "/a"
        }
        let origin = try LocalOrigin { _ in HttpResponse(.noContent) }
        let manager = HttpManager(service: try .local(origin.port))
        try await manager.send(Save(body: nil))
        try await manager.send(Save(body: Todo(id: 1, title: "a")))
        #expect(origin.requests.map { $0.content.isEmpty } == [true, false])
    }

    @Test func `a response without content says so, and an empty coder accepts every type`() async throws {
        let origin = try LocalOrigin { request in
            request.path == "/empty"
                ? HttpResponse(.ok) : .json(#"{"id":1,"title":"a","isDone":false}"#, type: "text/plain")
        }
        var service = try ServiceDefinition.local(origin.port)
        let empty = await #expect(throws: HttpError.self) {
            try await HttpManager(service: service).send(Request<Todo>(.get, "/empty"))
        }
        #expect(empty?.reason == "the response has no content, but Todo is expected; Todo? or NoContent accepts that")
        service.decoder = JsonCoder(accepts: [])
        #expect(try await HttpManager(service: service).send(Request<Todo>(.get, "/text")).id == 1)
    }

    @Test func `a message that states content without holding it is refused`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.ok) }
        let manager = HttpManager(service: try .local(origin.port))
        let message = try HttpRequest(.post, "/a", content: .streamed(length: 5))
        let error = await #expect(throws: HttpError.self) { try await manager.send(message) }
        #expect(error?.fault == .uploadFailed)
    }

    @Test func `closures of wares may await`() async throws {
        let origin = try LocalOrigin { .json(#"{"id":1,"title":"\#($0.fields["X-Key"] ?? "")","isDone":false}"#) }
        let manager = HttpManager(
            service: try .local(origin.port),
            middlewares: [
                AsyncOnRequest { request, _ in
                    await Task.yield()
                    request.fields["X-Key"] = "k"
                }
            ],
            postwares: [
                AsyncOnResponse.deciding { response, _ in
                    await Task.yield()
                    response.fields["X-Seen"] = "yes"
                    return .pass
                }
            ])
        let response = try await manager.response(of: GetTodo(id: 1))
        #expect(response.model.title == "k" && response.fields["X-Seen"] == "yes")
    }

    @Test func `cancelling all requests is told from a shutdown`() async throws {
        let gate = LoopWait<Void>()
        let origin = try LocalOrigin { _ in
            try await gate.value()
            return HttpResponse(.ok)
        }
        let manager = HttpManager(service: try .local(origin.port), loops: ClientLoops())
        let task = Task { await manager.result(of: GetTodo(id: 1)) }
        try await eventually { origin.requests.count == 1 }
        manager.cancelAll()
        guard case .failure(let error) = await task.value else { throw HttpError(.decoding) }
        #expect(error.isCancelled && error.underlying is CancellationError)
        manager.shutdown()
        guard case .failure(let late) = await manager.result(of: GetTodo(id: 1)) else { throw HttpError(.decoding) }
        #expect(late.fault == .shutDown)
        gate.resume(returning: ())
    }

    private enum Trace { @TaskLocal static var id = "none" }

    @Test func `work of a queue has the task-local values of its sender`() async throws {
        let queue = RequestQueue(HttpManager(service: "http://api.example.test".service))
        let id = try await Trace.$id.withValue("7") { try await queue.run { Trace.id } }
        #expect(id == "7")
    }

    @Test func `a type that only sends can stream, download and answer whole responses`() async throws {
        struct Answers: HttpSending {
            func send<R: Route>(_ route: R) async throws -> R.Response {
                guard let todo = Todo(id: 1, title: "test") as? R.Response else { throw HttpError(.decoding) }
                return todo
            }
        }
        let http: any HttpSending = Answers()
        #expect(try await http.response(of: GetTodo(id: 1)).model.title == "test")
        let stream = try await http.stream(GetTodo(id: 1), .timeout(.seconds(1)))
        #expect(try await stream.bytes.collect(upTo: .kibibytes(1)).isEmpty == false)
        let folder = TemporaryFolder()
        let file = try await http.download(GetTodo(id: 1), to: folder.path + "/a.json")
        #expect(try Data(contentsOf: URL(filePath: file.path)).count == file.bytes)
        let origin = try LocalOrigin { _ in
            HttpResponse(.ok, fields: ["Content-Type": "text/event-stream"], content: .text("data: 1\n\n"))
        }
        let real: any HttpSending = HttpManager(service: try .local(origin.port))
        for try await event in real.events(of: GetTodo(id: 1)) {
            #expect(event.data == "1")
            break
        }
        _ = try await real.download(GetTodo(id: 1), to: folder.path + "/b")
        #expect(try String(contentsOfFile: folder.path + "/b", encoding: .utf8) == "data: 1\n\n")
    }

    @Test(arguments: ["HTTP", "Https"])
    func `RFC 3986 §3.1: the scheme of a redirect has no case`(scheme: String) async throws {
        let end = ThreadLock("")
        let origin = try LocalOrigin { request in
            if request.path == "/b" { return HttpResponse(.noContent) }
            return try HttpResponse(.found, fields: ["Location": end.withLock { $0 }])
        }
        end.withLock { $0 = "\(scheme)://127.0.0.1:\(origin.port)/b" }
        let manager = HttpManager(service: try .local(origin.port))
        let result = await manager.result(of: DeleteTodo(id: 1))
        if scheme == "HTTP" {
            #expect(throws: Never.self) { try result.get() }
        } else {
            // The port speaks no TLS.
            #expect(origin.requests.count == 1)
        }
    }

    @Test func `a redirect that cannot be followed says why`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.found, fields: ["Location": "http://a b/"]) }
        let manager = HttpManager(service: try .local(origin.port))
        let error = await #expect(throws: HttpError.self) { try await manager.send(DeleteTodo(id: 1)) }
        #expect(error?.reason.contains("its Location, \"http://a b/\", is not a URL") == true)
    }

    @Test func `a redirect to another origin keeps all fields but credentials and those of the content`()
        async throws
    {
        let other = try LocalOrigin { _ in HttpResponse(.noContent) }
        let place = other.url + "/b"
        let origin = try LocalOrigin { request in
            try HttpResponse(request.method == .post ? .seeOther : .temporaryRedirect, fields: ["Location": place])
        }
        let manager = HttpManager(service: try .local(origin.port))
        let fields: HeaderFields = [
            "Range": "bytes=5-", "If-Range": "\"v1\"", "If-None-Match": "\"v2\"", "Cache-Control": "no-cache",
            "Prefer": "wait=1", "X-Mine": "1", "Traceparent": "00-1-2-3", "Authorization": "Bearer t", "Cookie": "a=b",
            "X-Api-Key": "k", "X-Auth-Token": "t", "Proxy-Authorization": "Basic x",
        ]
        _ = try await manager.send(Request<NoContent>(.get, "/a", headers: fields))
        _ = try await manager.send(
            Request<NoContent>(
                .post, "/a", headers: ["Content-Language": "en", "X-Mine": "1"], content: .text("a")))
        let seen = other.requests.map { Set($0.fields.map { $0.name.lowercased() }) }
        #expect(
            seen[0].isSuperset(of: [
                "range", "if-range", "if-none-match", "cache-control", "prefer", "x-mine", "traceparent", "user-agent",
            ]))
        #expect(
            seen[0].isDisjoint(with: ["authorization", "cookie", "x-api-key", "x-auth-token", "proxy-authorization"]))
        #expect(seen[1].contains("x-mine") && seen[1].isDisjoint(with: ["content-language", "content-type"]))
    }

    @Test func `a download from another origin is resumed after a redirect`() async throws {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /file"),
            .send("HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: 10\r\n\r\n01234"), .close, .accept,
            .expectHead(startingWith: "GET /file", lines: ["Range: bytes=5-", "If-Range: \"v1\""]),
            .send("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-9/10\r\nContent-Length: 5\r\n\r\n56789"),
        ]) { other in
            let place = "http://127.0.0.1:\(other.port)/file"
            let origin = try LocalOrigin { _ in try HttpResponse(.found, fields: ["Location": place]) }
            let folder = TemporaryFolder()
            let manager = HttpManager(service: try .local(origin.port))
            let file = try await manager.download(Request<RawContent>(.get, "/to"), to: folder.path + "/f")
            #expect(file.resumed == 5 && file.bytes == 10)
        }
    }

    @Test func `a script with rules fails a call without one at once`() async throws {
        let client = ScriptedClient()
        client.answer(.get, "/todos/1", json: "{}")
        let manager = HttpManager(service: "http://api.example.test".service, client: client)
        let start = ContinuousClock.now
        let error = await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 2)) }
        #expect(error?.reason.contains("no answer for GET /todos/2") == true)
        #expect(ContinuousClock.now - start < .seconds(20))
    }
}
