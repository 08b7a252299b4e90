import Foundation
import HttpWareClient
import HttpWareTesting
import Testing

@Suite struct CallSiteTests {
    private struct GetText<Response: Decodable & Sendable>: Route {
        var name = "a"
        var path: RoutePath { "/texts/\(name)" }
        var absent: StatusSet { [404] }
    }

    private static func manager(_ answer: @escaping LocalOrigin.Answer) throws -> (HttpManager, LocalOrigin) {
        let origin = try LocalOrigin(answer)
        return (HttpManager(service: try .local(origin.port)), origin)
    }

    @Test func `text and bytes are responses as they come`() async throws {
        let (manager, origin) = try CallSiteTests.manager { _ in
            HttpResponse(.ok, fields: ["Content-Type": "text/plain"], content: .text("ä"))
        }
        #expect(try await manager.send(GetText<String>()) == "ä")
        #expect(try await manager.send(GetText<Data>()) == Data("ä".utf8))
        #expect(try await manager.send(GetText<String?>()) == "ä")
        #expect(origin.requests.allSatisfy { !$0.fields.contains(.accept) })
    }

    @Test func `an optional response is nil without content, and where the route says so`() async throws {
        let (manager, origin) = try CallSiteTests.manager { request in
            switch request.path {
            case "/texts/none": HttpResponse(.noContent)
            case "/texts/empty": HttpResponse(.ok)
            case "/texts/null": .json("null")
            case "/texts/gone": HttpResponse(.gone)
            case "/texts/there": .json(#"{"id":1,"title":"a","isDone":false}"#)
            default: .json(#"{"title":"no such thing"}"#, .notFound)
            }
        }
        for name in ["none", "empty", "null", "missing"] {
            #expect(try await manager.send(GetText<Todo?>(name: name)) == nil, "\(name)")
        }
        #expect(try await manager.send(GetText<Todo?>(name: "there"))?.id == 1)
        await #expect(throws: HttpError.self) { try await manager.send(GetText<Todo?>(name: "gone")) }
        // A response that is not optional is an error.
        let error = await #expect(throws: HttpError.self) { try await manager.send(GetText<Todo>(name: "missing")) }
        #expect(error?.status == 404 && error?.status != 500)
        #expect(origin.requests.count == 7)
    }

    @Test func `a status is compared with numbers`() throws {
        let status = HttpStatus.notFound
        #expect(status == 404 && status != 400)
        switch status {
        case 400...499: break
        default: Issue.record("404 is a client error")
        }
        let none: HttpStatus? = nil
        #expect(none != 404)
        #expect(StatusCheck(success: 200...299).success == StatusCheck(success: 200..<300).success)
    }

    @Test func `a route with a body is a POST, and the method may be declared either way`() async throws {
        struct Add: Route {
            var body: Todo
            var path: RoutePath { "/" }
        }
        struct Replace: Route {
            let method = HttpMethod.put
            var body: Todo
            var path: RoutePath { "/" }
        }
        struct Login: Route {
            let authentication = RouteAuthentication.none
            var path: RoutePath { "/" }
        }
        let (manager, origin) = try CallSiteTests.manager { _ in HttpResponse(.noContent) }
        let todo = Todo(id: 1, title: "a")
        try await manager.send(Add(body: todo))
        try await manager.send(Replace(body: todo))
        try await manager.send(Login())
        #expect(origin.requests.map(\.method) == [.post, .put, .get])
        #expect(try Login().makeRequest(in: manager.service).authentication == .none)
    }

    @Test func `a call may choose its time limit, decoder, fields and success`() async throws {
        struct Upper: ModelDecoder {
            var accepts: [String] { ["text/x-todo"] }
            func decode<Value: Decodable>(_ type: Value.Type, from content: [UInt8]) throws -> Value {
                let text = String(decoding: content, as: UTF8.self).uppercased()
                return try JsonCoder().decode(type, from: Array(#"{"id":1,"title":"\#(text)","isDone":true}"#.utf8))
            }
        }
        let (manager, origin) = try CallSiteTests.manager { request in
            if request.fields["X-Slow"] != nil { try await untilCancelled() }
            return HttpResponse(.accepted, fields: ["Content-Type": "text/x-todo"], content: .text("mow"))
        }
        let todo = try await manager.send(
            GetTodo(id: 1), .decoder(Upper()), .field("X-Call", "a"), .tag("list"), .success([202]))
        #expect(todo.title == "MOW")
        #expect(origin.requests.first?.fields["X-Call"] == "a")
        #expect(origin.requests.first?.fields[.accept] == "text/x-todo")
        await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 1), .success([200])) }
        let slow = await #expect(throws: HttpError.self) {
            try await manager.send(GetTodo(id: 1), .field("X-Slow", "yes"), .timeout(.milliseconds(100)))
        }
        #expect(slow?.isTimeout == true)
    }

