import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct SideCallerTests {
    /// Sends a request from a task of a loop that has a transport.
    private func call(
        _ request: HttpRequest, _ limits: CallLimits = CallLimits(), clock: any LoopClock = SystemLoopClock()
    ) async throws -> HttpResponse {
        try await withLoop(clock: clock) { loop in
            let transport = await loop.submit { Handed(LoopTransport(loop: loop, resolver: nil)) }
            let result = await Task(executorPreference: loop) {
                try await SideCaller().send(request, limits: limits)
            }.result
            await loop.submit { transport.value.closeIdle() }
            return try result.get()
        }
    }

    private func fault(of request: HttpRequest, _ limits: CallLimits = CallLimits()) async -> GatewayError.Fault? {
        do {
            _ = try await call(request, limits)
            return nil
        } catch {
            return (error as? GatewayError)?.fault
        }
    }

    @Test func `a request is sent as it is, and its response comes back whole`() async throws {
        try await ScriptedOrigin.run([
            .expectHead(
                startingWith: "POST /token?a=b HTTP/1.1\r\n", lines: ["Content-Length: 3", "X-Own: 1"],
                without: ["via", "x-forwarded-for", "transfer-encoding"]),
            .expect("a=b"),
            .send(Array("HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nyes\r\n0\r\n\r\n".utf8), piece: 1),
        ]) { origin in
            var fields = HttpFields()
            try fields.set("X-Own", to: "1")
            let response = try await call(
                HttpRequest(.post, "http://127.0.0.1:\(origin.port)/token?a=b", fields: fields, content: .text("a=b")))
            #expect(response.status == .badRequest)
            #expect(response.content.text == "yes")
            #expect(origin.heads[0].contains("Host: 127.0.0.1:\(origin.port)\r\n"))
        }
    }

    @Test(arguments: [HttpMethod.post, .put, .patch])
    func `a request without content says so if its method usually has some`(method: HttpMethod) async throws {
        // RFC 9110 §8.6.
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "\(method) / HTTP/1.1\r\n", lines: ["Content-Length: 0"]),
            .send("HTTP/1.1 204 No Content\r\n\r\n"),
        ]) { origin in
            let response = try await call(HttpRequest(method, "http://127.0.0.1:\(origin.port)/"))
            #expect(response.status == .noContent)
        }
    }

    @Test func `a response larger than its limit fails the call, told or found out`() async throws {
        for head in ["Content-Length: 11\r\n\r\n", "\r\n"] {
            let origin = try ScriptedOrigin([
                .expectHead(startingWith: "GET / "), .send("HTTP/1.1 200 OK\r\n" + head + "01234567890"), .closeWriting,
            ])
            let found = await fault(
                of: try HttpRequest(.get, "http://127.0.0.1:\(origin.port)/"), CallLimits(content: .bytes(10)))
            #expect(found == .responseContentTooLarge)
            origin.stop()
        }
    }

    @Test func `a redirect is a response unless it is asked for`() async throws {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /a "),
            .send("HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"),
        ]) { origin in
            let response = try await call(HttpRequest(.get, "http://127.0.0.1:\(origin.port)/a"))
            #expect(response.status.code == 302)
        }
    }

    @Test func `at most the given number of redirects are followed, of GET alone`() async throws {
        let redirect = ScriptedOrigin.Step.send("HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n")
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /a ", lines: ["authorization: x"]), redirect,
            .expectHead(startingWith: "GET /b ", lines: ["authorization: x"]), redirect,
        ]) { origin in
            var fields = HttpFields()
            try fields.set(.authorization, to: "x")
            let response = try await call(
                HttpRequest(.get, "http://127.0.0.1:\(origin.port)/a", fields: fields), CallLimits(redirects: 1))
            #expect(response.status.code == 302)
        }
        try await ScriptedOrigin.run([.expectHead(startingWith: "POST /a "), redirect]) { origin in
            let response = try await call(
                HttpRequest(.post, "http://127.0.0.1:\(origin.port)/a"), CallLimits(redirects: 1))
            #expect(response.status.code == 302)
        }
    }

    @Test func `a redirect to a private address elsewhere is not followed`() async throws {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /a "),
            .send("HTTP/1.1 307 Over there\r\nLocation: http://127.0.0.2:9/\r\nContent-Length: 0\r\n\r\n"),
        ]) { origin in
            let found = await fault(
                of: try HttpRequest(.get, "http://127.0.0.1:\(origin.port)/a"), CallLimits(redirects: 3))
            #expect(found == .destinationProhibited)
        }
    }

    @Test func `private addresses are refused where that is asked for`() async throws {
        var limits = CallLimits()
        limits.deniesPrivate = true
        #expect(await fault(of: try HttpRequest(.get, "http://127.0.0.1:9/"), limits) == .destinationProhibited)
    }

    @Test func `a server that never answers ends the call at its deadline`() async throws {
        let clock = ManualClock()
        try await ScriptedOrigin.run([.expectHead(startingWith: "GET / "), .pause, .expectEnd]) { origin in
            let response = Task { try await call(HttpRequest(.get, "http://127.0.0.1:\(origin.port)/"), clock: clock) }
            while origin.heads.isEmpty { await Task.yield() }
            clock.advance(by: .seconds(5))
            await #expect(throws: GatewayError.self) { try await response.value }
            origin.proceed()
        }
    }

    @Test func `a cancelled call closes its connection`() async throws {
        try await ScriptedOrigin.run([.expectHead(startingWith: "GET / "), .expectEnd]) { origin in
            try await withLoop(clock: ManualClock()) { loop in
                let transport = await loop.submit { Handed(LoopTransport(loop: loop, resolver: nil)) }
                let request = try HttpRequest(.get, "http://127.0.0.1:\(origin.port)/")
                let task = Task(executorPreference: loop) { try await SideCaller().send(request) }
                while origin.heads.isEmpty { await Task.yield() }
                task.cancel()
                await #expect(throws: CancellationError.self) { try await task.value }
                await loop.submit { transport.value.closeIdle() }
            }
        }
    }

    @Test func `off a loop there is nothing to call with`() async throws {
        await #expect(throws: GatewayError.self) {
            try await SideCaller().send(HttpRequest(.get, "http://127.0.0.1:9/"))
        }
    }

    @Test func `a request without an absolute URI is refused`() async throws {
        #expect(await fault(of: try HttpRequest(.get, "/a")) == .requestMalformed)
    }

    @Test func `a ware calls from the middle of an exchange, and passes no chain`() async throws {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /own "), .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
        ]) {
            origin in
            let exchange = try TestExchange([Calling(port: origin.port)])
            let response = try await exchange.send(.get("/"))
            #expect(response.content.text == "hi")
            #expect(exchange.upstream.requests.isEmpty)
        }
    }
}

/// Answers with what another server says.
private struct Calling: AsyncMiddleware {
    let port: UInt16

    func handle(_ request: inout HttpRequest, in exchange: Exchange) async throws -> Verdict {
        .abort(with: try await SideCaller().send(HttpRequest(.get, "http://127.0.0.1:\(port)/own")))
    }
}

/// Carries what belongs to a loop there and back.
struct Handed<Value>: @unchecked Sendable {
    // Unchecked: touched on the loop only.
    let value: Value
    init(_ value: Value) { self.value = value }
}
