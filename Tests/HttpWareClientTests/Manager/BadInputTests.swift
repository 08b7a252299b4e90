import HttpWareClient
import HttpWareTesting
import Testing

/// Mistakes of a program, or of a server: refused with a clear error, never sent, never endless.
@Suite struct BadInputTests {
    @Test(arguments: [
        "/a b", "/a\nb", "/a#b", "http://", "http://user@example.com/", "https://exa mple.com/", "/\u{7f}",
    ])
    func `a URL that cannot be sent is refused when the request is made`(path: String) async throws {
        let client = ScriptedClient()
        let manager = HttpManager(service: "http://127.0.0.1:9".service, client: client)
        let error = try #require(
            await #expect(throws: HttpError.self) {
                try await manager.send(Request<NoContent>(.get, RoutePath(encoded: path)))
            })
        #expect(error.fault == .invalidRequest)
        #expect(error.stage == .making)
        #expect(client.requests.isEmpty)
    }

    @Test(arguments: ["", ".", ".."])
    func `a path value that would name another resource is refused`(value: String) async throws {
        let client = ScriptedClient()
        let manager = HttpManager(service: "http://127.0.0.1:9".service, client: client)
        let error = try #require(
            await #expect(throws: HttpError.self) {
                try await manager.send(Request<NoContent>(.delete, "/users/\(value)/notes"))
            })
        #expect(error.fault == .invalidRequest)
        #expect(client.requests.isEmpty)
    }

    @Test(arguments: [
        ("X-A", "a\r\nX-B: c"), ("X-A", "a\0b"), ("X A", "b"), ("", "b"), ("Content-Length", "5"),
        ("Transfer-Encoding", "chunked"), ("Host", "evil.example"), ("Connection", "close"), ("X-A", " a"),
    ])
    func `a field that cannot be sent is refused when the request is made`(name: String, value: String) async throws {
        let client = ScriptedClient()
        let manager = HttpManager(service: "http://127.0.0.1:9".service, client: client)
        var request = Request<NoContent>(.get, "/")
        request.headers.append(name, value)
        let error = try #require(await #expect(throws: HttpError.self) { try await manager.send(request) })
        #expect(error.fault == .invalidRequest)
        #expect(error.side == .client)
        #expect(client.requests.isEmpty)
    }

    @Test(arguments: [
        "", "example.com", "ftp://example.com", "http://", "https://a b", "http://example.com/?a=b", "/a",
    ])
    func `an invalid base URL is refused`(text: String) {
        #expect(throws: HttpError.self) { try BaseUrl(text) }
    }

    @Test func `CONNECT is for proxies`() async throws {
        let manager = HttpManager(service: "http://127.0.0.1:9".service)
        let error = await #expect(throws: HttpError.self) {
            try await manager.send(Request<NoContent>(.connect, "/"))
        }
        #expect(error?.fault == .invalidRequest)
    }

    @Test(arguments: [true, false])
    func `a response larger than the limit fails, and its connection ends`(isStated: Bool) async throws {
        let head = isStated ? "Content-Length: 2000" : "Transfer-Encoding: chunked"
        let body = isStated ? String(repeating: "x", count: 1500) : "7d0\r\n" + String(repeating: "x", count: 1500)
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /todos/1"), .send("HTTP/1.1 200 OK\r\n\(head)\r\n\r\n\(body)"), .expectEnd,
        ]) { origin in
            var service = try ServiceDefinition.local(origin.port)
            service.responseLimit = .bytes(1000)
            let error = await #expect(throws: HttpError.self) {
                try await HttpManager(service: service).send(GetTodo(id: 1))
            }
            #expect(error?.fault == .exchange(.responseContentTooLarge))
        }
    }

    @Test func `an endless line of a stream fails at its limit`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.ok, content: .bytes(count: 3 << 20)) }
        let manager = HttpManager(service: try .local(origin.port))
        let error = await #expect(throws: HttpError.self) {
            for try await _ in try await manager.stream(GetTodo(id: 1)).lines {}
        }
        #expect(error?.fault == .exchange(.responseContentTooLarge))
    }

    @Test func `a redirect in a loop ends`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.found, fields: ["Location": "/todos/1"]) }
        let manager = HttpManager(service: try .local(origin.port))
        let error = await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 1)) }
        #expect(error?.fault == .redirect)
        #expect(origin.requests.count == 6)
    }

    @Test func `redirects count in the time limit of a call`() async throws {
        let clock = ManualClock()
        let origin = try LocalOrigin { request in
            // Less than the limit each, and more together.
            clock.advance(by: .milliseconds(400))
            switch request.path {
            case "/": return HttpResponse(.found, fields: ["Location": "/2"])
            case "/2": return HttpResponse(.found, fields: ["Location": "/3"])
            default: return HttpResponse(.noContent)
            }
        }
        let loops = ClientLoops(clock: clock)
        let manager = HttpManager(service: try .local(origin.port), loops: loops)
        let error = await #expect(throws: HttpError.self) {
            try await manager.send(Request<NoContent>(.get, "/"), .timeout(.milliseconds(700)))
        }
        #expect(error?.isTimeout == true)
        #expect(origin.requests.map(\.path) == ["/", "/2"])
        await loops.shutdown()
    }

    @Test func `a redirect to another origin drops credentials, and passes none of the service's middlewares`()
        async throws
    {
        let other = try LocalOrigin { _ in .json(#"{"id":1,"title":"there","isDone":false}"#) }
        let place = other.url + "/there?a=b"
        let origin = try LocalOrigin { _ in
            var response = HttpResponse(.temporaryRedirect)
            try response.fields.append(.location, place)
            return response
        }
        var service = try ServiceDefinition.local(origin.port)
        service.headers.append("X-Api-Key", "secret")
        let manager = HttpManager(
            service: service, middlewares: [try TokenInject(value: Secret("token"))],
            postwares: [AddResponseField(name: "X-Seen", value: "yes")])
        var request = try GetTodo(id: 1).makeRequest(in: service)
        request.headers.append("Cookie", "a=b")
        let response = try await manager.response(of: request)
        #expect(response.model.title == "there")
        #expect(response.fields["X-Seen"] == "yes")
        let first = try #require(origin.requests.first)
        #expect(first.fields[.authorization] == "Bearer token" && first.fields[.cookie] == "a=b")
        let second = try #require(other.requests.first)
        #expect(second.receivedTarget == "/there?a=b")
        #expect(second.fields.map(\.name).sorted() == ["Accept", "Accept-Encoding", "Host", "User-Agent"])
    }

    @Test func `303 goes on as GET without content, 307 as it was`() async throws {
        let origin = try LocalOrigin { request in
            switch request.path {
            case "/see": HttpResponse(.seeOther, fields: ["Location": "/end"])
            case "/a/same": HttpResponse(.temporaryRedirect, fields: ["Location": "../end"])
            default: HttpResponse(.ok)
            }
        }
        let manager = HttpManager(service: try .local(origin.port))
        _ = try await manager.send(Request<NoContent>(.post, "/see", content: .text("a")))
        _ = try await manager.send(Request<NoContent>(.post, "/a/same", content: .text("a")))
        let ends = origin.requests.filter { $0.receivedTarget == "/end" }
        #expect(ends.map(\.method) == [.get, .post])
        #expect(ends.map(\.content.text) == ["", "a"])
        #expect(ends.map { $0.fields.contains(.contentType) } == [false, true])
    }

    @Test func `content that can be sent once is not redirected`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.temporaryRedirect, fields: ["Location": "/end"]) }
        let manager = HttpManager(service: try .local(origin.port))
        let pieces = AsyncStream<[UInt8]> { continuation in
            continuation.yield([1])
            continuation.finish()
        }
        let error = await #expect(throws: HttpError.self) {
            try await manager.send(Request<NoContent>(.post, "/", content: .stream(pieces)))
        }
        #expect(error?.fault == .redirect)
        #expect(origin.requests.count == 1)
    }

    @Test func `a response that is not HTTP is an error of upstream`() async throws {
        try await ScriptedOrigin.run([.expectHead(startingWith: "GET /todos/1"), .send("SSH-2.0-OpenSSH\r\n\r\n")]) {
            origin in
            let manager = HttpManager(service: try .local(origin.port))
            let error = await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 1)) }
            #expect(error?.fault == .exchange(.responseMalformed))
            #expect(error?.side == .upstream)
        }
    }
}
