import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct LoopInstantTests {
    @Test func `instants and durations add and subtract`() {
        let instant = LoopInstant(nanoseconds: 1_500)
        #expect(instant + .microseconds(2) == LoopInstant(nanoseconds: 3_500))
        #expect(instant - .microseconds(2) == LoopInstant(nanoseconds: -500))
        #expect(instant - LoopInstant(nanoseconds: 500) == .microseconds(1))
        #expect(LoopInstant(nanoseconds: 1) < instant)
    }

    @Test func `arithmetic stops at the ends instead of trapping`() {
        #expect(LoopInstant(nanoseconds: 5) + .seconds(Int64.max) == .distantFuture)
        #expect(LoopInstant(nanoseconds: -5) - .seconds(Int64.max) == LoopInstant(nanoseconds: .min))
        #expect(LoopInstant(nanoseconds: 5) + .seconds(Int64.min) == LoopInstant(nanoseconds: .min + 5))
        #expect(LoopInstant.distantFuture.nanosecondsSince(LoopInstant(nanoseconds: -1)) == .max)
        #expect(LoopInstant(nanoseconds: -2).nanosecondsSince(.distantFuture) == .min)
    }

    @Test(arguments: [
        (Duration.seconds(1), Int64(1_000_000_000)), (.milliseconds(-3), -3_000_000), (.zero, 0),
        (.seconds(Int64.max), .max), (.seconds(Int64.min), .min), (.nanoseconds(Int64.max), .max),
        (.seconds(9_223_372_036) + .nanoseconds(854_775_808), .max),
    ])
    func `durations are counted in nanoseconds, cut to 64 bits`(duration: Duration, nanoseconds: Int64) {
        #expect(duration.nanoseconds == nanoseconds)
    }

    @Test func `the system's clocks go forward and agree with 2020 and later`() {
        let clock = SystemLoopClock()
        #expect(clock.now() <= clock.now())
        #expect(clock.wallNow().seconds > 1_577_836_800)
        #expect((0..<1_000_000_000).contains(clock.wallNow().nanoseconds))
    }

    @Test func `a manual clock moves both times, and the wall clock alone when set`() {
        let clock = ManualClock(wallTime: WallTime(seconds: 10, nanoseconds: 900_000_000))
        clock.advance(by: .milliseconds(200))
        #expect(clock.now() == LoopInstant(nanoseconds: 200_000_000))
        #expect(clock.wallNow() == WallTime(seconds: 11, nanoseconds: 100_000_000))
        clock.set(wallTime: WallTime(seconds: 5))
        #expect(clock.wallNow() == WallTime(seconds: 5))
        #expect(clock.now() == LoopInstant(nanoseconds: 200_000_000))
        #expect(clock.wallNow() + .milliseconds(-1) == WallTime(seconds: 4, nanoseconds: 999_000_000))
    }
}
