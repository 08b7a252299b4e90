import HttpWare
import HttpWareClient
import HttpWareTesting
import Testing

@Suite struct ManyRequestsTests {
    /// An origin server that answers nothing before its gate opens, and a service with a limit of connections to it.
    private struct Stage {
        let origin: LocalOrigin
        let service: ServiceDefinition

        init(connections: Int, gate: Task<Void, any Error>?) throws {
            origin = try LocalOrigin(keepsRequests: false) { request in
                try await gate?.value
                return .json(#"{"id":\#(request.path.dropFirst("/todos/".count)),"title":"a","isDone":false}"#)
            }
            var service = try ServiceDefinition.local(origin.port)
            service.pool.maxPerEndpoint = connections
            service.timeouts.total = nil
            self.service = service
        }
    }

    /// The most that was seen.
    private final class Most: Sendable {
        private let seen = ThreadLock(0)

        func see(_ count: Int) { seen.withLock { $0 = max($0, count) } }
        var count: Int { seen.withLock { $0 } }
    }

    @Test func `10,000 requests that are under way at once complete on 100 connections`() async throws {
        let count = 10_000
        let all = LoopWait<Void>()
        let stage = try Stage(connections: 100, gate: Task { try await all.value() })
        let begun = ThreadLock(0)
        let manager = HttpManager(
            service: stage.service,
            middlewares: [
                OnRequest { _, _ in
                    // All of them are in the chain, or wait behind it for a connection.
                    let number = begun.withLock { begun in
                        begun += 1
                        return begun
                    }
                    if number == count { all.resume(returning: ()) }
                }
            ])
        let ids = try await withThrowingTaskGroup(of: Int.self) { group in
            for id in 0..<count { group.addTask { try await manager.send(GetTodo(id: id)).id } }
            return try await group.reduce(into: Set<Int>()) { $0.insert($1) }
        }
        #expect(ids.count == count)
        #expect(await stage.origin.connectionCount() <= 100)
    }

    @Test func `a queue of 10,000 requests never sends more at once than it may`() async throws {
        let count = 10_000
        let stage = try Stage(connections: 100, gate: nil)
        let queue = RequestQueue(HttpManager(service: stage.service), maxConcurrent: 100)
        queue.pause()
        let most = Most()
        let ids = try await withThrowingTaskGroup(of: Int.self) { group in
            for id in 0..<count {
                group.addTask {
                    let priority: RequestPriority = id % 3 == 0 ? .high : id % 3 == 1 ? .normal : .low
                    return try await queue.run(priority: priority) {
                        most.see(queue.runningCount)
                        return try await queue.manager.send(GetTodo(id: id)).id
                    }
                }
            }
            while queue.waitingCount < count { await Task.yield() }
            queue.resume()
            return try await group.reduce(into: Set<Int>()) { $0.insert($1) }
        }
        #expect(ids.count == count)
        #expect(most.count <= 100)
        try await queue.waitUntilIdle()
        #expect(queue.progress == RequestQueue.Progress(done: 0, total: 0))
    }
}
