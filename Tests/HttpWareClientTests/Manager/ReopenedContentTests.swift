import Foundation
import HttpWare
import HttpWareClient
import HttpWareTesting
import Synchronization
import Testing

/// Requests with content that are sent again: after a refused token, a challenge, a failure, or a redirect.
@Suite struct ReopenedContentTests {
    private struct Login: TokenSource {
        func newToken(refreshing refreshToken: Secret?) async throws -> NewToken {
            NewToken(Secret("new"), lifetime: .seconds(3600))
        }
    }

    /// The kinds of content that can be opened again.
    enum Source: CaseIterable { case bytes, file, reopening, form }

    private let folder = TemporaryFolder()

    private func content(_ source: Source, _ count: Int) throws -> RequestContent {
        let bytes = [UInt8](repeating: 0x78, count: count)
        switch source {
        case .bytes: return .bytes(bytes)
        case .file:
            let path = folder.path + "/content-\(count)"
            try Data(bytes).write(to: URL(filePath: path))
            return .file(try FileContent(path: path))
        case .reopening: return .reopening { AsyncStream(pieces: bytes) }
        case .form:
            var form = Multipart()
            form.add("file", bytes, filename: "a.bin")
            return .multipart(form)
        }
    }

    private func login() async throws -> Credential {
        let login = Credential(name: "login", source: Login())
        try await login.put(NewToken(Secret("old"), lifetime: .seconds(3600)))
        return login
    }

    /// Refuses the first token with this challenge.
    private func origin(challenge: String? = nil) throws -> LocalOrigin {
        try LocalOrigin { request in
            guard request.fields[.authorization] == "Bearer old" else {
                return .json(#"{"id":\#(request.content.bytes?.count ?? 0),"title":"","isDone":false}"#)
            }
            var response = HttpResponse(.unauthorized)
            if let challenge { try response.fields.set(.wwwAuthenticate, to: challenge) }
            return response
        }
    }

    @Test(arguments: Source.allCases, [1 << 20 | 1, 5 << 20])
    func `an upload of any size whose token is refused goes out again with a new one`(
        source: Source, count: Int
    ) async throws {
        let (origin, login, told) = (try origin(), try await login(), ThreadLock(0))
        let manager = HttpManager(
            service: try .local(origin.port), middlewares: [TokenRefresh(login), TokenInject(login)],
            postwares: [Unauthorized { _ in told.withLock { $0 += 1 } }])
        let todo = try await manager.send(Request<Todo>(.put, "/a", content: try content(source, count)))
        let sizes = origin.requests.map { $0.content.bytes?.count ?? 0 }
        #expect(source == .form ? todo.id > count : todo.id == count)
        #expect(sizes == [todo.id, todo.id])
        #expect(told.withLock { $0 } == 0)
    }

    @Test(arguments: [nil, "Bearer", "Bearer realm=\"api\"", "Bearer error=\"invalid_token\"", "Basic realm=\"api\""])
    func `any 401 to a request with its token renews the token`(challenge: String?) async throws {
        let (origin, login) = (try origin(challenge: challenge), try await login())
        let manager = HttpManager(
            service: try .local(origin.port), middlewares: [TokenRefresh(login), TokenInject(login)])
        _ = try await manager.send(Request<Todo>(.get, "/a"))
        #expect(origin.requests.map { $0.fields[.authorization] } == ["Bearer old", "Bearer new"])
    }

    @Test func `RFC 6750 §3.1: a challenge with another error renews no token`() async throws {
        let (origin, login) = (try origin(challenge: "Bearer error=\"insufficient_scope\""), try await login())
        let manager = HttpManager(
            service: try .local(origin.port), middlewares: [TokenRefresh(login), TokenInject(login)])
        await #expect(throws: HttpError.self) { try await manager.send(Request<Todo>(.get, "/a")) }
        #expect(origin.requests.count == 1)
    }

    @Test func `content that can be sent once and is too long says so, and the login stays`() async throws {
        let (origin, login, told) = (try origin(), try await login(), ThreadLock(0))
        let manager = HttpManager(
            service: try .local(origin.port), middlewares: [TokenRefresh(login), TokenInject(login)],
            postwares: [Unauthorized { _ in told.withLock { $0 += 1 } }])
        let stream = RequestContent.stream(AsyncStream(pieces: [UInt8](repeating: 0x78, count: 2 << 20)))
        let error = try #require(
            await #expect(throws: HttpError.self) { try await manager.send(Request<Todo>(.put, "/a", content: stream)) }
        )
        #expect(error.status == .unauthorized && !error.isAuthentication && error.mayRetry)
        #expect(error.underlying as? ContentSentOnce == ContentSentOnce(isRenewed: true))
        #expect(error.reason.contains("its content can be sent only once"))
        #expect(told.withLock { $0 } == 0)
        // The next request has the new token.
        _ = try await manager.send(Request<Todo>(.get, "/a"))
        #expect(origin.requests.map { $0.fields[.authorization] } == ["Bearer old", "Bearer new"])
    }

