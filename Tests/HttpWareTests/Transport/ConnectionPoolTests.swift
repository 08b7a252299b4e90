import Glibc
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

/// One pool of a loop that does not run: connections to a Unix socket are made at once, and each step is the test's.
@Suite struct ConnectionPoolOrderTests {
    private let loop: EventLoop
    private let transport: LoopTransport
    private let path = "/tmp/httpware-pool-\(getpid())-\(UInt64.random(in: 0 ... .max))"
    private let endpoint: Endpoint
    private let listener: Int32

    init() throws {
        loop = try EventLoop(name: "pool", clock: ManualClock())
        transport = LoopTransport(loop: loop, resolver: nil)
        var limits = Endpoint.PoolLimits()
        limits.maxPerEndpoint = 1
        endpoint = Endpoint(unixPath: path, limits: limits)
        listener = try Socket.listen(on: .unix(path: path))
    }

    private final class Waiter: ConnectionWaiter {
        var connection: Http1UpstreamConnection?
        var error: GatewayError?
        /// Called when there is no connection.
        var whenFailed: () -> Void = {}

        func connectionReady(_ stream: any UpstreamStream, _ times: Connector.Times?) {
            connection = stream as? Http1UpstreamConnection
        }

        func connectionFailed(_ error: GatewayError) {
            self.error = error
            whenFailed()
        }
    }

    private func ask(_ waiter: Waiter = Waiter(), need: ConnectionNeed = .usual) -> Waiter {
        _ = transport.connect(to: endpoint, need: need, timeout: .seconds(5), waiter: waiter)
        return waiter
    }

    private func stopListening() {
        close(listener)
        unlink(path)
    }

    @Test func `a request for a new connection closes an idle one when all places are taken`() throws {
        defer { stopListening() }
        let first = try #require(ask().connection)
        let pool = transport.pool(for: endpoint)
        pool.giveBack(first)
        let second = try #require(ask(need: .new).connection)
        #expect(second !== first)
        #expect(first.isClosed)
        #expect(pool.count == 1)
        #expect(pool.waitingCount == 0)
    }

    @Test func `a request that asks again after a failure waits behind the others`() throws {
        let first = try #require(ask().connection)
        var order: [String] = []
        let second = Waiter()
        let third = Waiter()
        let again = Waiter()
        second.whenFailed = {
            order.append("second")
            _ = ask(again)
        }
        third.whenFailed = { order.append("third") }
        again.whenFailed = { order.append("again") }
        _ = ask(second)
        _ = ask(third)
        stopListening()
        first.cancel()
        #expect(order == ["second", "third", "again"])
        #expect(transport.pools.isEmpty)
    }

    @Test func `many waiting requests fail one after the other when the origin server is gone`() throws {
        let first = try #require(ask().connection)
        let waiters = (0..<50_000).map { _ in ask() }
        stopListening()
        first.cancel()
        #expect(waiters.allSatisfy { $0.error?.fault == .connectionRefused })
        #expect(transport.pools.isEmpty)
    }
}
