import HttpCaching
import HttpWare
import StoreRig
import Testing

@Suite struct MessageTimesTests {
    @Test(
        arguments: [
            ("Age: 5", 5), ("Age: 0", 0), ("Age: 5, 7", 5), ("Age: -5", 0), ("Age: 5.5", 0), ("Age: x", 0),
            ("Age: 99999999999999", 2_147_483_648), ("Age: \"5\"", 0), ("Age: 5|Age: 7", 5),
        ] as [(String, Int64)])
    func `Age is a number of seconds, the first counts, others are ignored, RFC 9111 §5.1`(lines: String, age: Int64) {
        let all = fields(lines.split(separator: "|").map(String.init))
        #expect(MessageTimes(all, requested: noon, received: noon).age == age)
    }

    @Test func `without a Date the time of receipt stands in, RFC 9110 §6.6.1`() {
        #expect(MessageTimes(fields([]), requested: noon, received: after(3)).date == after(3))
        #expect(MessageTimes(fields(["Date: today"]), requested: noon, received: after(3)).date == after(3))
    }

    /// RFC 9111 §4.2.3, word for word and in whole seconds.
    private func naiveAge(_ times: MessageTimes, now: WallTime) -> Int64 {
        let apparentAge = max(0, times.received.seconds - times.date.seconds)
        let responseDelay = times.received.seconds - times.requested.seconds
        let correctedAgeValue = times.age + responseDelay
        let correctedInitialAge = max(apparentAge, correctedAgeValue)
        let residentTime = now.seconds - times.received.seconds
        return correctedInitialAge + residentTime
    }

    @Test func `the current age is that of §4.2.3, for any times`() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<20_000 {
            let requested = after(.random(in: -100_000...100_000, using: &random))
            let received = WallTime(seconds: requested.seconds + .random(in: 0...1000, using: &random))
            let times = MessageTimes(
                requested: requested, received: received,
                date: WallTime(seconds: requested.seconds + .random(in: -100_000...1000, using: &random)),
                age: .random(in: 0...200_000, using: &random))
            let now = WallTime(seconds: received.seconds + .random(in: 0...1_000_000, using: &random))
            #expect(times.currentAge(at: now) == naiveAge(times, now: now) * 1_000_000_000)
        }
    }

    @Test func `a clock that went back makes no negative age`() {
        let times = MessageTimes(requested: noon, received: noon, date: after(50), age: 2)
        #expect(times.currentAge(at: after(-1000)) == 2_000_000_000)
    }

    @Test func `times at the ends of the clock overflow nothing`() {
        let ends = [Int64.min, -1, 0, .max].map { WallTime(seconds: $0) }
        for requested in ends {
            for received in ends {
                for date in ends {
                    let times = MessageTimes(
                        requested: requested, received: received, date: date, age: DeltaSeconds.most)
                    for now in ends { #expect(times.currentAge(at: now) >= 0) }
                }
            }
        }
    }
}