    @Test func `a call may choose the encoder of its body`() async throws {
        struct Put: Route {
            let method = HttpMethod.put
            var body: Todo
            var path: RoutePath { "/" }
            var encoder: (any ModelEncoder)? { JsonCoder() }
        }
        let (manager, origin) = try CallSiteTests.manager { _ in HttpResponse(.noContent) }
        let pretty = JsonCoder(encoding: { $0.outputFormatting = .prettyPrinted }, decoding: { _ in })
        let todo = Todo(id: 1, title: "a")
        try await manager.send(Put(body: todo), .encoder(pretty))
        try await RequestQueue(manager).send(Put(body: todo), .encoder(pretty))
        try await manager.send(Put(body: todo))
        #expect(origin.requests.map { $0.content.text?.contains("\n") } == [true, true, false])
    }

    private struct Events: Route {
        var path: RoutePath { "/events" }
    }

    @Test func `requests, streams, downloads, pages and events take options as routes do`() async throws {
        let (manager, origin) = try CallSiteTests.manager { request in
            if request.path == "/events" { return HttpResponse(.noContent) }
            return request.path == "/todos" ? .json("[]") : HttpResponse(.ok, content: .text("text"))
        }
        let request = Request<String>(.get, "/texts/a")
        #expect(try await manager.response(of: request, .field("X-Call", "1")).model == "text")
        _ = try await manager.stream(request, .field("X-Call", "2")).bytes.collect(upTo: .mebibytes(1))
        let folder = TemporaryFolder()
        try await manager.download(GetText<String>(), .field("X-Call", "3"), to: folder.path + "/a")
        for try await _ in manager.pages(of: ListTodos(), .field("X-Call", "4")) {}
        for try await _ in manager.events(of: Events(), .field("X-Call", "5")) {}
        try await manager.send(Request<NoContent>(.delete, "/todos/1"), .field("X-Call", "6"))
        let queue = RequestQueue(manager)
        #expect(try await queue.send(request, .field("X-Call", "7")) == "text")
        #expect(try await queue.response(of: GetText<String>(), .field("X-Call", "8")).status == 200)
        #expect(origin.requests.map { $0.fields["X-Call"] } == (1...8).map { "\($0)" })
    }

    @Test func `a queue cancels what a call has tagged`() async throws {
        let (manager, origin) = try CallSiteTests.manager { _ in HttpResponse(.noContent) }
        let queue = RequestQueue(manager)
        queue.pause()
        let task = Task { try await queue.send(DeleteTodo(id: 1), .tag("old")) }
        while queue.waitingCount == 0 { await Task.yield() }
        queue.cancelAll(tagged: "old")
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(origin.requests.isEmpty)
    }

    @Test func `a message without a type is sent, whatever its response's status`() async throws {
        let (manager, origin) = try CallSiteTests.manager { request in
            HttpResponse(.conflict, content: .text("\(request.method) \(request.receivedTarget)"))
        }
        let message = try HttpRequest(
            .put, "/a/b?c=d", fields: ["X-Own": "yes"], content: .text("content"))
        let response = try await manager.send(message)
        #expect(response.status == 409 && response.content.text == "PUT /a/b?c=d")
        #expect(origin.requests.first?.content.text == "content")
        #expect(origin.requests.first?.fields["X-Own"] == "yes")
        let absolute = try await manager.send(try HttpRequest(.get, "\(origin.url)/x"))
        #expect(absolute.content.text == "GET /x")
    }

