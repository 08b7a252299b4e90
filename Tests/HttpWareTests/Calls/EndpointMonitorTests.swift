import HttpWareTesting
import Testing

@testable import HttpWare

@Suite(.timeLimit(.minutes(10))) struct EndpointMonitorTests {
    /// The parts that stay on the loop: made, used and let go there.
    private final class OnLoop: @unchecked Sendable {
        // Unchecked: touched on the loop only.
        var monitor: EndpointMonitor?
        var server: ScriptedNameServer?
        var resolver: Resolver?

        func end() {
            monitor?.stop()
            monitor = nil
            resolver?.close()
            resolver = nil
            server = nil
        }
    }

    /// Follows a service on a loop whose clock is moved by hand, until `done` finds what it waits for; answers how the endpoints are then.
    private func follow(
        _ endpoints: [Endpoint], clock: ManualClock = ManualClock(), _ change: (inout Balancing) -> Void,
        step: Duration = .seconds(1), until done: @escaping @Sendable ([EndpointReport]) -> Bool
    ) async throws -> [EndpointReport] {
        var balancing = Balancing()
        change(&balancing)
        let service = UpstreamService(name: "followed", endpoints: endpoints, balancing: balancing)
        return try await withLoop(clock: clock) { loop in
            let followed = OnLoop()
            await loop.submit {
                followed.monitor = EndpointMonitor(service, transport: LoopTransport(loop: loop, resolver: nil))
                #expect(followed.monitor != nil)
                followed.monitor?.start()
            }
            var reports = service.reports(at: clock.now())
            while !done(reports), !Task.isCancelled {
                let before = reports
                // A check that is under way ends by itself; only then is it time for the next.
                for _ in 0..<1000 {
                    await loop.submit {}
                    reports = service.reports(at: clock.now())
                    if reports != before { break }
                }
                if reports == before { clock.advance(by: step) }
            }
            await loop.submit { followed.end() }
            return reports
        }
    }

    @Test func `a check asks for the path, and the status decides`() async throws {
        let well = try LocalOrigin { request in HttpResponse(request.path == "/health" ? .noContent : .notFound) }
        let ill = try LocalOrigin { _ in HttpResponse(.serviceUnavailable) }
        let reports = try await follow(
            [Endpoint(host: "127.0.0.1", port: well.port), Endpoint(host: "127.0.0.1", port: ill.port)]
        ) {
            $0.healthCheck = Balancing.HealthCheck(path: "/health?x=1")
            // Never reached, however busy the machine is.
            $0.healthCheck?.timeout = .seconds(1_000_000)
        } until: {
            $0[1].state == .unhealthy && $0[0].checksPassed >= 3
        }
        #expect(reports.map(\.state) == [.open, .unhealthy])
        #expect(reports[0].checksFailed == 0)
        #expect(reports[1].checksPassed == 0 && reports[1].checksFailed == 3)
        let first = try #require(well.requests.first)
        #expect(first.target.hasQuery)
        #expect(first.fields[.host] == "127.0.0.1:\(well.port)")
        #expect(first.fields[.userAgent] == "httpware-health")
    }

    @Test func `a refused connection, or no answer in time, is a check that failed`() async throws {
        let silent = try LocalOrigin { _ in try await untilCancelled() }
        let closed = try LocalOrigin { _ in HttpResponse(.ok) }
        await closed.close()
        let reports = try await follow(
            [Endpoint(host: "127.0.0.1", port: silent.port), Endpoint(host: "127.0.0.1", port: closed.port)]
        ) {
            $0.healthCheck = Balancing.HealthCheck(path: "/")
        } until: {
            $0.allSatisfy { $0.state == .unhealthy }
        }
        #expect(reports.allSatisfy { $0.checksPassed == 0 })
    }

    @Test func `the status decides, however much content comes with it`() async throws {
        let content = [UInt8](repeating: 0x78, count: 2 << 20)
        let well = try LocalOrigin { _ in HttpResponse(.ok, content: .bytes(content)) }
        let ill = try LocalOrigin { _ in HttpResponse(.serviceUnavailable, content: .bytes(content)) }
        let reports = try await follow(
            [Endpoint(host: "127.0.0.1", port: well.port), Endpoint(host: "127.0.0.1", port: ill.port)]
        ) {
            $0.healthCheck = Balancing.HealthCheck(path: "/")
            $0.healthCheck?.timeout = .seconds(1_000_000)
        } until: {
            $0[0].state == .unhealthy || $0[1].state == .unhealthy && $0[0].checksPassed >= 3
        }
        #expect(reports.map(\.state) == [.open, .unhealthy])
        #expect(reports.map(\.lastFailure?.what) == [nil, "check: status 503"])
    }

    // MARK: Names

    @Test func `the addresses of a name are followed by the TTL, and kept while no server answers`() async throws {
        let clock = ManualClock()
        var balancing = Balancing()
        balancing.resolvesNames = true
        let service = UpstreamService(
            name: "named", endpoints: [Endpoint(host: "origin.test", port: 80)], balancing: balancing)
        try await withLoop(clock: clock) { loop in
            let followed = OnLoop()
            try await loop.task {
                let server = try ScriptedNameServer(loop: loop)
                var options = Resolver.Options()
                options.servers = [server.address]
                let resolver = try Resolver(loop: loop, options: options)
                server.replies["AAAA origin.test"] = .nothing
                server.replies["A origin.test"] = .addresses(["192.0.2.1", "192.0.2.2"], ttl: 60)
                followed.server = server
                followed.resolver = resolver
                followed.monitor = EndpointMonitor(service, transport: LoopTransport(loop: loop, resolver: resolver))
                followed.monitor?.start()
            }
            func answer(_ body: @escaping @Sendable () -> ScriptedNameServer.Reply) async {
                await loop.submit { followed.server?.replies["A origin.test"] = body() }
            }
            func questions() async -> Int { await loop.submit { followed.server?.count("A origin.test") ?? 0 } }
            func untilNames(_ names: String..., advancing step: Duration = .zero) async {
                while service.reports(at: clock.now()).map(\.name) != names, !Task.isCancelled {
                    for _ in 0..<50 { await loop.submit {} }
                    clock.advance(by: step)
                }
            }
            await untilNames("192.0.2.1:80", "192.0.2.2:80")
            #expect(await questions() == 1)

            await answer { .addresses(["192.0.2.2", "192.0.2.3"], ttl: 1) }
            clock.advance(by: .seconds(60))
            await untilNames("192.0.2.2:80", "192.0.2.3:80")

            // A TTL of a second is five seconds here.
            await answer { .code(2) }
            let asked = await questions()
            clock.advance(by: .seconds(4))
            for _ in 0..<20 { await loop.submit {} }
            #expect(await questions() == asked)
            clock.advance(by: .seconds(1))
            while await questions() == asked, !Task.isCancelled {}
            for _ in 0..<20 { await loop.submit {} }
            #expect(service.reports(at: clock.now()).map(\.name) == ["192.0.2.2:80", "192.0.2.3:80"])

            await answer { .addresses(["192.0.2.4"], ttl: 60) }
            await untilNames("192.0.2.4:80", advancing: .seconds(1))
            await loop.submit { followed.end() }
        }
    }

    /// Follows `origin.test` on a loop whose clock is moved by hand.
    private func withName(
        _ change: (inout Balancing) -> Void = { _ in }, port: UInt16 = 80,
        _ body: (
            _ service: UpstreamService, _ loop: EventLoop, _ clock: ManualClock, _ followed: OnLoop
        )
            async throws -> Void
    ) async throws {
        let clock = ManualClock()
        var balancing = Balancing()
        balancing.resolvesNames = true
        change(&balancing)
        let service = UpstreamService(
            name: "named", endpoints: [Endpoint(host: "origin.test", port: port)], balancing: balancing)
        try await withLoop(clock: clock) { loop in
            let followed = OnLoop()
            try await loop.task {
                let server = try ScriptedNameServer(loop: loop)
                var options = Resolver.Options()
                options.servers = [server.address]
                let resolver = try Resolver(loop: loop, options: options)
                server.replies["AAAA origin.test"] = .nothing
                server.replies["A origin.test"] = .addresses(["127.0.0.2"], ttl: 600)
                followed.server = server
                followed.resolver = resolver
                followed.monitor = EndpointMonitor(service, transport: LoopTransport(loop: loop, resolver: resolver))
                followed.monitor?.start()
            }
            while await loop.submit({ followed.resolver?.timeLeft(for: "origin.test") }) == nil {}
            try await body(service, loop, clock, followed)
            await loop.submit { followed.end() }
        }
    }

    @Test func `when a connection to a name's address fails on any loop the name is looked up again at once`()
        async throws
    {
        try await withName { service, loop, clock, followed in
            await loop.submit { followed.server?.replies["A origin.test"] = .addresses(["127.0.0.3"], ttl: 600) }
            clock.advance(by: .seconds(2))
            // Another loop, whose own answer is as old.
            let endpoint = try #require(service.reachable.first)
            try await withLoop(clock: clock) { other in
                await other.submit {
                    let transport = Handed(LoopTransport(loop: other, resolver: nil))
                    Connector.connect(
                        to: endpoint.fixed(at: [.unix(path: "/tmp/httpware-no-such-socket")]), speaking: .h1,
                        loop: other,
                        resolver: nil, timeout: .seconds(1)
                    ) { _, _ in _ = transport }
                }
            }
            while service.reports(at: clock.now()).map(\.name) != ["127.0.0.3:80"] { await loop.submit {} }
            #expect(await loop.submit { followed.server?.count("A origin.test") } == 2)
        }
    }

    @Test func `when a check fails the name is looked up again at once`() async throws {
        // Nothing listens on port 1.
        try await withName(
            {
                $0.healthCheck = Balancing.HealthCheck(path: "/")
                $0.healthCheck?.timeout = .seconds(1_000_000)
            }, port: 1
        ) { service, loop, clock, followed in
            await loop.submit { followed.server?.replies["A origin.test"] = .addresses(["127.0.0.3"], ttl: 600) }
            clock.advance(by: .seconds(5))
            while service.reports(at: clock.now()).map(\.name) != ["127.0.0.3:1"] { await loop.submit {} }
        }
    }

    @Test func `a service without names and checks has no monitor`() async throws {
        let service = UpstreamService(
            name: "plain", endpoints: [Endpoint(host: "192.0.2.1", port: 80), Endpoint(host: "192.0.2.2", port: 80)])
        try await withLoop { loop in
            let isThere = await loop.submit {
                EndpointMonitor(service, transport: LoopTransport(loop: loop, resolver: nil)) != nil
            }
            #expect(!isThere)
        }
    }
}
