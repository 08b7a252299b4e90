import HttpWareTesting
import Synchronization
import Testing

@testable import HttpWare
@testable import Wares

@Suite struct TimeLogTests {
    private final class Lines: Sendable {
        let all = Mutex<[(level: WareLog.Level, text: String)]>([])
        let log = WareLog()

        init(from level: WareLog.Level) {
            log.use(level) { level, text in self.all.withLock { $0.append((level, text)) } }
        }
    }

    /// Sends `GET /p?secret=1` through a mock that takes this time.
    private func run(_ lines: Lines, slow: Duration, takes time: Duration, serverTiming: Bool = false) async throws
        -> HttpResponse
    {
        let mock = try TestExchange.make(
            Mock.self, ["delay": ConfigNode(.scalar("\(time.milliseconds)ms", isQuoted: true))])
        let exchange = try TestExchange([mock, TimeLog(slow: slow, serverTiming: serverTiming, log: lines.log)])
        let pending = await exchange.start(.get("/p?secret=1"))
        await exchange.advance(by: time)
        return try await pending.response()
    }

    @Test func `a request that takes longer than slow is a warning that says where the time went`() async throws {
        let lines = Lines(from: .warning)
        _ = try await run(lines, slow: .seconds(1), takes: .milliseconds(1500))
        let line = try #require(lines.all.withLock { $0.first })
        #expect(line.level == .warning)
        #expect(line.text.hasPrefix("GET \"/p\" took 1500.000 ms, more than 1s (status 200, Mock)"))
        #expect(line.text.contains("Mock 1500.000"))
        #expect(!line.text.contains("secret"))
    }

    @Test func `a faster request is a line of level debug`() async throws {
        let lines = Lines(from: .debug)
        _ = try await run(lines, slow: .seconds(1), takes: .milliseconds(1000))
        #expect(lines.all.withLock { $0.map(\.level) } == [.debug])
        let quiet = Lines(from: .info)
        _ = try await run(quiet, slow: .seconds(1), takes: .milliseconds(1000))
        #expect(quiet.all.withLock { $0.isEmpty })
    }

    @Test func `serverTiming tells the client of each ware and the total - W3C Server-Timing §2`() async throws {
        let response = try await run(
            Lines(from: .error), slow: .seconds(1), takes: .milliseconds(20), serverTiming: true)
        #expect(response.fields["Server-Timing"] == "Mock;dur=20.000, total;dur=20.000")
    }

    @Test func `a ware that was skipped is left out`() async throws {
        let lines = Lines(from: .debug)
        var options = ConditionOptions()
        options.request.methods = [.post]
        let exchange = try TestExchange(
            chain: WareChain(
                middlewares: [ChainEntry(Mock(.init()), condition: Condition(options))],
                postwares: [ChainEntry(TimeLog(slow: .seconds(1), serverTiming: true, log: lines.log))]))
        let response = try await exchange.send(.get("/"))
        #expect(response.fields["Server-Timing"]?.contains("Mock") == false)
        #expect(lines.all.withLock { $0.first }?.text.contains("Mock") == false)
    }

    @Test func `without it the client is told nothing`() async throws {
        let response = try await run(Lines(from: .error), slow: .seconds(1), takes: .milliseconds(20))
        #expect(!response.fields.contains("Server-Timing"))
    }

    @Test func `the phases upstream are told`() async throws {
        let lines = Lines(from: .debug)
        let exchange = try TestExchange([TimeLog(slow: .seconds(1), serverTiming: true, log: lines.log)])
        exchange.clock.advance(by: .seconds(1))  // a clock at 0 would look like phases that did not take place
        let response = try await exchange.send(.get("/"))
        let timing = try #require(response.fields["Server-Timing"])
        for phase in ["connect;dur=", "send;dur=", "firstByte;dur=", "total;dur="] { #expect(timing.contains(phase)) }
        let line = try #require(lines.all.withLock { $0.first }).text
        #expect(line.contains(", content 0.000"))
    }

    @Test(arguments: [["slow": "0ms"], ["slow": "1"], ["serverTiming": "yes"]] as [ConfigNode])
    func `options that cannot be meant are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(TimeLog.self, options) }
    }

    @Test func `the default is one second`() throws {
        #expect(try TestExchange.make(TimeLog.self).slow == .seconds(1))
    }
}
