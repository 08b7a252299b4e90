import HttpWare
import HttpWareClient
import HttpWareTesting
import Synchronization
import Testing

@Suite struct RequestQueueTests {
    /// An origin server that answers when it is told to.
    private final class Gated: Sendable {
        private let gates = Mutex<[String: LoopWait<Void>]>([:])
        let order = Mutex<[String]>([])

        func gate(_ path: String) -> LoopWait<Void> {
            gates.withLock { gates in
                if let gate = gates[path] { return gate }
                let gate = LoopWait<Void>()
                gates[path] = gate
                return gate
            }
        }

        func arrive(_ path: String) async throws -> HttpResponse {
            order.withLock { $0.append(path) }
            try await gate(path).value()
            return HttpResponse(.ok)
        }

        func until(_ count: Int) async {
            while order.withLock({ $0.count }) < count { await Task.yield() }
        }
    }

    private struct Get: Route {
        let name: String
        var path: RoutePath { "/\(name)" }
    }

    private static func make(_ count: Int) throws -> (RequestQueue, Gated, LocalOrigin) {
        let gated = Gated()
        let origin = try LocalOrigin { request in try await gated.arrive(request.path) }
        return (RequestQueue(HttpManager(service: try .local(origin.port)), maxConcurrent: count), gated, origin)
    }

    private static func wait(_ isTrue: () -> Bool) async { while !isTrue() { await Task.yield() } }

    @Test func `at most the given number of requests go at once, higher priorities first`() async throws {
        let (queue, gated, origin) = try RequestQueueTests.make(1)
        var tasks = [Task { try await queue.send(Get(name: "first")) }]
        await gated.until(1)
        for (index, (name, priority)) in [
            ("low", RequestPriority.low), ("a", .normal), ("b", .normal), ("high", .high),
        ]
        .enumerated() {
            tasks.append(Task { try await queue.send(Get(name: name), priority: priority) })
            await RequestQueueTests.wait { queue.waitingCount == index + 1 }
        }
        #expect(queue.runningCount == 1)
        #expect(queue.progress == RequestQueue.Progress(done: 0, total: 5))
        for name in ["first", "high", "a", "b", "low"] { gated.gate("/" + name).resume(returning: ()) }
        for task in tasks { _ = try await task.value }
        #expect(gated.order.withLock { $0 } == ["/first", "/high", "/a", "/b", "/low"])
        #expect(queue.runningCount == 0)
        #expect(origin.requests.count == 5)
    }

    @Test func `requests of a class are cancelled by their tag, waiting or under way`() async throws {
        let (queue, gated, origin) = try RequestQueueTests.make(2)
        let image = Task { try await queue.send(Get(name: "image1"), tags: ["images"]) }
        let page = Task { try await queue.send(Get(name: "page")) }
        await gated.until(2)
        let other = Task { try await queue.send(Get(name: "image2"), tags: ["images"]) }
        await RequestQueueTests.wait { queue.waitingCount == 1 }
        queue.cancelAll(tagged: "images")
        await #expect(throws: CancellationError.self) { try await image.value }
        await #expect(throws: CancellationError.self) { try await other.value }
        gated.gate("/page").resume(returning: ())
        _ = try await page.value
        #expect(origin.requests.map(\.path).contains("/image2") == false)
    }

    @Test func `a queue that is paused begins nothing, and goes on when it is resumed`() async throws {
        let (queue, gated, origin) = try RequestQueueTests.make(2)
        queue.pause()
        gated.gate("/a").resume(returning: ())
        let task = Task { try await queue.send(Get(name: "a")) }
        await RequestQueueTests.wait { queue.waitingCount == 1 }
        #expect(queue.runningCount == 0)
        queue.resume()
        _ = try await task.value
        #expect(origin.requests.count == 1)
    }

    @Test func `a task that is cancelled while it waits leaves the queue`() async throws {
        let (queue, gated, origin) = try RequestQueueTests.make(1)
        let first = Task { try await queue.send(Get(name: "a")) }
        await gated.until(1)
        let second = Task { try await queue.send(Get(name: "b")) }
        await RequestQueueTests.wait { queue.waitingCount == 1 }
        second.cancel()
        await #expect(throws: CancellationError.self) { try await second.value }
        #expect(queue.waitingCount == 0)
        gated.gate("/a").resume(returning: ())
        _ = try await first.value
        #expect(origin.requests.count == 1)
    }

    @Test func `waiting for idle ends when the last request has`() async throws {
        let (queue, gated, origin) = try RequestQueueTests.make(4)
        try await queue.waitUntilIdle()
        let tasks = ["a", "b", "c"].map { name in Task { try await queue.send(Get(name: name)) } }
        await gated.until(3)
        let idle = Task { try await queue.waitUntilIdle() }
        for name in ["a", "b", "c"] { gated.gate("/" + name).resume(returning: ()) }
        try await idle.value
        #expect(queue.progress == RequestQueue.Progress(done: 0, total: 0))
        for task in tasks { _ = try await task.value }
        #expect(origin.requests.count == 3)
    }

    @Test func `an error of a request goes to its sender, and the queue goes on`() async throws {
        let origin = try LocalOrigin { request in HttpResponse(request.path == "/a" ? .notFound : .ok) }
        let queue = RequestQueue(HttpManager(service: try .local(origin.port)), maxConcurrent: 1)
        await #expect(throws: HttpError.self) { try await queue.send(Get(name: "a")) }
        _ = try await queue.send(Get(name: "b"))
    }
}
