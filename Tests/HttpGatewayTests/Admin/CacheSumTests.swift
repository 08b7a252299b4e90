import Testing

@testable import HttpGateway
@testable import HttpWare

@Suite struct CacheSumTests {
    private func numbers(_ counts: [CacheResult: Int], route: String = "r") -> LoopNumbers {
        var series = ExchangeCounters.Series()
        for (result, count) in counts { series.cacheResults[Int(result.rawValue)] = count }
        let listener = LoopNumbers.Listener(
            accepted: 0, series: [(key: ExchangeCounters.Key(route: route, service: "s"), series: series)])
        return LoopNumbers(listeners: ["web": listener], pools: [], connects: 0, failedConnects: 0)
    }

    @Test func `hits of several loops are summed, and their ratio is of what a cache can answer`() throws {
        let sums = CacheSum.byPlace([
            numbers([.hit: 5, .miss: 2]), numbers([.stale: 1, .collapsed: 2, .validated: 1, .miss: 1, .bypass: 7]),
        ])
        let (place, sum) = try #require(sums.first)
        #expect(sums.count == 1)
        #expect(place == CacheSum.Place(listener: "web", route: "r", service: "s"))
        #expect(sum.requests == 19)
        #expect(sum.hits == 8)
        #expect(sum.hitRatio == 8.0 / 12)
        #expect(sum[.validated] == 1)
    }

    @Test func `a route whose requests no cache saw is not listed, and without lookups there is no ratio`() {
        #expect(CacheSum.byPlace([numbers([:])]).isEmpty)
        #expect(CacheSum.byPlace([numbers([.bypass: 3])]).first?.sum.hitRatio == nil)
    }

    @Test func `routes come in order`() {
        let sums = CacheSum.byPlace([numbers([.hit: 1], route: "b"), numbers([.hit: 1], route: "a")])
        #expect(sums.map(\.place.route) == ["a", "b"])
    }
}