    @Test func `identifiers, times and cases are query values`() throws {
        enum Sort: String, QueryValue { case newest, oldest }
        enum Plain: String { case one }
        let id = UUID()
        var query: QueryItems = [
            "id": id, "since": Date(timeIntervalSince1970: 0), "done": true, "sort": Sort.newest, "cost": Decimal(1.5),
        ]
        query.append("plain", Plain.one)
        #expect(
            query.query
                == "id=\(id.uuidString)&since=1970-01-01T00%3A00%3A00Z&done=true&sort=newest&cost=1.5&plain=one")
        var headers: HeaderFields = ["x-name": "old"]
        headers["X-Name"] = "v"
        #expect(headers["x-NAME"] == "v")
        headers["X-Name"] = nil
        #expect(headers["X-Name"] == nil)
    }

    @Test func `a ware acts on some requests only`() async throws {
        let (_, origin) = try CallSiteTests.manager { _ in HttpResponse(.noContent) }
        let manager = HttpManager(
            service: try .local(origin.port),
            middlewares: [
                RequestHeaders(set: ["X-Deletes": "yes"]).when { _, request in request.method == .delete },
                OnRequest { request, _ in try request.fields.set("X-Tagged", to: "yes") }
                    .when { request, _ in request.tags.contains("tagged") },
            ],
            postwares: [StatusCheck(success: 200...203).when { _, request in request.path == "/todos/2" }])
        try await manager.send(DeleteTodo(id: 1))
        try await manager.send(GetText<NoContent>(), .tag("tagged"))
        #expect(origin.requests.map { $0.fields["X-Deletes"] } == ["yes", nil])
        #expect(origin.requests.map { $0.fields["X-Tagged"] } == [nil, "yes"])
        await #expect(throws: HttpError.self) { try await manager.send(DeleteTodo(id: 2)) }
    }

    @Test func `a response knows the request that it answers`() async throws {
        let (manager, origin) = try CallSiteTests.manager { request in
            request.path == "/todos/1"
                ? HttpResponse(.found, fields: ["Location": "/todos/2"])
                : .json(#"{"id":2,"title":"a","isDone":false}"#)
        }
        let response = try await manager.response(of: GetTodo(id: 1))
        #expect(response.request.path == "/todos/2" && response.request.method == .get)
        #expect(origin.requests.count == 2)
    }

    @Test func `a policy says which redirects are followed`() async throws {
        let elsewhere = try LocalOrigin { _ in HttpResponse(.noContent) }
        let origin = try LocalOrigin { request in
            var response = HttpResponse(.found)
            try response.fields.set(.location, to: request.path == "/in" ? "/out" : elsewhere.url)
            return response
        }
        var service = try ServiceDefinition.local(origin.port)
        service.success = [204, 302]
        service.redirects = .sameOrigin()
        let stays = try await HttpManager(service: service).response(of: Request<NoContent>(.get, "/in"))
        #expect(stays.status == 302 && origin.requests.map(\.path) == ["/in", "/out"] && elsewhere.requests.isEmpty)
        service.redirects = .never
        #expect(try await HttpManager(service: service).response(of: Request<NoContent>(.get, "/in")).status == 302)
        service.redirects = RedirectPolicy(most: 5) { response, _ in response.fields[.location] != "/out" }
        #expect(try await HttpManager(service: service).response(of: Request<NoContent>(.get, "/in")).status == 302)
        service.redirects = 5
        #expect(try await HttpManager(service: service).response(of: Request<NoContent>(.get, "/in")).status == 204)
    }

    @Test func `a request is shown as a curl command, without credentials`() throws {
        let request = try HttpRequest(
            .post, "https://api.example.com/a?q=it's",
            fields: ["Authorization": "Bearer secret", "X-Note": "a b"], content: .text("{\"a\": 'b'}"))
        let text = request.curl()
        #expect(
            text
                == #"curl -X POST -H 'Authorization: …' -H 'X-Note: a b' -H Content-Type: --data-raw '{"a": '\''b'\''}' 'https://api.example.com/a?q=it'\''s'"#
        )
        #expect(request.curl(showsCredentials: true).contains("Bearer secret"))
    }

    @Test func `a curl command sends the same request, whatever is in it`() async throws {
        let (manager, origin) = try CallSiteTests.manager { _ in HttpResponse(.noContent) }
        let folder = TemporaryFolder()
        try "secret".write(toFile: folder.path + "/file", atomically: true, encoding: .utf8)
        let sent = [
            try HttpRequest(
                .post, "\(origin.url)/a?b={c,d}&e=[1-3]", fields: ["X-Empty": "", "X-Note": "it's; $HOME `id`"],
                content: .text("@\(folder.path)/file")),
            try HttpRequest(.head, "\(origin.url)/head", fields: ["Accept-Encoding": "gzip, br, zstd"]),
            try HttpRequest(.put, "\(origin.url)/text", content: .text("two\nlines\n")),
        ]
        for request in sent {
            _ = try await manager.send(request)
            let process = Process()
            process.executableURL = URL(filePath: "/bin/sh")
            process.arguments = ["-c", request.curl(showsCredentials: true) + " --silent --output /dev/null"]
            try process.run()
            process.waitUntilExit()
            #expect(process.terminationStatus == 0)
        }
        #expect(origin.requests.count == 6)
        for pair in stride(from: 0, to: origin.requests.count - 1, by: 2) {
            let (ours, curls) = (origin.requests[pair], origin.requests[pair + 1])
            #expect(ours.method == curls.method && ours.receivedTarget == curls.receivedTarget)
            #expect(ours.content.text == curls.content.text)
            for name: FieldName in ["X-Empty", "X-Note", "Content-Type"] {
                #expect(ours.fields[name] == curls.fields[name])
            }
            if ours.method == .head { #expect(curls.fields[.acceptEncoding]?.contains("gzip") == true) }
        }
        let secret = try HttpRequest(.get, "https://a.example/?access_token=t", fields: ["X-Api-Key": "k"]).curl()
        #expect(secret == "curl -X GET -H 'X-Api-Key: …' 'https://a.example/?access_token=…'")
    }
}
