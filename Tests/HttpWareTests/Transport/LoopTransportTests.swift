import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct LoopTransportTests {
    @Test func `the date is that of the present second`() throws {
        let clock = ManualClock(wallTime: WallTime(seconds: 1_767_225_600, nanoseconds: 600_000_000))
        let transport = LoopTransport(loop: try EventLoop(name: "date", clock: clock), resolver: nil)
        func date() -> String {
            transport.loop.tick()
            return String(decoding: transport.date, as: UTF8.self)
        }
        #expect(date() == "Thu, 01 Jan 2026 00:00:00 GMT")
        clock.advance(by: .milliseconds(399))
        #expect(date() == "Thu, 01 Jan 2026 00:00:00 GMT")
        clock.advance(by: .milliseconds(1))
        #expect(date() == "Thu, 01 Jan 2026 00:00:01 GMT")
        clock.advance(by: .seconds(90))
        #expect(date() == "Thu, 01 Jan 2026 00:01:31 GMT")
    }

    private final class Guest: LoopGuest {
        private let transport: LoopTransport
        private(set) var closes = 0
        /// The number of guests that the transport still had.
        private(set) var others = -1

        init(_ transport: LoopTransport) { self.transport = transport }

        func close() {
            closes += 1
            others = transport.guests.count
            // A guest may end what asks for guests again.
            transport.closeIdle()
        }
    }

    @Test func `each guest is closed once before the loop stops, and is not kept`() throws {
        let transport = LoopTransport(loop: try EventLoop(name: "guests"), resolver: nil)
        weak var former: Guest?
        do {
            let guests = [Guest(transport), Guest(transport)]
            former = guests[0]
            transport.guests = [1: guests[0], 7: guests[1]]
            transport.closeIdle()
            #expect(guests.map(\.closes) == [1, 1] && guests.map(\.others) == [0, 0])
            transport.closeIdle()
            #expect(guests.map(\.closes) == [1, 1])
        }
        #expect(former == nil)
    }
}
