import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct ExchangeCountersTests {
    @Test func `each exchange is counted once, with its status, its time, its bytes and its fault`() async throws {
        let stage = try DriverStage([])
        await stage.step { $0.server.counters = ExchangeCounters() }

        await stage.begin(.post, extent: .length(4))
        await stage.upload("abcd", isLast: true)
        await stage.advance(by: .milliseconds(40))
        await stage.step { $0.stream.respond(.created, text: "abcdef") }
        await stage.begin()
        await stage.step { stage in
            stage.stream.isReused = true
            stage.stream.respond(text: "")
        }
        await stage.begin()
        await stage.step { $0.driver.clientLeft() }
        await stage.step { $0.origin.failures = [GatewayError(.upstream, .connectionRefused, "refused")] }
        await stage.begin()

        let (key, series) = try #require(await stage.step { $0.server.counters?.all.first.map { ($0.key, $0.series) } })
        #expect([key.route, key.service] == ["stage", "origin"])
        #expect(series.statuses == [1, 0, 2, 0, 0, 1, 0, 0, 0, 0])
        #expect(series.count == 4)
        #expect(series.durations.counts[5] == 1)
        #expect(series.durations.counts[0] == 3)
        #expect(series.durations.nanoseconds == 40_000_000)
        let refusal = await stage.step { $0.client.content.count }
        #expect([series.requestBytes, series.responseBytes] == [4, 6 + refusal])
        #expect(series.failures["connection_refused"] == 1)
        #expect(series.sentFirst == 3)
    }

    @Test func `counts stay when other plans run, and are summed by name`() async throws {
        let stage = try DriverStage([OnRequest { _, _ in .abort(with: HttpResponse(.ok)) }])
        await stage.step { $0.server.counters = ExchangeCounters() }
        await stage.begin()
        await stage.step { stage in
            let former = stage.server.router.listenerPlan
            stage.server.update(
                name: "stage", settings: ServerSettings(), forward: ForwardRules(), trustedProxies: [],
                router: SinglePlan(
                    listenerPlan: ExchangePlan(chain: former.chain, service: former.service, route: former.route)))
        }
        await stage.begin()
        let all = await stage.step { $0.server.counters?.all.map(\.series.count) }
        #expect(all == [2])
    }

    @Test func `results of a cache are counted for each request, starting from zero for the next one`() async throws {
        let stage = try DriverStage([
            OnRequest { request, exchange in
                if request.method == .get { exchange.cacheResult = .hit }
                return .abort(with: HttpResponse(.ok))
            }
        ])
        await stage.step { $0.server.counters = ExchangeCounters() }
        await stage.begin()
        await stage.begin(.delete)
        await stage.begin()
        let series = try #require(await stage.step { $0.server.counters?.all.first.map(\.series) })
        #expect(series.count == 3)
        #expect(series.cacheResults == [2, 0, 0, 0, 0, 0])
        var sum = series
        sum.add(series)
        #expect(sum.cacheResults[Int(CacheResult.hit.rawValue)] == 4)
    }

    /// Asks for measures, as the `metrics` ware does.
    private struct Measured: Postware, ExchangeObserver, WareObserver {
        let measuring: ExchangeMeasuring
        func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer { .pass }
        func ended(_ exchange: Exchange) { exchange.measuring = measuring }
    }

    @Test func `methods, classes of statuses and wares are told apart where it is asked for`() async throws {
        let stage = try DriverStage(
            [
                OnRequest { request, _ in
                    request.method == .put ? .abort(with: HttpResponse(.notFound)) : .pass
                }
            ], after: [Measured(measuring: .wares)])
        await stage.step { $0.server.counters = ExchangeCounters() }
        for method in [HttpMethod.get, .put, HttpMethod("BREW") ?? .get, HttpMethod("MAKE") ?? .get] {
            await stage.begin(method)
            guard method != .put else { continue }
            await stage.advance(by: .milliseconds(40))
            await stage.step { $0.stream.respond(text: "") }
        }
        await stage.begin()
        await stage.step { $0.driver.clientLeft() }

        let series = try #require(await stage.step { $0.server.counters?.all.first.map(\.series) })
        let measures = try #require(series.measures)
        #expect(
            measures.kinds.map { "\($0.method) \($0.digit) \($0.durations.count)" }
                == ["_OTHER 2 2", "GET 0 1", "GET 2 1", "PUT 4 1"])
        #expect(measures.kinds[0].durations.counts[5] == 2)
        #expect(measures.kinds[0].durations.nanoseconds == 80_000_000)
        let ware = try #require(measures.wares.first { $0.label == "0" })
        #expect([ware[.passed], ware[.aborted], ware.durations.count] == [4, 1, 5])
        #expect(measures.wares.first { $0.label == "after 0" }?[.passed] == 4)

        var sum = series
        sum.add(series)
        #expect(sum.measures?.kinds.map(\.durations.count) == [4, 2, 2, 2])
        #expect(sum.measures?.wares.first { $0.label == "0" }?[.aborted] == 2)
        var none = ExchangeCounters.Series()
        none.add(series)
        #expect(none.measures?.kinds.count == 4)
    }

    @Test(arguments: [ExchangeMeasuring.nothing, .kind])
    func `counters that are not asked for stay at zero`(measuring: ExchangeMeasuring) async throws {
        let stage = try DriverStage(
            [OnRequest { _, _ in .abort(with: HttpResponse(.ok)) }], after: [Measured(measuring: measuring)])
        await stage.step { $0.server.counters = ExchangeCounters() }
        await stage.begin()
        let series = try #require(await stage.step { $0.server.counters?.all.first.map(\.series) })
        #expect((series.measures == nil) == (measuring == .nothing))
        #expect(series.measures?.wares.isEmpty != false)
        #expect(series.count == 1)
    }
}
