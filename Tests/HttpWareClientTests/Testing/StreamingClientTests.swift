import HttpWareClient
import HttpWareTesting
import Synchronization
import Testing

@Suite struct StreamingClientTests {
    /// Does as the test says.
    private struct Scripted: StreamingHttpClient {
        let body: @Sendable (HttpRequest, RequestPieces) async throws -> StreamedAnswer

        func respond(to request: HttpRequest, content: RequestPieces) async throws -> StreamedAnswer {
            try await body(request, content)
        }
    }

    private func manager(
        _ client: any StreamingHttpClient, _ wares: [any Middleware] = [], idle: Duration = .seconds(600)
    ) -> HttpManager {
        var service = "http://api.example.com".service
        service.timeouts.idle = idle
        service.timeouts.response = .seconds(600)
        return HttpManager(service: service, client: .streaming(client), middlewares: wares)
    }

    private func pieces(_ count: Int, of size: Int) -> AsyncStream<[UInt8]> {
        AsyncStream { continuation in
            for number in 0..<count {
                continuation.yield(Array(repeating: UInt8(truncatingIfNeeded: number), count: size))
            }
            continuation.finish()
        }
    }

    @Test func `content streams both ways at once`() async throws {
        let manager = manager(Echo())
        let upload = Request<RawContent>(.post, "/echo", content: .stream(pieces(100, of: 40_000)))
        let response = try await manager.stream(upload)
        var count = 0
        for try await piece in response.bytes { count += piece.count }
        #expect(count == 4_000_000)
    }

    @Test func `a response that is at hand needs no sequence`() async throws {
        let manager = manager(
            Scripted { request, _ in
                StreamedAnswer(.json(#"{"id":1,"title":"\#(request.path)","isDone":false}"#))
            })
        #expect(try await manager.send(GetTodo(id: 1)).title == "/todos/1")
    }

    @Test func `a reader that stops stops the client`() async throws {
        let given = Mutex(0)
        let manager = manager(
            Scripted { _, _ in
                StreamedAnswer(
                    HttpResponse(.ok),
                    content: AsyncStream<[UInt8]> {
                        given.withLock { $0 += 1 }
                        return Array(repeating: 1, count: 64 << 10)
                    })
            })
        let response = try await manager.stream(Request<RawContent>(.get, "/endless"))
        var pieces = response.bytes.makeAsyncIterator()
        _ = try await pieces.next()
        #expect(try await settledValue { given.withLock { $0 } } < 64)
    }

    @Test(arguments: [
        (HttpResponse(.ok, content: .streamed(length: 10)), "brought 3 of 10 bytes"),
        (HttpResponse(.ok, content: .streamed(length: 2)), "brings more than 2 bytes"),
    ])
    func `content that is not as long as said is an error`(head: HttpResponse, reason: String) async throws {
        let manager = manager(
            Scripted { _, _ in
                StreamedAnswer(
                    head,
                    content: AsyncStream<[UInt8]> {
                        $0.yield([1, 2, 3])
                        $0.finish()
                    })
            })
        let error = await #expect(throws: HttpError.self) {
            _ = try await manager.send(Request<RawContent>(.get, "/short"))
        }
        #expect("\(error as Any)".contains(reason), "\(error as Any)")
    }

    private struct Broken: Error {}

    @Test func `errors that the client throws before and behind the head are reported`() async throws {
        let before = manager(Scripted { _, _ in throw GatewayError(.upstream, .dnsError, "no such host") })
        let offline = await #expect(throws: HttpError.self) { try await before.send(DeleteTodo(id: 1)) }
        #expect(offline?.isOffline == true)
        let behind = manager(
            Scripted { _, _ in
                StreamedAnswer(
                    HttpResponse(.ok),
                    content: AsyncThrowingStream<[UInt8], any Error> {
                        $0.yield([1])
                        $0.finish(throwing: Broken())
                    })
            })
        let response = try await behind.stream(Request<RawContent>(.get, "/cut"))
        await #expect(throws: HttpError.self) { for try await _ in response.bytes {} }
    }

    @Test func `a client that goes quiet is a timeout, and its task is cancelled`() async throws {
        let wasCancelled = Mutex(false)
        let manager = manager(
            Scripted { _, _ in
                do {
                    try await untilCancelled()
                } catch {
                    wasCancelled.withLock { $0 = true }
                }
                return StreamedAnswer(HttpResponse(.ok))
            })
        var timeouts = ExchangeTimeouts()
        timeouts.response = .milliseconds(50)
        let quick = CallOption.timeouts(timeouts)
        let error = await #expect(throws: HttpError.self) { _ = try await manager.send(DeleteTodo(id: 1), quick) }
        #expect(error?.isTimeout == true, "\(error as Any)")
        try await eventually { wasCancelled.withLock { $0 } }
    }
}
