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
