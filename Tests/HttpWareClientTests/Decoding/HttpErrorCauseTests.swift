import HttpWare
import Foundation
import HttpWareClient
import HttpWareTesting
import Testing

@Suite struct HttpErrorCauseTests {
    private struct Oops: Error, Equatable { var code = 7 }

    private struct Throwing: Middleware, Postware {
        var onRequest = false

        func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
            if onRequest { throw Oops(code: 1) }
            return .pass
        }

        func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer { throw Oops(code: 2) }
    }

    private struct Failing: TokenSource {
        let error: any Error & Sendable
        func newToken(refreshing refreshToken: Secret?) async throws -> NewToken { throw error }
    }

    @Test(arguments: [true, false])
    func `an error that a ware throws is an error of the chain, with the app's own error`(onRequest: Bool) async throws
    {
        let origin = try LocalOrigin { _ in HttpResponse(.noContent) }
        let manager = HttpManager(
            service: try .local(origin.port), middlewares: [Throwing(onRequest: onRequest)])
        let error = try #require(await #expect(throws: HttpError.self) { try await manager.send(DeleteTodo(id: 7)) })
        #expect(error.side == .chain)
        #expect(error.fault == .exchange(.wareFailed))
        #expect(error.underlying as? Oops == Oops(code: onRequest ? 1 : 2))
        #expect(error.reason.contains("Throwing"))
    }

    @Test func `a response that a ware made is told apart from the server's`() async throws {
        struct Busy: Middleware {
            func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
                .abort(with: HttpResponse(.serviceUnavailable))
            }
        }
        let origin = try LocalOrigin { _ in HttpResponse(.serviceUnavailable) }
        let plain = HttpManager(service: try .local(origin.port))
        let theirs = try #require(await #expect(throws: HttpError.self) { try await plain.send(DeleteTodo(id: 7)) })
        #expect(theirs.responder == .upstream && theirs.side == .upstream)
        let manager = HttpManager(service: try .local(origin.port), middlewares: [Busy()])
        let ours = try #require(await #expect(throws: HttpError.self) { try await manager.send(DeleteTodo(id: 7)) })
        #expect(ours.responder == .ware("Busy") && ours.side == .chain)
        #expect(ours.status == .serviceUnavailable)
    }

    @Test func `content that stops coming is a timeout`() async throws {
        try await ScriptedOrigin.run([
            .expectHead(startingWith: "GET /todos/7"),
            .send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{"), .expectEnd,
        ]) { origin in
            var service = try ServiceDefinition.local(origin.port)
            service.timeouts.idle = .milliseconds(100)
            let manager = HttpManager(service: service)
            let error = try #require(await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 7)) })
            #expect(error.isTimeout)
            #expect(!error.isOffline && !error.isAuthentication)
        }
    }

    @Test func `a server that cannot be reached is offline, with host and cause`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.ok) }
        await origin.close()
        let manager = HttpManager(service: try .local(origin.port))
        let error = try #require(await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 7)) })
        #expect(error.isOffline && !error.isTimeout && !error.isAuthentication)
        let plain: any Error = error
        #expect(plain.localizedDescription.hasPrefix("127.0.0.1: "))
        #expect(plain.localizedDescription.contains("refused"))
    }

    @Test func `a refused refresh is an authentication failure that Unauthorized sees`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.ok) }
        let login = Credential(name: "login", source: Failing(error: TokenRefused("the password has changed")))
        let seen = ThreadLock<[String?]>([])
        let manager = HttpManager(
            service: try .local(origin.port), middlewares: [TokenRefresh(login), TokenInject(login)],
            postwares: [Unauthorized { event in seen.withLock { $0.append(event.reason) } }])
        let error = try #require(await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 7)) })
        #expect(error.fault == .authentication)
        #expect(error.isAuthentication && !error.isOffline)
        #expect(error.reason.contains("the password has changed"))
        #expect((error.underlying as? CredentialFailure)?.kind == .refused)
        #expect(seen.withLock { $0 } == ["the password has changed"])
        #expect(origin.requests.isEmpty)
    }

    @Test func `a 401 that no new token answers says why there is none`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.unauthorized) }
        let login = Credential(name: "login", source: Failing(error: TokenRefused("logged out elsewhere")))
        try await login.put(NewToken(Secret("old"), lifetime: .seconds(3600)))
        let manager = HttpManager(
            service: try .local(origin.port), middlewares: [TokenRefresh(login), TokenInject(login)])
        let error = try #require(await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 7)) })
        #expect(error.fault == .authentication && error.status == .unauthorized)
        #expect(error.reason.contains("logged out elsewhere"))
        #expect(origin.requests.count == 1)
    }

    @Test func `a token that is unavailable for want of a network is not an authentication failure`() async throws {
        let cause = HttpError(.exchange(.connectionRefused))
        let login = Credential(name: "login", source: Failing(error: cause))
        let manager = HttpManager(
            service: "http://127.0.0.1:9".service, middlewares: [TokenRefresh(login), TokenInject(login)])
        let error = try #require(await #expect(throws: HttpError.self) { try await manager.send(GetTodo(id: 7)) })
        #expect(error.isOffline && !error.isAuthentication)
        #expect(error.status == .serviceUnavailable && error.responder == .ware("TokenRefresh"))
        // A refusal by the server that gives tokens is one.
        let refused = Credential(name: "login", source: Failing(error: HttpError(response: HttpResponse(.badRequest))))
        let other = HttpManager(
            service: "http://127.0.0.1:9".service, middlewares: [TokenRefresh(refused), TokenInject(refused)])
        let second = try #require(await #expect(throws: HttpError.self) { try await other.send(GetTodo(id: 7)) })
        #expect(second.isAuthentication)
    }

    @Test func `errors can be made for tests`() throws {
        let request = try HttpRequest(.get, "https://api.example.com/todos")
        let error = HttpError(response: .json(#"{"id":1,"title":"a","isDone":false}"#, .notFound), request: request)
        #expect(error.status == .notFound && error.responder == .upstream && error.side == .client)
        #expect(try error.model(Todo.self).id == 1)
        #expect(error.localizedDescription.hasPrefix("api.example.com: "))
        #expect(HttpError(.exchange(.responseTimeout)).isTimeout)
        #expect(HttpError(.cancelled).isCancelled)
        #expect(DecodingProblem(kind: .missing, path: "a[1].b").path == "a[1].b")
    }
}
