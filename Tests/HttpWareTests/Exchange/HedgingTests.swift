import HttpWareTesting
import Synchronization
import Testing

@testable import HttpWare

/// Further endpoints that are asked while a request has no response.
@Suite struct HedgingTests {
    private final class Keeper: HedgeKeeper {
        let outcomes = Mutex<[HedgeOutcome]>([])
        let isAllowed: Bool

        init(isAllowed: Bool = true) { self.isAllowed = isAllowed }

        func mayHedge(_ exchange: Exchange) -> Bool { isAllowed }
        func hedgeEnded(_ outcome: HedgeOutcome) { outcomes.withLock { $0.append(outcome) } }
        var told: [HedgeOutcome] { outcomes.withLock { $0 } }
    }

    private struct Hedged: Middleware {
        let keeper: Keeper
        let most: Int
        let need: ContentNeed

        var contentNeed: ContentNeed { need }

        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
            exchange.hedging = Hedging(after: .milliseconds(100), most: most, keeper: keeper)
            return .pass
        }
    }

    private func stage(
        endpoints: Int = 2, most: Int = 1, _ keeper: Keeper, need: ContentNeed = .none, isPassthrough: Bool = false,
        before wares: [any Ware] = []
    ) throws -> DriverStage {
        var balancing = Balancing()
        var ejection = Balancing.Ejection()
        ejection.failures = 1
        balancing.ejection = ejection
        return try DriverStage(
            .of(wares + [Hedged(keeper: keeper, most: most, need: need)]), endpoints: endpoints, balancing: balancing,
            isPassthrough: isPassthrough)
    }

    private func loads(_ stage: DriverStage) -> [Int] {
        stage.driver.plan.service?.reports(at: stage.clock.now()).map(\.active) ?? []
    }

    private func status(_ stage: DriverStage) async -> Int? { await stage.step { $0.client.status } }

    @Test func `an answer in time goes to one endpoint only`() async throws {
        let keeper = Keeper()
        let stage = try stage(keeper)
        await stage.begin()
        await stage.advance(by: .milliseconds(99))
        await stage.step { $0.stream.respond() }
        await stage.advance(by: .seconds(1))
        #expect(await stage.step { $0.origin.streams.count } == 1)
        #expect(await status(stage) == 200)
        #expect(keeper.told.isEmpty)
    }

    @Test func `when no answer came another endpoint is asked, and the first answer wins`() async throws {
        let keeper = Keeper()
        let stage = try stage(keeper)
        await stage.begin()
        await stage.advance(by: .milliseconds(100))
        #expect(await stage.step { Set($0.origin.streams.map(\.endpoint.name)).count } == 2)
        #expect(loads(stage) == [1, 1])
        await stage.step { $0.origin.streams[1].respond(.ok, text: "second") }
        #expect(await stage.step { $0.client.text } == "second")
        #expect(await stage.step { $0.client.ends } == 1)
        #expect(await stage.step { $0.origin.streams[0].isCancelled && !$0.origin.streams[1].isCancelled })
        #expect(keeper.told == [.won])
        #expect(loads(stage) == [0, 0])
    }

    @Test func `when the first endpoint answers after all the other is cancelled`() async throws {
        let keeper = Keeper()
        let stage = try stage(keeper)
        await stage.begin()
        await stage.advance(by: .milliseconds(100))
        await stage.step { $0.origin.streams[0].respond(.ok, extent: .length(4)) }
        #expect(await stage.step { $0.origin.streams[1].isCancelled })
        await stage.step { stage in
            stage.origin.streams[0].send("done")
            stage.origin.streams[0].end()
        }
        #expect(await stage.step { $0.client.text } == "done")
        #expect(keeper.told == [.lost])
        #expect(loads(stage) == [0, 0])
    }

    @Test func `content streams from the endpoint that won`() async throws {
        let stage = try stage(Keeper())
        await stage.begin()
        await stage.advance(by: .milliseconds(100))
        await stage.step { $0.origin.streams[1].respond(.ok, extent: .unknown) }
        for piece in ["a", "b", "c"] { await stage.step { $0.origin.streams[1].send(piece) } }
        #expect(await stage.step { $0.client.text } == "abc")
        await stage.step { $0.origin.streams[1].fail() }
        #expect(await stage.step { $0.client.cuts } == 1)
        #expect(loads(stage) == [0, 0])
    }

    @Test(arguments: [502, 503, 504])
    func `a gateway's trouble does not win while another may still answer`(code: Int) async throws {
        let keeper = Keeper()
        let trouble = try #require(HttpStatus(code))
        let stage = try stage(keeper)
        await stage.begin()
        await stage.advance(by: .milliseconds(100))
        await stage.step { $0.origin.streams[1].respond(trouble, text: "no") }
        #expect(await status(stage) == nil)
        #expect(keeper.told == [.failed])
        await stage.step { $0.origin.streams[0].respond(trouble) }
        #expect(await status(stage) == code)
        #expect(loads(stage) == [0, 0])
    }

    @Test func `trouble at the first endpoint leaves the answer to the other`() async throws {
        let keeper = Keeper()
        let stage = try stage(keeper)
        await stage.begin()
        await stage.advance(by: .milliseconds(100))
        await stage.step { $0.origin.streams[0].respond(.serviceUnavailable, text: "no") }
        #expect(await status(stage) == nil)
        #expect(await stage.step { $0.origin.streams[0].isDiscarded })
        await stage.step { $0.origin.streams[1].respond(.notFound) }
        #expect(await status(stage) == 404)
        #expect(keeper.told == [.won])
    }

    @Test(arguments: [0, 1])
    func `when one of both breaks the other one's answer is the response`(broken: Int) async throws {
        let keeper = Keeper()
        let stage = try stage(keeper)
        await stage.begin()
        await stage.advance(by: .milliseconds(100))
        await stage.step { $0.origin.streams[broken].fail() }
        #expect(await status(stage) == nil)
        await stage.step { $0.origin.streams[1 - broken].respond() }
        #expect(await status(stage) == 200)
        #expect(keeper.told == [broken == 0 ? .won : .failed])
        #expect(await stage.step { $0.origin.streams.count } == 2)
    }

    @Test func `when both break the client is told once`() async throws {
        let keeper = Keeper()
        let stage = try stage(keeper)
        await stage.begin(.post)
        await stage.advance(by: .milliseconds(100))
        await stage.step { $0.origin.streams[0].fail() }
        await stage.step { $0.origin.streams[1].fail() }
        #expect(await status(stage) == 502)
        #expect(keeper.told == [.failed])
        #expect(loads(stage) == [0, 0])
    }

    @Test func `a connection that is not made in time is hedged, and the first one made is not lost`() async throws {
        let keeper = Keeper()
        let stage = try stage(keeper)
        await stage.step { $0.origin.isSlow = true }
        await stage.begin()
        await stage.step { $0.origin.isSlow = false }
        await stage.advance(by: .milliseconds(100))
        #expect(await stage.step { $0.origin.streams.count } == 1)
        await stage.step { $0.stream.respond() }
        #expect(await status(stage) == 200)
        #expect(keeper.told == [.won])
        await stage.step { $0.origin.admit() }
        #expect(await stage.step { $0.origin.streams.count } == 1)
        #expect(loads(stage) == [0, 0])
    }

    @Test func `when the connect fails an attempt that waits for its connection takes over`() async throws {
        let keeper = Keeper()
        let stage = try stage(keeper)
        await stage.begin()
        await stage.step { $0.origin.isSlow = true }
        await stage.advance(by: .milliseconds(100))
        await stage.step { $0.stream.fail() }
        #expect(await status(stage) == nil)
        await stage.step { $0.origin.admit() }
        await stage.step { $0.stream.respond() }
        #expect(await status(stage) == 200)
        #expect(keeper.told == [.won])
        #expect(await stage.step { $0.driver.exchange.record.attempts } == 2)
    }

    @Test func `a refused connection of the further attempt changes nothing`() async throws {
        let keeper = Keeper()
        let stage = try stage(keeper)
        await stage.begin()
        await stage.step {
            $0.origin.failures = [GatewayError(.upstream, .connectionRefused, "refused", mayRetry: true)]
        }
        await stage.advance(by: .milliseconds(100))
        #expect(keeper.told == [.failed])
        await stage.step { $0.stream.respond() }
        #expect(await status(stage) == 200)
        #expect(loads(stage) == [0, 0])
    }

    @Test func `at most the given number of endpoints are asked, each a further one`() async throws {
        let keeper = Keeper()
        let stage = try stage(endpoints: 4, most: 2, keeper)
        await stage.begin()
        for _ in 0..<5 { await stage.advance(by: .milliseconds(100)) }
        #expect(await stage.step { Set($0.origin.streams.map(\.endpoint.name)).count } == 3)
        #expect(await stage.step { $0.origin.streams.count } == 3)
        await stage.step { $0.origin.streams[2].respond() }
        #expect(keeper.told == [.lost, .won])
        #expect(loads(stage) == [0, 0, 0, 0])
    }

    @Test func `a client that leaves ends all attempts`() async throws {
        let keeper = Keeper()
        let stage = try stage(keeper)
        await stage.begin()
        await stage.advance(by: .milliseconds(100))
        await stage.step { $0.driver.clientLeft() }
        #expect(await stage.step { $0.origin.streams.allSatisfy(\.isCancelled) })
        #expect(keeper.told == [.lost])
        #expect(loads(stage) == [0, 0])
    }

    @Test func `one endpoint, a refusal of the ware, and an endpoint that is out leave the request where it is`()
        async throws
    {
        let alone = try stage(endpoints: 1, Keeper())
        await alone.begin()
        await alone.advance(by: .seconds(1))
        #expect(await alone.step { $0.origin.streams.count } == 1)
        let denied = try stage(Keeper(isAllowed: false))
        await denied.begin()
        await denied.advance(by: .seconds(1))
        #expect(await denied.step { $0.origin.streams.count } == 1)
        let out = try stage(Keeper())
        await out.begin()
        await out.step { $0.stream.fail() }  // idempotent: tried again at the other endpoint, and the first one is out
        await out.advance(by: .seconds(1))
        #expect(await out.step { $0.origin.streams.count } == 2)
    }

    @Test func `content goes to two endpoints only if all of it is kept`() async throws {
        let streaming = try stage(Keeper())
        await streaming.begin(.put, extent: .length(4))
        await streaming.upload("1234", isLast: true)
        await streaming.advance(by: .seconds(1))
        #expect(await streaming.step { $0.origin.streams.count } == 1)
        let kept = try stage(Keeper(), need: .kept(upTo: 4))
        await kept.begin(.put, extent: .length(4))
        await kept.upload("12")
        await kept.advance(by: .milliseconds(100))
        #expect(await kept.step { $0.origin.streams.count } == 1)
        let whole = try stage(Keeper(), need: .kept(upTo: 4))
        await whole.begin(.put, extent: .length(4))
        await whole.upload("1234", isLast: true)
        await whole.advance(by: .milliseconds(100))
        #expect(await whole.step { $0.origin.streams.map(\.text) } == ["1234", "1234"])
        #expect(await whole.step { $0.origin.streams.map(\.ends) } == [1, 1])
        await whole.step { $0.origin.streams[1].respond() }
        #expect(await status(whole) == 200)
    }

    @Test func `each time that the request is sent again, it is hedged again`() async throws {
        let keeper = Keeper()
        let stage = try stage(endpoints: 4, keeper, before: [OnBoth.replaying(.internalServerError)])
        await stage.begin()
        for round in 0..<2 {
            await stage.advance(by: .milliseconds(100))
            #expect(await stage.step { $0.origin.streams.count } == 2 * round + 2)
            await stage.step { $0.stream.respond(round == 0 ? .internalServerError : .ok) }
        }
        #expect(await status(stage) == 200)
        #expect(keeper.told == [.won, .won])
        #expect(loads(stage) == [0, 0, 0, 0])
    }

    @Test func `the total time ends all attempts`() async throws {
        let keeper = Keeper()
        var timeouts = UpstreamService.Timeouts()
        timeouts.total = .milliseconds(500)
        let stage = try DriverStage(
            .of([Hedged(keeper: keeper, most: 1, need: .none)]), endpoints: 2, timeouts: timeouts)
        await stage.begin()
        await stage.advance(by: .milliseconds(100))
        await stage.advance(by: .milliseconds(400))
        #expect(await status(stage) == 504)
        #expect(await stage.step { $0.origin.streams.allSatisfy(\.isCancelled) })
        #expect(keeper.told == [.lost])
    }
}
