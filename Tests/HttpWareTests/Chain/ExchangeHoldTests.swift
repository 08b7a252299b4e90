import HttpWareTesting
import Testing

@testable import HttpWare

/// Waits without a task.
@Suite struct ExchangeHoldTests {
    /// A hold that says what becomes of it.
    private final class Noted: ExchangeHold, @unchecked Sendable {
        let notes: Notes

        init(_ notes: Notes, in exchange: Exchange, for limit: Duration) {
            self.notes = notes
            super.init(in: exchange, for: limit)
        }

        override func timedOut() { notes.add("timed out") }
        override func givenUp() { notes.add("given up") }
    }

    private let notes = Notes()

    /// A chain whose first ware holds requests for a second, and hands the hold over.
    private func stage(
        _ verdict: @escaping @Sendable () throws -> Verdict = { .pass },
        take: @escaping @Sendable (ExchangeHold) -> Void
    )
        throws -> DriverStage
    {
        let notes = self.notes
        let holds = OnRequest { _, exchange in
            let hold = Noted(notes, in: exchange, for: .seconds(1))
            take(hold)
            return .wait(for: hold) { request, exchange in
                notes.add("decides \(request.path) \(exchange.loop.isCurrent)")
                return try verdict()
            }
        }
        return try DriverStage([holds, OnRequest.noting("behind", in: notes)])
    }

    @Test func `a request goes on when it is let go, from whatever thread`() async throws {
        let (holds, giver) = AsyncStream.makeStream(of: ExchangeHold.self)
        let stage = try stage { giver.yield($0) }
        await stage.begin(path: "/a")
        #expect(notes.all.isEmpty)
        var iterator = holds.makeAsyncIterator()
        let hold = try #require(await iterator.next())
        await Task.detached { hold.letGo() }.value
        await stage.step { _ in }
        #expect(notes.all == ["decides /a true", "behind request"])
        hold.letGo()
        await stage.advance(by: .seconds(2))
        #expect(notes.all.count == 2)
    }

    @Test func `a hold that is released before the driver holds it still goes on`() async throws {
        let stage = try stage { $0.letGo() }
        await stage.begin()
        #expect(notes.all == ["decides / true", "behind request"])
    }

    @Test func `its time is over at the limit`() async throws {
        let stage = try stage { _ in }
        await stage.begin()
        await stage.advance(by: .milliseconds(999))
        #expect(notes.all.isEmpty)
        await stage.advance(by: .milliseconds(1))
        #expect(notes.all == ["timed out", "decides / true", "behind request"])
    }

    @Test func `a client that leaves gives it up, and nothing is decided`() async throws {
        let stage = try stage { _ in }
        await stage.begin()
        await stage.step { $0.driver.clientLeft() }
        #expect(notes.all == ["given up"])
        await stage.advance(by: .seconds(2))
        #expect(notes.all == ["given up"])
        // The driver serves the next exchange.
        await stage.begin()
        await stage.advance(by: .seconds(1))
        #expect(notes.all == ["given up", "timed out", "decides / true", "behind request"])
    }

    @Test func `a ware that throws behind it fails the exchange`() async throws {
        struct Trouble: Error {}
        let stage = try stage({ throw Trouble() }) { $0.letGo() }
        await stage.begin()
        #expect(await stage.step { $0.client.status } == 500)
    }

    @Test func `the record says how long the request was held, or that it was given up`() async throws {
        let ring = RecordRing(mostRecords: 16, mostBytes: .mebibytes(1))
        let stage = try stage { _ in }
        await stage.step { $0.server.records = ring }
        await stage.begin()
        await stage.advance(by: .seconds(1))
        await stage.step { $0.stream.respond() }
        await stage.begin()
        await stage.advance(by: .milliseconds(300))
        await stage.step { $0.driver.clientLeft() }
        let texts = ring.recent(2).reversed().map { ExchangeReport($0).wares.first?.text }
        #expect(texts == ["held 1.0s", "gave up after 300ms"])
    }
}
