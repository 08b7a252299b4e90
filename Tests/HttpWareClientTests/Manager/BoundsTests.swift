import Foundation
import HttpWare
import HttpWareClient
import HttpWareTesting
import Testing

/// The limits of connections of a client.
@Suite struct BoundsTests {
    /// Asks the same origin server for its tokens, as most apps do.
    private struct Login: TokenSource {
        let manager: HttpManager
        let count = ThreadLock(0)

        func newToken(refreshing refreshToken: Secret?) async throws -> NewToken {
            count.withLock { $0 += 1 }
            let todo = try await manager.send(GetTodo(id: 0))
            return NewToken(Secret(todo.title), lifetime: .seconds(3600))
        }
    }

    @Test func `1,000 requests use no more than six connections, and all succeed`() async throws {
        let origin = try LocalOrigin(keepsRequests: false) { request in
            .json(#"{"id":\#(request.path.dropFirst("/todos/".count)),"title":"a","isDone":false}"#)
        }
        let most = ThreadLock(0)
        var service = try ServiceDefinition.local(origin.port)
        // Less than most of them wait.
        service.timeouts.connect = .seconds(30)
        let manager = HttpManager(service: service, loops: ClientLoops())
        let ids = try await withThrowingTaskGroup(of: Int.self) { group in
            for id in 0..<1000 {
                group.addTask {
                    let id = try await manager.send(GetTodo(id: id)).id
                    if id % 50 == 0 {
                        let count = await origin.connectionCount()
                        most.withLock { $0 = max($0, count) }
                    }
                    return id
                }
            }
            return try await group.reduce(into: Set<Int>()) { $0.insert($1) }
        }
        #expect(ids.count == 1000)
        #expect((1...ServiceDefinition.usualConnections).contains(most.withLock { $0 }))
    }

    @Test func `1,000 requests at once succeed with 256 descriptors`() async {
        await #expect(processExitsWith: .success) {
            var limit = rlimit(rlim_cur: 256, rlim_max: 256)
            guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { exit(2) }
            let gate = LoopWait<Void>()
            let passed = Task { try await gate.value() }
            let origin = try LocalOrigin(keepsRequests: false) { _ in
                try await passed.value
                return .json(#"{"id":1,"title":"a","isDone":false}"#)
            }
            let begun = ThreadLock(0)
            let manager = HttpManager(
                service: try .local(origin.port),
                middlewares: [
                    OnRequest { _, _ in
                        let count = begun.withLock { begun in
                            begun += 1
                            return begun
                        }
                        if count == 1000 { gate.resume(returning: ()) }
                    }
                ])
            try await withThrowingTaskGroup(of: Void.self) { group in
                for id in 0..<1000 { group.addTask { _ = try await manager.send(GetTodo(id: id)) } }
                try await group.waitForAll()
            }
            exit(0)
        }
    }

    @Test func `the library writes nothing to standard error`() async {
        await #expect(processExitsWith: .success) { exit(WareLog.shared.writes(.critical) ? 1 : 0) }
    }

    @Test func `requests wait for a connection longer than a connection may take to be made, in their order`()
        async throws
    {
        let order = ThreadLock<[String]>([])
        let gate = LoopWait<Void>()
        let passed = Task { try await gate.value() }
        let clock = ManualClock()
        let origin = try LocalOrigin { request in
            order.withLock { $0.append(request.path) }
            if request.path == "/todos/0" { try await passed.value }
            return .json(#"{"id":1,"title":"a","isDone":false}"#)
        }
        var service = try ServiceDefinition.local(origin.port)
        service.pool.maxPerEndpoint = 1
        service.timeouts.connect = .seconds(5)
        let waiting = ThreadLock(0)
        let manager = HttpManager(
            service: service, middlewares: [OnRequest { _, _ in waiting.withLock { $0 += 1 } }],
            loops: ClientLoops(clock: clock))
        var tasks: [Task<Todo, any Error>] = []
        for id in 0..<5 {
            tasks.append(Task { try await manager.send(GetTodo(id: id)) })
            try await eventually { waiting.withLock { $0 } == id + 1 }
        }
        try await eventually { order.withLock { $0 } == ["/todos/0"] }
        clock.advance(by: .seconds(60))
        gate.resume(returning: ())
        for task in tasks { _ = try await task.value }
        #expect(order.withLock { $0 } == (0..<5).map { "/todos/\($0)" })
    }

    @Test func `a source of tokens that asks the same origin server does not wait for the requests that wait for it`()
        async throws
    {
        let origin = try LocalOrigin(keepsRequests: false) { request in
            if request.path == "/todos/0" { return .json(#"{"id":0,"title":"new","isDone":false}"#) }
            guard request.fields[.authorization] == "Bearer new" else {
                return HttpResponse(.unauthorized, content: .text(String(repeating: "x", count: 100_000)))
            }
            return .json(#"{"id":1,"title":"a","isDone":false}"#)
        }
        var service = try ServiceDefinition.local(origin.port)
        service.pool.maxPerEndpoint = 2
        let loops = ClientLoops()
        let source = Login(manager: HttpManager(service: service, loops: loops))
        let login = Credential(name: "login", source: source)
        try await login.put(NewToken(Secret("old"), lifetime: .seconds(3600)))
        let manager = HttpManager(
            service: service, middlewares: [TokenRefresh(login), TokenInject(login)], loops: loops)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for id in 1...20 { group.addTask { _ = try await manager.send(GetTodo(id: id)) } }
            try await group.waitForAll()
        }
        #expect(source.count.withLock { $0 } == 1)
    }
}
