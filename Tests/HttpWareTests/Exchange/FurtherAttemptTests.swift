import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct FurtherAttemptTests {
    private final class Keeper: HedgeKeeper {
        func mayHedge(_ exchange: Exchange) -> Bool { true }
        func hedgeEnded(_ outcome: HedgeOutcome) {}
    }

    private struct Hedged: Middleware {
        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
            exchange.hedging = Hedging(after: .milliseconds(100), most: 1, keeper: Keeper())
            return .pass
        }
    }

    private static let closed = GatewayError(.upstream, .connectionTerminated, "closed", mayRetry: true)

    @Test(arguments: [true, false])
    func `late events of an attempt that has ended change nothing, in its exchange and the next one`(isNext: Bool)
        async throws
    {
        let stage = try DriverStage(.of([Hedged()]), endpoints: 2)
        await stage.begin()
        await stage.advance(by: .milliseconds(100))
        let number = await stage.step { $0.driver.call.attempts.made }
        if isNext {
            await stage.step { $0.origin.streams[0].respond() }
            await stage.begin()
        } else {
            await stage.step { $0.origin.streams[1].fail() }
        }
        await stage.step { stage in
            let late = FurtherAttempt(stage.driver, number)
            let stream = ScriptedStream(Endpoint(host: "192.0.2.9", port: 80))
            late.connectionReady(stream, nil)
            #expect(stream.isCancelled)
            late.connectionFailed(FurtherAttemptTests.closed)
            late.upstreamFailed(FurtherAttemptTests.closed)
            var response = HttpResponse(.ok)
            late.responseInterim(&response)
            late.responseStarted(&response)
            late.responseEnded(nil)
            #expect(stage.client.status == nil && stage.client.interim.isEmpty)
        }
        await stage.step { $0.origin.streams[isNext ? 2 : 0].respond(.accepted) }
        #expect(await stage.step { $0.client.status } == 202)
        #expect(await stage.step { $0.driver.exchange.record.attempts } == (isNext ? 1 : 2))
    }

    @Test func `an attempt that waited for its connection sends the request when it leads`() async throws {
        let stage = try DriverStage(.of([Hedged()]), endpoints: 2)
        await stage.begin(.put, extent: .none)
        await stage.step { $0.origin.isSlow = true }
        await stage.advance(by: .milliseconds(100))
        await stage.step { $0.origin.streams[0].fail() }
        await stage.step { $0.origin.admit() }
        #expect(await stage.step { $0.origin.streams.count } == 2)
        await stage.step { $0.origin.streams[1].respond(text: "well") }
        #expect(await stage.step { $0.client.text } == "well")
    }
}
