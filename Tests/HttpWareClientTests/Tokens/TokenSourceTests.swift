import Foundation
import HttpWareClient
import HttpWareTesting
import Synchronization
import Testing

@Suite struct TokenSourceTests {
    /// Counts, and hands out `token-1`, `token-2`, …
    private final class Login: TokenSource {
        let asked = Mutex<[Secret?]>([])
        let failure = Mutex<(any Error & Sendable)?>(nil)

        func newToken(refreshing refreshToken: Secret?) async throws -> NewToken {
            let count = asked.withLock { asked in
                asked.append(refreshToken)
                return asked.count
            }
            await Task.yield()
            if let failure = failure.withLock({ $0 }) { throw failure }
            return NewToken(
                Secret("token-\(count)"), lifetime: .seconds(3600), refreshToken: Secret("refresh-\(count)"))
        }
    }

    private static func origin(refusing refused: Set<String> = []) throws -> LocalOrigin {
        try LocalOrigin { request in
            let token = request.fields[.authorization] ?? ""
            return HttpResponse(token.isEmpty || refused.contains(token) ? .unauthorized : .ok)
        }
    }

    private static func manager(_ origin: LocalOrigin, _ credential: Credential) throws -> HttpManager {
        HttpManager(
            service: try .local(origin.port),
            middlewares: [TokenRefresh(credential: credential), TokenInject(credential: credential)],
            // Its time stands still: no request for a token waits too long.
            loops: ClientLoops(clock: ManualClock()))
    }

    @Test func `requests wait while one token is asked for, and all carry it`() async throws {
        let origin = try TokenSourceTests.origin()
        let login = Login()
        let manager = try TokenSourceTests.manager(origin, Credential(name: "login", source: login))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for id in 0..<20 { group.addTask { _ = try await manager.send(DeleteTodo(id: id)) } }
            try await group.waitForAll()
        }
        #expect(login.asked.withLock { $0.count } == 1)
        #expect(Set(origin.requests.map { $0.fields[.authorization] }) == ["Bearer token-1"])
    }

    @Test func `a request whose token is refused is replayed with a new one`() async throws {
        let origin = try TokenSourceTests.origin(refusing: ["Bearer token-1"])
        let login = Login()
        let manager = try TokenSourceTests.manager(origin, Credential(name: "login", source: login))
        _ = try await manager.send(AddRaw(text: "content"))
        #expect(login.asked.withLock { $0 } == [nil, Secret("refresh-1")])
        #expect(origin.requests.map { $0.fields[.authorization] } == ["Bearer token-1", "Bearer token-2"])
        #expect(origin.requests.map(\.content.text) == ["content", "content"])
    }

    @Test func `a source that refuses is not asked again, and the request is answered`() async throws {
        let origin = try TokenSourceTests.origin()
        let login = Login()
        login.failure.withLock { $0 = TokenRefused("the user has to log in") }
        let manager = try TokenSourceTests.manager(origin, Credential(name: "login", source: login))
        let error = await #expect(throws: HttpError.self) { try await manager.send(DeleteTodo(id: 1)) }
        #expect(error?.fault == .authentication)
        #expect(error?.status == .unauthorized)
        #expect(login.asked.withLock { $0.count } == 1)
        #expect(origin.requests.isEmpty)
    }

    @Test func `a token that the program has is put in force, and forgotten when it says so`() async throws {
        let origin = try TokenSourceTests.origin()
        let store = MemoryTokenStore()
        let credential = Credential(name: "login", source: Login(), store: store)
        let manager = try TokenSourceTests.manager(origin, credential)
        try await credential.put(NewToken(Secret("mine"), lifetime: .seconds(600)))
        _ = try await manager.send(DeleteTodo(id: 1))
        #expect(origin.requests.last?.fields[.authorization] == "Bearer mine")
        #expect(store.stored?.accessToken == Secret("mine"))
        await credential.clear()
        #expect(store.stored == nil)
        _ = try await manager.send(DeleteTodo(id: 1))
        #expect(origin.requests.last?.fields[.authorization] == "Bearer token-1")
        await #expect(throws: CredentialFailure.self) { try await credential.put(NewToken(Secret("a\nb"))) }
    }

    @Test func `tokens are kept in a file of 0600, and taken from there by the next run`() async throws {
        let origin = try TokenSourceTests.origin()
        let path = FileManager.default.temporaryDirectory.appending(path: "tokens-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let first = Login()
        _ = try await TokenSourceTests.manager(
            origin, Credential(name: "login", source: first, store: FileTokenStore(path: path))
        ).send(DeleteTodo(id: 1))
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        let second = Login()
        _ = try await TokenSourceTests.manager(
            origin, Credential(name: "login", source: second, store: FileTokenStore(path: path))
        ).send(DeleteTodo(id: 1))
        #expect(second.asked.withLock { $0.isEmpty })
        #expect(origin.requests.map { $0.fields[.authorization] } == ["Bearer token-1", "Bearer token-1"])
    }

    private struct AddRaw: Route {
        static let method = HttpMethod.put
        let text: String
        var path: RoutePath { "/raw" }
        func content(in service: ServiceDefinition) -> RequestContent { .text(text) }
    }
}
