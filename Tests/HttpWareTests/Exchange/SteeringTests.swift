import HttpWareTesting
import Synchronization
import Testing

@testable import HttpWare

/// Requests that a ware sends to some endpoints of a service only.
@Suite struct SteeringTests {
    private final class Watcher: EndpointWatcher {
        let seen = Mutex<[String]>([])

        func ended(_ endpoint: String, _ outcome: EndpointOutcome, after time: Duration, in exchange: Exchange) {
            let what =
                switch outcome {
                case .answered(let status): "\(status.code)"
                case .failed(let error): "\(error.fault)"
                }
            seen.withLock { $0.append("\(endpoint.dropFirst(8).dropLast(3)) \(what) \(time.milliseconds)") }
        }
        var told: [String] { seen.withLock { $0 } }
    }

    private struct Steering: Middleware {
        let watcher: Watcher
        var preferred: String?
        var avoided: [String] = []

        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
            exchange.steering = EndpointSteering(preferred: preferred, avoiding: avoided, watcher: watcher)
            return .pass
        }
    }

    private func asked(_ stage: DriverStage) async -> [String] {
        await stage.step { $0.origin.streams.map { String($0.endpoint.name.dropFirst(8).dropLast(3)) } }
    }

    @Test func `avoided endpoints get no request, and the preferred one the first`() async throws {
        let watcher = Watcher()
        let avoiding = try DriverStage(
            .of([Steering(watcher: watcher, avoided: ["192.0.2.1:80", "192.0.2.3:80"])]), endpoints: 3)
        for _ in 0..<4 {
            await avoiding.begin()
            await avoiding.step { $0.stream.respond() }
        }
        #expect(await asked(avoiding) == ["2", "2", "2", "2"])
        let preferring = try DriverStage(.of([Steering(watcher: watcher, preferred: "192.0.2.3:80")]), endpoints: 3)
        for _ in 0..<3 {
            await preferring.begin()
            await preferring.step { $0.stream.respond(.notFound) }
        }
        #expect(await asked(preferring) == ["3", "3", "3"])
        #expect(watcher.told == Array(repeating: "2 200 0", count: 4) + Array(repeating: "3 404 0", count: 3))
    }

    @Test func `failures of endpoints are told, each with its time`() async throws {
        let watcher = Watcher()
        let stage = try DriverStage(
            .of([Steering(watcher: watcher, preferred: "192.0.2.2:80", avoided: ["192.0.2.3:80"])]), endpoints: 3)
        await stage.step {
            $0.origin.failures = [GatewayError(.upstream, .connectionRefused, "refused", mayRetry: true)]
        }
        await stage.begin()
        await stage.advance(by: .milliseconds(20))
        await stage.step { $0.stream.respond() }
        #expect(await asked(stage) == ["1"])
        #expect(watcher.told == ["2 connectionRefused 0", "1 200 20"])
    }

    @Test func `without an endpoint that may be asked the request fails`() async throws {
        let stage = try DriverStage(
            .of([Steering(watcher: Watcher(), avoided: ["192.0.2.1:80", "192.0.2.2:80"])]), endpoints: 2)
        await stage.begin()
        #expect(await stage.step { $0.client.status } == 502)
        #expect(await stage.step { $0.origin.streams.isEmpty })
    }
}
