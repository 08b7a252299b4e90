import HttpCaching
import HttpWareTesting
import Testing
import Wares

@testable import HttpWare

@Suite struct OfflineTests {
    private let fresh = "Cache-Control: max-age=60"

    private func stage(_ offline: Offline = Offline()) throws -> CacheStage { try CacheStage(before: [offline]) }

    @Test func `an origin server that is gone lets stale responses do, RFC 9111 §4.2.4`() async throws {
        let stage = try stage()
        try stage.respond([fresh], "old")
        _ = try await stage.send()
        await stage.advance(70)
        stage.exchange.upstream.refuse()
        let second = try await stage.send()
        #expect(second.status == 200 && second.text == "old" && second.isHit)
        #expect(stage.exchange.outcomes.last?.responder == .cache)
    }

    @Test func `a response that is not stored is answered with abortStatus`() async throws {
        let stage = try stage(Offline(abortStatus: .serviceUnavailable))
        stage.exchange.upstream.refuse()
        #expect(try await stage.send().status == 503)
    }

    @Test(arguments: ["must-revalidate", "no-cache", "s-maxage=60"])
    func `no outage excuses what the response forbids, RFC 9111 §4.2.4`(directive: String) async throws {
        let stage = try stage()
        try stage.respond(["Cache-Control: max-age=60, \(directive)", "ETag: \"a\""])
        _ = try await stage.send()
        await stage.advance(70)
        stage.exchange.upstream.refuse()
        #expect(try await stage.send().status == 504)
    }

    @Test func `a response that is staler than maxStale is not used`() async throws {
        let stage = try stage(Offline(maxStale: .seconds(10)))
        try stage.respond([fresh])
        _ = try await stage.send()
        await stage.advance(71)
        stage.exchange.upstream.refuse()
        #expect(try await stage.send().status == 504)
    }

    @Test func `during an outage one request every probe tries, the others do not`() async throws {
        let stage = try stage(Offline(detect: [.timeout], probe: .seconds(5)))
        try stage.respond([fresh], "old")
        _ = try await stage.send()
        await stage.advance(70)
        stage.exchange.upstream.neverRespond()
        let first = try await stage.start()
        while stage.asked < 2 { await Task.yield() }
        await stage.advance(30)
        #expect(try await first.response().content.text == "old")
        for _ in 0..<3 { #expect(try await stage.send().text == "old") }
        #expect(stage.asked == 2)
        await stage.advance(5)
        try stage.respond([fresh], "new")
        #expect(try await stage.send().text == "new")
        try stage.respond([fresh], "newer")
        #expect(try await stage.send(.get, "/", ["Cache-Control: no-cache"]).text == "newer")
    }

    @Test func `always sends nothing upstream, whatever the method`() async throws {
        let stage = try stage(Offline(mode: .always))
        #expect(try await stage.send().status == 504)
        #expect(try await stage.send(.post).status == 504)
        #expect(stage.asked == 0)
    }

    @Test func `always sends nothing upstream without a cache behind it, either`() async throws {
        let exchange = try TestExchange([Offline(mode: .always)])
        #expect(try await exchange.send(.get("/")).status == .gatewayTimeout)
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test func `never changes nothing`() async throws {
        let stage = try stage(Offline(mode: .never))
        try stage.respond([fresh])
        _ = try await stage.send()
        await stage.advance(70)
        stage.exchange.upstream.refuse()
        #expect(try await stage.send().status == 502)
    }

    @Test func `the mode that is set while it runs counts, until it ends`() async throws {
        let offline = Offline()
        let stage = try stage(offline)
        try stage.respond([fresh], always: true)
        let now = stage.exchange.clock.wallNow()
        offline.state.set(.always, until: WallTime(seconds: now.seconds + 10))
        #expect(try await stage.send().status == 504)
        await stage.advance(10)
        #expect(try await stage.send().status == 200)
    }

    @Test func `a failure outside of detect stays as it is`() async throws {
        let stage = try stage(Offline(detect: [.dns]))
        stage.exchange.upstream.refuse()
        #expect(try await stage.send().status == 502)
    }

    @Test(
        arguments: [
            ["mode": "x"], ["detect": ["x"]], ["maxStale": "-1s"], ["abortStatus": 200], ["probe": "0s"],
        ] as [ConfigNode])
    func `a wrong option is refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(Offline.self, options) }
    }
}
