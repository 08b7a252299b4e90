import HttpWareClient
import HttpWareTesting
import Synchronization
import Testing

@Suite struct KeptTokenTests {
    private final class Login: TokenSource {
        let asked = Mutex(0)
        let lifetime: Duration?

        init(lifetime: Duration?) { self.lifetime = lifetime }

        func newToken(refreshing refreshToken: Secret?) async throws -> NewToken {
            let count = asked.withLock { asked in
                asked += 1
                return asked
            }
            return NewToken(Secret("token-\(count)"), lifetime: lifetime, refreshToken: Secret("refresh-\(count)"))
        }
    }

    /// Notes what the origin server had seen when the tokens were kept.
    private final class SlowStore: TokenStore {
        let memory = MemoryTokenStore()
        let seen = Mutex<[Int]>([])
        let count: @Sendable () -> Int

        init(_ count: @escaping @Sendable () -> Int) { self.count = count }

        func read() async throws -> StoredTokens? { memory.read() }
        func remove() async throws { memory.remove() }
        func write(_ tokens: StoredTokens) async throws {
            for _ in 0..<200 { await Task.yield() }
            memory.write(tokens)
            seen.withLock { $0.append(count()) }
        }
    }

    @Test func `a token without a lifetime is used by the next start`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.noContent) }
        let store = MemoryTokenStore()
        let source = Login(lifetime: nil)
        for _ in 0..<3 {
            let login = Credential(name: "login", source: source, store: store)
            let manager = HttpManager(
                service: try .local(origin.port), middlewares: [TokenRefresh(login), TokenInject(login)])
            _ = try await manager.send(DeleteTodo(id: 1))
        }
        #expect(source.asked.withLock { $0 } == 1)
        #expect(Set(origin.requests.map { $0.fields[.authorization] }) == ["Bearer token-1"])
    }

    @Test func `a token without a lifetime that is refused is renewed once, and kept`() async throws {
        let origin = try LocalOrigin { request in
            HttpResponse(request.fields[.authorization] == "Bearer token-1" ? .unauthorized : .noContent)
        }
        let store = MemoryTokenStore(StoredTokens(accessToken: Secret("token-1"), refreshToken: Secret("refresh-1")))
        let source = Login(lifetime: nil)
        source.asked.withLock { $0 = 1 }
        let login = Credential(name: "login", source: source, store: store)
        let manager = HttpManager(
            service: try .local(origin.port), middlewares: [TokenRefresh(login), TokenInject(login)])
        _ = try await manager.send(DeleteTodo(id: 1))
        #expect(origin.requests.map { $0.fields[.authorization] } == ["Bearer token-1", "Bearer token-2"])
        #expect(store.stored?.refreshToken == Secret("refresh-2"))
    }

    @Test func `new tokens are kept before a request continues with them`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.noContent) }
        let store = SlowStore { origin.requests.count }
        let login = Credential(name: "login", source: Login(lifetime: .seconds(3600)), store: store)
        let manager = HttpManager(
            service: try .local(origin.port), middlewares: [TokenRefresh(login), TokenInject(login)])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for id in 0..<5 { group.addTask { _ = try await manager.send(DeleteTodo(id: id)) } }
            try await group.waitForAll()
        }
        #expect(store.seen.withLock { $0 } == [0])
        #expect(store.memory.stored?.refreshToken == Secret("refresh-1"))
        #expect(origin.requests.count == 5)
    }
}
