import HttpWareTesting
import Testing

@testable import HttpWare

/// Where the time of each attempt goes, also where no response comes of it.
@Suite struct ExchangePhasesTests {
    private let ring = RecordRing(mostRecords: 16, mostBytes: .mebibytes(1))
    private let late = GatewayError(.upstream, .responseTimeout, "late")
    private let refused = GatewayError(.upstream, .connectionRefused, "refused", mayRetry: true)

    private func stage(_ middlewares: [any Ware] = [], _ postwares: [any Ware] = [], endpoints: Int = 1) async throws
        -> DriverStage
    {
        let stage = try DriverStage(.of(middlewares, postwares), endpoints: endpoints)
        let ring = self.ring
        await stage.step { $0.server.records = ring }
        await stage.advance(by: .seconds(1))  // 0 would say that it did not come to that
        return stage
    }

    private func last() throws -> ExchangeReport { ExchangeReport(try #require(ring.recent(1).first)) }

    /// Each phase with its attempt, its milliseconds and the fault that ended it.
    private func phases() throws -> [String] {
        try last().phases.map { phase in
            "\(phase.attempt) \(phase.phase) \(Int(phase.duration))" + (phase.fault.map { " \($0)" } ?? "")
        }
    }

    @Test func `waiting for a response that does not come is a phase, and the fault ends it`() async throws {
        let stage = try await stage()
        await stage.begin()
        await stage.advance(by: .milliseconds(300))
        await stage.step { [late] in $0.stream.fail(late) }
        #expect(try phases() == ["1 send 0", "1 firstByte 300 responseTimeout"])
    }

    @Test func `the work of wares after the fault does not count as waiting`() async throws {
        let slow = OnResponse { _, _ in
            .wait { _, exchange in
                try await exchange.sleep(for: .milliseconds(500))
                return .pass
            }
        }
        let stage = try await stage([], [slow])
        await stage.begin()
        await stage.advance(by: .milliseconds(300))
        await stage.step { [late] in $0.stream.fail(late) }
        await stage.advance(by: .milliseconds(500))
        #expect(try last().duration == 800)
        #expect(try phases() == ["1 send 0", "1 firstByte 300 responseTimeout"])
    }

    @Test func `a connection that does not come is a phase until the client leaves`() async throws {
        let stage = try await stage()
        await stage.step { $0.origin.isSlow = true }
        await stage.begin()
        await stage.advance(by: .milliseconds(200))
        await stage.step { $0.driver.clientLeft() }
        #expect(try phases() == ["1 connect 200 clientLeft"])
    }

    @Test func `waiting for a connection that another request uses is a phase`() async throws {
        let stage = try await stage()
        await stage.step { $0.origin.isSlow = true }
        await stage.begin()
        await stage.advance(by: .milliseconds(200))
        await stage.step { $0.origin.admit() }
        await stage.advance(by: .milliseconds(30))
        await stage.step { $0.stream.respond() }
        #expect(try phases() == ["1 queue 200", "1 send 0", "1 firstByte 30", "1 content 0"])
    }

    @Test func `a request that waits in vain for a connection says so`() async throws {
        let stage = try await stage()
        await stage.step { $0.origin.isSlow = true }
        await stage.begin()
        await stage.advance(by: .milliseconds(200))
        await stage.step { $0.origin.refuse(GatewayError(.upstream, .connectionLimitReached, "all are in use")) }
        #expect(try phases() == ["1 queue 200 connectionLimitReached"])
    }

    @Test func `content that the origin server does not take is being sent`() async throws {
        let stage = try await stage()
        await stage.begin(.post, extent: .length(10))
        await stage.upload("abc")
        await stage.advance(by: .milliseconds(200))
        await stage.step { [late] in $0.stream.fail(late) }
        #expect(try phases() == ["1 send 200 responseTimeout"])
    }

    @Test func `a response that is cut off has content until then`() async throws {
        let stage = try await stage()
        await stage.begin()
        await stage.step { $0.stream.respond(extent: .length(9)) }
        await stage.advance(by: .milliseconds(70))
        await stage.step { $0.stream.fail(GatewayError(.upstream, .responseIncomplete, "cut")) }
        #expect(try phases() == ["1 send 0", "1 firstByte 0", "1 content 70 responseIncomplete"])
        #expect(try last().end == "cutOff")
    }

    @Test func `each attempt has its phases, and the pause between two is one`() async throws {
        let stage = try await stage([OnBoth.replaying(.serviceUnavailable, after: .milliseconds(100))])
        await stage.begin()
        await stage.advance(by: .milliseconds(50))
        await stage.step { $0.stream.respond(.serviceUnavailable) }
        await stage.advance(by: .milliseconds(100))
        await stage.advance(by: .milliseconds(30))
        await stage.step { $0.stream.respond(text: "well") }
        #expect(
            try phases() == [
                "1 send 0", "1 firstByte 50", "2 backoff 100", "2 send 0", "2 firstByte 30", "2 content 0",
            ])
        let report = try last()
        #expect(
            report.phases.map(\.endpoint) == ["192.0.2.1:80", "192.0.2.1:80", nil]
                + Array(repeating: "192.0.2.1:80", count: 3))
        #expect(report.phases.reduce(0) { $0 + $1.duration } == report.duration)
    }

