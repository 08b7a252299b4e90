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
}
