import HttpWareTesting
import Testing

@testable import HttpWare

/// How exchanges use a service's endpoints, and what they report about them.
@Suite struct BalancedExchangeTests {
    private func stage(
        endpoints: Int = 2, wares: [any Ware] = [], _ change: (inout Balancing) -> Void = { _ in }
    ) throws -> DriverStage {
        var balancing = Balancing()
        change(&balancing)
        return try DriverStage(.of(wares), endpoints: endpoints, balancing: balancing)
    }

    private func loads(_ stage: DriverStage) -> [Int] {
        stage.driver.plan.service?.reports(at: stage.clock.now()).map(\.active) ?? []
    }

    private func asked(_ stage: DriverStage) async -> [String] {
        await stage.step { $0.origin.streams.map { String($0.endpoint.name.dropFirst(8).dropLast(3)) } }
    }

    @Test func `a request counts at its endpoint from the connect to the end of the response`() async throws {
        let stage = try stage()
        await stage.begin()
        #expect(loads(stage) == [1, 0])
        await stage.step { $0.stream.respond(extent: .length(4)) }
        await stage.step { $0.stream.send("12") }
        #expect(loads(stage) == [1, 0])
        await stage.step { stage in
            stage.stream.send("34")
            stage.stream.end()
        }
        #expect(loads(stage) == [0, 0])
    }

    @Test func `a request that its client leaves is under way nowhere`() async throws {
        let stage = try stage()
        await stage.begin()
        await stage.step { $0.driver.clientLeft() }
        #expect(loads(stage) == [0, 0])
    }

    @Test func `where no connection can be made the others are tried, each once`() async throws {
        let stage = try stage(endpoints: 3) { $0.rule = .leastRequests }
        await stage.step { stage in
            let refused = GatewayError(.upstream, .connectionRefused, "refused", mayRetry: true)
            stage.origin.failures = [refused, refused]
        }
        await stage.begin(.post)
        #expect(await asked(stage).count == 1)
        #expect(loads(stage).reduce(0, +) == 1)
        #expect(await stage.step { $0.origin.failures.isEmpty })
        await stage.step { $0.stream.respond() }
        #expect(await stage.step { $0.client.status } == 200)
    }

    @Test func `where no endpoint can be connected to, each was tried and none has a request under way`() async throws {
        let stage = try stage(endpoints: 3)
        await stage.step { stage in
            stage.origin.failures = Array(
                repeating: GatewayError(.upstream, .connectionRefused, "refused", mayRetry: true), count: 5)
        }
        await stage.begin()
        #expect(await stage.step { $0.client.status } == 502)
        #expect(await stage.step { $0.origin.failures.count } == 2)
        #expect(loads(stage) == [0, 0, 0])
    }

    @Test func `an idempotent request whose connection breaks goes to another endpoint`() async throws {
        let stage = try stage { $0.rule = .hash(.route) }
        await stage.begin()
        await stage.step { $0.stream.fail() }
        await stage.step { $0.stream.respond() }
        #expect(Set(await asked(stage)) == ["1", "2"])
        #expect(await stage.step { $0.client.status } == 200)
    }

    @Test func `each replay goes to an endpoint that was not asked before`() async throws {
        let stage = try stage(endpoints: 3, wares: [OnBoth.replaying(.serviceUnavailable)]) {
            $0.rule = .hash(.route)
        }
        await stage.begin()
        await stage.step { $0.stream.respond(.serviceUnavailable, text: "later") }
        await stage.step { $0.stream.respond(.serviceUnavailable) }
        await stage.step { $0.stream.respond() }
        #expect(Set(await asked(stage)) == ["1", "2", "3"])
        #expect(loads(stage) == [0, 0, 0])
    }

    @Test func `502, 503, 504 and broken connections are failures of the endpoint, 500 and 404 are not`() async throws {
        let stage = try stage { balancing in
            var ejection = Balancing.Ejection()
            ejection.failures = 3
            balancing.ejection = ejection
        }
        func states() -> [EndpointReport.State] {
            stage.driver.plan.service?.reports(at: stage.clock.now()).map(\.state) ?? []
        }
        // By turns, two requests to each: the second endpoint answers all.
        func round(_ body: @escaping @Sendable (ScriptedStream) -> Void) async {
            await stage.begin(.post)
            await stage.step { body($0.stream) }
            await stage.begin(.post)
            await stage.step { $0.stream.respond() }
        }
        for status in [HttpStatus.internalServerError, .notFound, .internalServerError] {
            await round { $0.respond(status) }
        }
        #expect(states() == [.open, .open])
        await round { $0.respond(.badGateway) }
        await round { $0.fail() }
        #expect(states() == [.open, .open])
        await round { $0.respond(.gatewayTimeout) }
        #expect(states() == [.ejected, .open])
        await stage.begin()
        await stage.step { $0.stream.respond() }
        await stage.begin()
        await stage.step { $0.stream.respond() }
        #expect(await asked(stage).suffix(2) == ["2", "2"])
        await stage.advance(by: .seconds(30))
        #expect(states() == [.open, .open])
    }

    @Test func `one key goes to one endpoint`() async throws {
        let stage = try stage(endpoints: 4) { $0.rule = .hash(.ip) }
        for _ in 0..<5 {
            await stage.begin()
            await stage.step { $0.stream.respond() }
        }
        #expect(Set(await asked(stage)).count == 1)
    }
}