    @Test func `a pause that the client does not wait for is ended by that`() async throws {
        let stage = try await stage([OnBoth.replaying(.serviceUnavailable, after: .seconds(1))])
        await stage.begin()
        await stage.step { $0.stream.respond(.serviceUnavailable) }
        await stage.advance(by: .milliseconds(400))
        await stage.step { $0.driver.clientLeft() }
        #expect(try phases() == ["1 send 0", "1 firstByte 0", "2 backoff 400 clientLeft"])
    }

    @Test func `an endpoint that refuses is named before the one that answers`() async throws {
        let stage = try await stage(endpoints: 2)
        await stage.step { [refused] in $0.origin.failures = [refused] }
        await stage.begin()
        await stage.step { $0.stream.respond() }
        #expect(try phases().first == "1 connect 0 connectionRefused")
        let endpoints = try last().phases.map(\.endpoint)
        #expect(endpoints.count == 4 && Set(endpoints).count == 2 && endpoints[0] != endpoints[1])
    }

    @Test func `a connection that closes unanswered is an attempt of its own`() async throws {
        let stage = try await stage()
        await stage.begin()
        await stage.advance(by: .milliseconds(20))
        await stage.step { $0.stream.fail() }
        await stage.advance(by: .milliseconds(10))
        await stage.step { $0.stream.respond() }
        #expect(
            try phases() == [
                "1 send 0", "1 firstByte 20 connectionTerminated", "1 send 0", "1 firstByte 10", "1 content 0",
            ])
    }

    @Test func `content that waits for a ware begins behind it`() async throws {
        let slow = OnResponse { _, _ in
            .wait { _, exchange in
                try await exchange.sleep(for: .milliseconds(100))
                return .pass
            }
        }
        let stage = try await stage([], [slow])
        await stage.begin()
        await stage.step { $0.stream.respond(text: "well") }
        await stage.advance(by: .milliseconds(100))
        let content = try #require(try last().phases.last)
        #expect(content.phase == "content" && content.start == 100 && content.duration == 0)
    }

    @Test func `without observers the last attempt's phases are known`() async throws {
        let exchange = try TestExchange([OnBoth.replaying(.serviceUnavailable)])
        exchange.clock.advance(by: .seconds(1))
        exchange.upstream.respond(with: HttpResponse(.serviceUnavailable))
        exchange.upstream.respond(with: HttpResponse(.ok, content: .text("well")))
        _ = try await exchange.send(.get("/"))
        let phases = try #require(exchange.outcomes.first).record.phases
        #expect(phases.map(\.name).suffix(3) == ["send", "firstByte", "content"])
        #expect(phases.allSatisfy { $0.attempt == 2 })
    }

    @Test func `attempts without end are cut, and the record says so`() {
        var record = ExchangeRecord()
        record.trail.beginNotes(ChainLabels(middlewares: [], postwares: []))
        for number in 1...1000 {
            record.steps.connectAsked = Int64(number)
            record.keepAttempt(at: Int64(number) + 1, endpoint: "192.0.2.1:80")
        }
        #expect(record.phases.count == WareTrail.mostPhases)
        #expect(record.trail.isCut)
        record.reset()
        #expect(record.phases.isEmpty)
    }
}
