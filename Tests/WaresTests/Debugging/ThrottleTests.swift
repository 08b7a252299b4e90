import HttpWareTesting
import Testing

@testable import HttpWare
@testable import GatewayWares
@testable import Wares

@Suite(.timeLimit(.minutes(10))) struct ThrottleTests {
    /// Expects 20 KiB of content at 10 KiB a second.
    private func expectTwoSeconds(_ exchange: TestExchange) async throws {
        let pending = await exchange.start(.get("/"))
        var time = 0
        while exchange.outcomes.isEmpty, time < 10_000 {
            await exchange.advance(by: .milliseconds(50))
            time += 50
        }
        #expect(try await pending.response().content.bytes?.count == 20 << 10)
        #expect((1700...2400).contains(time), "\(time) ms")
    }

    @Test(arguments: [true, false])
    func `content goes to the client at the given speed`(isMade: Bool) async throws {
        let exchange = try TestExchange(
            [Throttle(down: ByteRate(.kibibytes(10)))]
                + (isMade ? [Mock(text: String(repeating: "x", count: 20 << 10))] : []))
        if !isMade { exchange.upstream.respond(with: HttpResponse(.ok, content: .bytes(count: 20 << 10))) }
        try await expectTwoSeconds(exchange)
    }

    @Test func `content goes upstream at the given speed`() async throws {
        let exchange = try TestExchange([Throttle(up: ByteRate(.kibibytes(10)))])
        let pending = await exchange.start(.post("/", content: .bytes(count: 20 << 10)))
        var time = 0
        while exchange.upstream.requests.isEmpty, time < 10_000 {
            await exchange.advance(by: .milliseconds(50))
            time += 50
        }
        _ = try await pending.response()
        #expect(exchange.upstream.requests.first?.content.bytes?.count == 20 << 10)
        #expect((1700...2400).contains(time), "\(time) ms")
    }

    @Test(arguments: [(10, 1000), (1000, 10)])
    func `of two speeds the lower one counts, whichever ware is first`(outer: Int, inner: Int) async throws {
        let exchange = try TestExchange([
            Throttle(down: ByteRate(.kibibytes(outer))), Throttle(down: ByteRate(.kibibytes(inner))),
        ])
        exchange.upstream.respond(with: HttpResponse(.ok, content: .bytes(count: 20 << 10)))
        try await expectTwoSeconds(exchange)
    }

    @Test func `a slow exchange reserves no more of a shared speed than it uses`() {
        let shared = RatePace(ByteRate(.bytes(1_000_000)))
        let slow = RatePace(ByteRate(.bytes(1000)))
        let now = LoopInstant(nanoseconds: 1_000_000_000)
        for paces in [[shared, slow], [slow, shared]] {
            let joint = JointPace.of(paces)
            #expect(joint?.reserve(100_000, at: now).count == 50)
        }
        // A tenth of a millisecond was reserved, so the next exchange need not wait.
        #expect(shared.reserve(100_000, at: now).wait == .zero)
    }

    @Test func `a request waits for the latency`() async throws {
        let exchange = try TestExchange([Throttle(latency: .milliseconds(300)), Mock()])
        let pending = await exchange.start(.get("/"))
        await exchange.advance(by: .milliseconds(299))
        #expect(exchange.outcomes.isEmpty)
        await exchange.advance(by: .milliseconds(1))
        #expect(try await pending.response().status == .ok)
    }

    @Test func `jitter makes requests wait more or less than the latency, and no more than it says`() async throws {
        let exchange = try TestExchange([Throttle(latency: .milliseconds(300), jitter: .milliseconds(100)), Mock()])
        for _ in 0..<40 { _ = await exchange.start(.get("/")) }
        await exchange.advance(by: .milliseconds(199))
        #expect(exchange.outcomes.isEmpty)
        await exchange.advance(by: .milliseconds(101))
        #expect((1..<40).contains(exchange.outcomes.count))
        await exchange.advance(by: .milliseconds(100))
        #expect(exchange.outcomes.count == 40)
    }

    @Test func `exchanges share a speed, first come, first served`() {
        let pace = RatePace(ByteRate(.bytes(1000)))
        let now = LoopInstant(nanoseconds: 1_000_000_000)
        let waits = (0..<4).map { _ in pace.reserve(1000, at: now) }
        #expect(waits.map(\.count) == [50, 50, 50, 50])
        #expect(waits.map(\.wait) == [.zero, .zero, .milliseconds(50), .milliseconds(100)])
    }

    @Test func `speeds that would overflow are bounded`() {
        let pace = RatePace(ByteRate(.bytes(1)))
        for now in [0, Int64.max / 2] {
            for count in [1, Int.max] { #expect(pace.reserve(count, at: LoopInstant(nanoseconds: now)).count == 1) }
        }
    }

    @Test func `options replace the values of a preset`() throws {
        let throttle = try TestExchange.make(Throttle.self, ["preset": "3g", "up": "1MiB/s"])
        #expect(throttle.down == ByteRate(.kibibytes(200)))
        #expect(throttle.up == ByteRate(.mebibytes(1)))
        #expect(throttle.latency == .milliseconds(300))
    }

    @Test(arguments: [[:], ["down": "0B/s"], ["down": "fast"], ["down": "10KiB/m"], ["preset": "5g"]] as [ConfigNode])
    func `options that are missing or invalid are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(Throttle.self, options) }
    }
}
