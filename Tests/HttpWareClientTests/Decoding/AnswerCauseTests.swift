import HttpWare
import HttpWareClient
import HttpWareTesting
import Testing

/// Errors for responses that a ware made keep the failure for which it made them.
@Suite struct AnswerCauseTests {
    /// The error of the last of some requests to the port.
    private func error(_ wares: [any Middleware], at port: UInt16, last count: Int = 1) async throws -> HttpError {
        var service = try ServiceDefinition.local(port)
        service.timeouts.response = .milliseconds(50)
        let manager = HttpManager(service: service, middlewares: wares)
        for _ in 1..<count { _ = await manager.result(of: GetTodo(id: 7)) }
        return try #require(await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 7)) })
    }

    private func closedPort() async throws -> UInt16 {
        let origin = try LocalOrigin { _ in HttpResponse(.ok) }
        await origin.close()
        return origin.port
    }

    private func offline() -> [any Middleware] { [Offline(), HttpCache(store: .memory(), mode: .private)] }

    @Test(arguments: [1, 2])
    func `with Offline in the chain, a server that cannot be reached is offline`(requests: Int) async throws {
        let error = try await error(offline(), at: try await closedPort(), last: requests)
        #expect(error.status == .gatewayTimeout && error.responder == .ware("Offline") && error.side == .chain)
        #expect(error.isOffline && !error.isTimeout)
        #expect((error.underlying as? GatewayError)?.fault == .connectionRefused)
        #expect(error.reason.contains("refused"))
    }

    @Test func `with Offline in the chain, a response that is too late is a timeout`() async throws {
        let gate = LoopWait<Void>()
        let origin = try LocalOrigin { _ in
            try await gate.value()
            return HttpResponse(.ok)
        }
        let error = try await error(offline(), at: origin.port)
        #expect(error.isTimeout && !error.isOffline)
        gate.resume(returning: ())
    }

    @Test func `an app that is switched offline is offline`() async throws {
        let wares: [any Middleware] = [Offline(mode: .always), HttpCache(store: .memory(), mode: .private)]
        #expect(try await error(wares, at: 9).isOffline)
    }

    @Test func `a circuit that opened because no connection was made is offline`() async throws {
        let breaker = CircuitBreaker(minRequests: 2)
        let error = try await error([breaker], at: try await closedPort(), last: 4)
        #expect(error.status == .serviceUnavailable && error.side == .chain)
        #expect(error.isOffline && error.reason.contains("CircuitBreaker"))
    }

    @Test func `a circuit that opened by statuses is not offline`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.internalServerError) }
        let error = try await error([CircuitBreaker(minRequests: 2)], at: origin.port, last: 4)
        #expect(error.status == .serviceUnavailable && error.responder == .ware("CircuitBreaker"))
        #expect(!error.isOffline && !error.isTimeout)
    }

    @Test func `a limit of the client names its ware`() async throws {
        let origin = try LocalOrigin { _ in .json(#"{"id":1,"title":"a","isDone":false}"#) }
        let error = try await error([RateLimit(Rate(1, per: .minute))], at: origin.port, last: 2)
        #expect(error.status == .tooManyRequests && error.reason.contains("RateLimit answered 429"))
    }

    @Test(arguments: [407, 403, 502])
    func `a proxy that refuses a tunnel is named, and is not offline`(status: Int) async throws {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "CONNECT api.example.test:443"),
            .send("HTTP/1.1 \(status) No\r\nContent-Length: 0\r\n\r\n"),
        ]) { origin in
            var service = "https://api.example.test".service
            service.proxy = .url("http://127.0.0.1:\(origin.port)")
            let error = try #require(
                await #expect(throws: HttpError.self) { try await HttpManager(service: service).send(GetTodo(id: 7)) })
            #expect(error.fault == .exchange(.proxyRefused) && !error.isOffline)
            #expect(error.reason.contains("\(status)") && error.reason.contains("127.0.0.1:\(origin.port)"))
        }
    }

    @Test func `curl is the command of the request as it was sent, with its content`() async throws {
        let origin = try LocalOrigin { request in
            request.method == .post ? .json(#"{"id":1,"title":"a","isDone":false}"#) : HttpResponse(.notFound)
        }
        let manager = HttpManager(
            service: try .local(origin.port),
            middlewares: [
                try TokenInject(value: Secret("token")), OnRequest { request, _ in request.fields["X-App"] = "todo" },
            ])
        let response = try await manager.response(of: AddTodo(body: Todo(id: 1, title: "it's")))
        for command in [response.curl(showsCredentials: true), response.request.curl(showsCredentials: true)] {
            #expect(command.contains("-H 'X-App: todo'"))
            #expect(command.contains("-H 'Authorization: Bearer token'"))
            #expect(command.contains("User-Agent: httpware"))
            #expect(command.contains("--data-raw '{"))
        }
        #expect(!response.curl().contains("token"))
        let error = try #require(await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 7)) })
        #expect(error.curl()?.contains("X-App: todo") == true)
        #expect(error.request?.fields["X-App"] == "todo")
    }

    @Test func `curl names the file of the content, and writes bytes by printf`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.noContent) }
        let manager = HttpManager(service: try .local(origin.port))
        let upload = Request<NoContent>(.put, "/a", content: .file(try FileContent(path: "/etc/passwd")))
        #expect(try await manager.response(of: upload).curl().contains("--data-binary '@/etc/passwd'"))
        let bytes = Request<NoContent>(.put, "/a", content: .bytes([0, 0x41, 0x27]))
        #expect(try await manager.response(of: bytes).curl().hasPrefix("printf '\\000A\\047' | curl -X PUT"))
    }
}
