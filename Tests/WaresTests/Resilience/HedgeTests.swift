import HttpWareTesting
import Testing

@testable import HttpWare
@testable import Wares

@Suite(.timeLimit(.minutes(5))) struct HedgeTests {
    // MARK: Response times

    @Test(arguments: [(95, 1900...2200), (50, 1000...1150), (99, 1980...2280)])
    func `a percentile is at most an eighth above the time that the given share did not exceed`(
        percent: Int, range: ClosedRange<Int>
    ) {
        var times = ResponseTimes(percent: percent)
        for time in (1...1000).shuffled() { times.add(.milliseconds(2 * time)) }
        let late = times.late?.milliseconds ?? 0
        #expect(range.contains(late), "\(late)")
    }

    @Test func `no time is late until there were twenty responses`() {
        var times = ResponseTimes(percent: 95)
        for _ in 1..<ResponseTimes.least { times.add(.milliseconds(5)) }
        #expect(times.late == nil)
        times.add(.milliseconds(5))
        #expect((5...6).contains(times.late?.milliseconds ?? 0))
    }

    @Test func `older times are forgotten`() {
        var times = ResponseTimes(percent: 95)
        for _ in 0..<5000 { times.add(.seconds(1)) }
        for _ in 0..<5000 { times.add(.milliseconds(10)) }
        #expect((10...12).contains(times.late?.milliseconds ?? 0))
    }

    @Test func `times of any length are counted`() {
        var times = ResponseTimes(percent: 95)
        for time in [Duration.zero, .nanoseconds(-5), .seconds(1 << 40), .nanoseconds(Int64.max), .microseconds(7)] {
            for _ in 0..<20 { times.add(time) }
        }
        #expect(times.late.map { $0 > .seconds(100) } == true)
    }

    // MARK: Budget

    @Test func `one of a few requests is hedged, and of many a share`() {
        let budget = HedgeBudget()
        let requests = SecondCounts()
        let now = LoopInstant(nanoseconds: 50_000_000_000)
        requests.add(all: true, marked: false, at: now)
        #expect(budget.take(0.05, of: requests, at: now))
        #expect(!budget.take(0.05, of: requests, at: now))
        for _ in 1..<100 { requests.add(all: true, marked: false, at: now) }
        var taken = 1
        while budget.take(0.05, of: requests, at: now) { taken += 1 }
        #expect(taken == 5)
        #expect(!HedgeBudget().take(0.0, of: requests, at: now))
        #expect(budget.take(0.05, of: requests, at: now + .seconds(20)))
    }

    // MARK: The ware

    private func hedging(_ hedge: Hedge, _ method: HttpMethod, upgrade: String? = nil) throws -> Hedging? {
        let exchange = Exchange(loop: try EventLoop(name: "hedge"))
        var request = HttpRequest.make(method, "/")
        request.upgrade = upgrade
        _ = hedge.handle(&request, in: exchange)
        return exchange.hedging
    }

    @Test func `only listed methods are hedged, and no upgrade`() throws {
        let hedge = Hedge(after: .fixed(.milliseconds(5)), methods: [.get], max: 2)
        #expect(try hedging(hedge, .get)?.after == .milliseconds(5))
        #expect(try hedging(hedge, .get)?.most == 2)
        #expect(try hedging(hedge, .head) == nil)
        #expect(try hedging(hedge, .post) == nil)
        #expect(try hedging(hedge, .get, upgrade: "websocket") == nil)
    }

    @Test func `p95 is measured by the responses that pass the ware`() async throws {
        let hedge = Hedge()
        let exchange = try TestExchange([hedge, After()])
        for _ in 0..<ResponseTimes.least { #expect(try await exchange.send(.get("/")).status == .ok) }
        #expect(exchange.upstream.requests.last?.fields["X-After"] == "none")
        #expect(try await exchange.send(.get("/")).status == .ok)
        #expect(exchange.upstream.requests.last?.fields["X-After"] == "some")
        // Neither what others answer nor what fails is a time of the service.
        let failing = Hedge()
        let broken = try TestExchange([failing, After()])
        broken.upstream.always(respondWith: HttpResponse(.serviceUnavailable))
        for _ in 0...ResponseTimes.least { _ = try await broken.send(.get("/")) }
        #expect(broken.upstream.requests.last?.fields["X-After"] == "none")
    }

    /// Shows the origin server whether a time is known.
    private struct After: Middleware {
        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
            try? request.fields.set("X-After", to: exchange.hedging?.after == nil ? "none" : "some")
            return .pass
        }
    }

    // MARK: Options

    @Test(arguments: ["p100", "p49", "p5", "p095", "95", "0ms", "61s", "p9x", "-1s", ""])
    func `after is a percentile from p50 to p99, or a duration up to a minute`(text: String) {
        #expect(throws: ConfigError.self) {
            try TestExchange.make(Hedge.self, ["after": ConfigNode(stringLiteral: text)])
        }
    }

    @Test(arguments: [
        ("p95", HedgeDelay.percentile(95)), ("p50", .percentile(50)), ("20ms", .fixed(.milliseconds(20))),
    ])
    func `after is read, and spelt as it was`(text: String, delay: HedgeDelay) throws {
        #expect(try TestExchange.make(Hedge.self, ["after": ConfigNode(stringLiteral: text)]).after == delay)
        #expect(delay.optionText == text)
    }

    @Test func `limits of the other options are checked`() throws {
        #expect(throws: ConfigError.self) { try TestExchange.make(Hedge.self, ["max": 0]) }
        #expect(throws: ConfigError.self) { try TestExchange.make(Hedge.self, ["max": 4]) }
        #expect(throws: ConfigError.self) { try TestExchange.make(Hedge.self, ["budget": "101%"]) }
        var reader = OptionsReader(["methods": ["GET", "POST"]], keyPath: "hedge")
        let hedge = Hedge(options: &reader)
        #expect(reader.finish().map(\.severity) == [.warning])
        #expect(hedge.methods == [.get, .post])
    }
}
