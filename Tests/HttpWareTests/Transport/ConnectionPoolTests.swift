import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct ConnectionPoolTests {
    private let origin: SocketStage
    private let request: HttpRequest

    init() throws {
        request = try HttpRequest(.get, "http://a/")
        // Its clock stands still, too: a busy machine closes no idle connection.
        origin = try SocketStage(
            .of([OnRequest { _, _ in .abort(with: HttpResponse(.ok, content: .text("ok"))) }]), stops: true)
    }

    private func stage(_ set: (inout Endpoint.PoolLimits) -> Void) throws -> SocketStage {
        var limits = Endpoint.PoolLimits()
        set(&limits)
        return try SocketStage(.empty, port: origin.port, limits: limits, stops: true)
    }

    /// Sends that many requests in one turn of the loop. Returns the statuses of their responses.
    private func send(_ count: Int, on stage: SocketStage) async -> [Int] {
        let statuses = AsyncStream<Int>.makeStream()
        stage.loop.execute { [request] in
            for _ in 0..<count {
                LocalCaller(stage.server, peer: nil).send(request) { result in
                    statuses.continuation.yield((try? result.get())?.status.code ?? 0)
                }
            }
        }
        var all: [Int] = []
        for await status in statuses.stream {
            all.append(status)
            if all.count == count { break }
        }
        return all
    }

    private func numbers(_ stage: SocketStage) async -> (connects: Int, idle: Int) {
        await stage.step { ($0.server.transport.connects, $0.server.transport.poolNumbers.first?.idle ?? 0) }
    }

    private func pass(_ duration: Duration, on stage: SocketStage) async {
        stage.clock?.advance(by: duration)
        await stage.step { _ in }
    }

    @Test func `a batch that is larger than maxIdle finds its connections again`() async throws {
        let stage = try stage { $0.maxIdle = 2 }
        for _ in 0..<3 { #expect(await send(20, on: stage) == Array(repeating: 200, count: 20)) }
        #expect(await numbers(stage) == (20, 20))
    }

    @Test func `connections beyond maxIdle are closed when they were not needed for two seconds`() async throws {
        let stage = try stage { $0.maxIdle = 2 }
        _ = await send(20, on: stage)
        await pass(.milliseconds(900), on: stage)
        #expect(await numbers(stage).idle == 20)
        await pass(.milliseconds(100), on: stage)
        await pass(.seconds(1), on: stage)
        #expect(await numbers(stage).idle == 2)
        // The two that stay are used again.
        #expect(await send(2, on: stage) == [200, 200])
        #expect(await numbers(stage) == (20, 2))
    }

    @Test func `with maxIdle 0 each connection is closed behind its response`() async throws {
        let stage = try stage { $0.maxIdle = 0 }
        _ = await send(3, on: stage)
        #expect(await numbers(stage) == (3, 0))
        _ = await send(3, on: stage)
        #expect(await numbers(stage) == (6, 0))
    }

    @Test func `requests beyond maxPerEndpoint wait and are served by the connections that are there`() async throws {
        let stage = try stage { $0.maxPerEndpoint = 2 }
        #expect(await send(200, on: stage) == Array(repeating: 200, count: 200))
        #expect(await numbers(stage).connects == 2)
    }
}

@Suite struct ConnectionPoolOrderTests {
    private let stage: HandTurnedLoop
    private let origin: UnixOrigin
    private let endpoint: Endpoint

    init() throws {
        stage = try HandTurnedLoop()
        origin = try UnixOrigin()
        var limits = Endpoint.PoolLimits()
        limits.maxPerEndpoint = 1
        endpoint = Endpoint(unixPath: origin.path, limits: limits)
    }

    @discardableResult
    private func ask(_ waiter: RecordingWaiter = RecordingWaiter(), need: ConnectionNeed = .usual) -> RecordingWaiter {
        _ = stage.transport.connect(to: endpoint, need: need, timeout: .seconds(5), waiter: waiter)
        return waiter
    }

    private func connection(need: ConnectionNeed = .usual) throws -> Http1UpstreamConnection {
        try #require(ask(need: need).stream as? Http1UpstreamConnection)
    }

    @Test func `a request for a new connection closes an idle one when all places are taken`() throws {
        let first = try connection()
        let pool = stage.transport.pool(for: endpoint)
        pool.giveBack(first)
        let second = try connection(need: .new)
        #expect(second !== first)
        #expect(first.isClosed)
        #expect(pool.count == 1)
        #expect(pool.waitingCount == 0)
    }

    @Test func `a request that asks again after a failure waits behind the others`() throws {
        let first = try connection()
        var order: [String] = []
        let second = RecordingWaiter()
        let third = RecordingWaiter()
        let again = RecordingWaiter()
        second.whenFailed = {
            order.append("second")
            ask(again)
        }
        third.whenFailed = { order.append("third") }
        again.whenFailed = { order.append("again") }
        ask(second)
        ask(third)
        origin.stop()
        first.cancel()
        #expect(order == ["second", "third", "again"])
        #expect(stage.transport.pools.isEmpty)
    }

    @Test func `many waiting requests fail one after the other when the origin server is gone`() throws {
        let first = try connection()
        let waiters = (0..<50_000).map { _ in ask() }
        origin.stop()
        first.cancel()
        #expect(waiters.allSatisfy { $0.error?.fault == .connectionRefused && $0.answers == 1 })
        #expect(stage.transport.pools.isEmpty)
    }

    @Test func `a request that waits longer than its timeout for a place is told the limit`() throws {
        let first = try connection()
        let waiter = ask()
        stage.advance(by: .milliseconds(4999))
        #expect(waiter.answers == 0)
        stage.advance(by: .milliseconds(1))
        #expect(waiter.error?.fault == .connectionLimitReached)
        #expect(waiter.error?.reason == "all 1 connections to \(endpoint.name) are in use")
        stage.transport.pool(for: endpoint).giveBack(first)
        #expect(waiter.answers == 1 && first.isPooled)
    }
}