    @Test(arguments: Source.allCases)
    func `a retry and a challenge send content of any size again`(source: Source) async throws {
        let turn = ThreadLock(0)
        let origin = try LocalOrigin { _ in
            HttpResponse(
                [.serviceUnavailable, .forbidden, .ok][
                    turn.withLock { turn in
                        defer { turn += 1 }
                        return min(turn, 2)
                    }])
        }
        let retry = Retry(backoff: .milliseconds(1) ... .milliseconds(2))
        let manager = HttpManager(
            service: try .local(origin.port),
            middlewares: [retry, Challenge(statuses: [403]) { _, _ in ["X-Code": "1"] }])
        _ = try await manager.send(Request<NoContent>(.put, "/a", content: try content(source, 3 << 20)))
        let sizes = origin.requests.map { $0.content.bytes?.count ?? 0 }
        #expect(sizes.count == 3 && Set(sizes).count == 1 && sizes[0] >= 3 << 20)
        #expect(origin.requests.map { $0.fields["X-Code"] } == [nil, nil, "1"])
    }

    @Test(arguments: Source.allCases)
    func `a redirect sends content of any size again`(source: Source) async throws {
        let origin = try LocalOrigin { request in
            request.path == "/b" ? HttpResponse(.ok) : HttpResponse(.permanentRedirect, fields: ["Location": "/b"])
        }
        let manager = HttpManager(service: try .local(origin.port))
        _ = try await manager.send(Request<NoContent>(.post, "/a", content: try content(source, 3 << 20)))
        let sizes = origin.requests.map { $0.content.bytes?.count ?? 0 }
        #expect(sizes.count == 2 && sizes[0] == sizes[1] && sizes[0] >= 3 << 20)
    }

    @Test(arguments: Source.allCases)
    func `a request on a connection that was closed meanwhile goes out again with its content`(
        source: Source
    ) async throws {
        let content = try content(source, 100)
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /"), .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
            .expectHead(startingWith: "PUT /"), .close, .accept, .expectHead(startingWith: "PUT /"),
            .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        ]) { origin in
            let manager = HttpManager(service: try .local(origin.port))
            _ = try await manager.send(Request<NoContent>(.get, "/"))
            _ = try await manager.send(Request<NoContent>(.put, "/", content: content))
        }
    }

    @Test(arguments: Source.allCases, RefusingOrigin.Way.allCases)
    func `RFC 9113 §8.7: content of any size that was refused unseen goes out again`(
        source: Source, way: RefusingOrigin.Way
    ) async throws {
        let origin = try RefusingOrigin(refusing: 2, by: way)
        defer { origin.stop() }
        var service = try ServiceDefinition.local(origin.port)
        service.speaks = .h2
        let content = try content(source, 200_000)
        _ = try await HttpManager(service: service).send(Request<NoContent>(.post, "/a", content: content))
        #expect(origin.contents.count == 3 && Set(origin.contents).count == 1 && origin.contents[0] >= 200_000)
    }
}

extension AsyncStream<[UInt8]> {
    /// The bytes in pieces of 64 KiB.
    init(pieces bytes: [UInt8]) {
        self.init { continuation in
            for start in stride(from: 0, to: bytes.count, by: 65_536) {
                continuation.yield(Array(bytes[start..<Swift.min(bytes.count, start + 65_536)]))
            }
            continuation.finish()
        }
    }
}
