import HttpWare

/// Recent response times, in steps of an eighth of a power of two, and the time that most of them do not exceed.
///
/// It holds a few hundred counts and never grows. After 1,024 times all counts are halved, so that older times lose weight.
struct ResponseTimes {
    /// Counts by step: one step for each microsecond below 8 µs, then eight steps for each power of two.
    private var counts = [UInt16](repeating: 0, count: ResponseTimes.steps)
    private var total = 0
    private var added = 0
    private let percent: Int
    /// The time that this percentage of the responses did not exceed; `nil` until there are enough of them.
    private(set) var late: Duration?

    /// The longest time that is told apart, in microseconds: about two minutes. Longer ones count as this.
    private static let longest = UInt64(1) << 27 - 1
    private static let steps = 25 * 8 + 8
    private static let most = 1024
    /// The number of times from which on `late` is known.
    static let least = 20
    /// The number of times that are added before `late` is computed again.
    private static let pause = 16

    /// Computes the time that `percent` of 100 responses do not exceed.
    init(percent: Int) { self.percent = percent }

    /// Adds the time of a response.
    mutating func add(_ time: Duration) {
        counts[ResponseTimes.step(UInt64(max(0, time.nanoseconds)) / 1000)] += 1
        total += 1
        added += 1
        if total >= ResponseTimes.most { halve() }
        if total >= ResponseTimes.least, added >= ResponseTimes.pause || late == nil { look() }
    }

    private mutating func halve() {
        total = 0
        for step in counts.indices {
            counts[step] /= 2
            total += Int(counts[step])
        }
    }

    private mutating func look() {
        added = 0
        // Rounded up: the 19th of 20 times.
        var left = (total * percent + 99) / 100
        for step in counts.indices {
            left -= Int(counts[step])
            if left <= 0 { return late = .nanoseconds(Int64(ResponseTimes.end(of: step)) * 1000) }
        }
    }

    /// The step of a time in microseconds.
    private static func step(_ time: UInt64) -> Int {
        let time = min(time, longest)
        guard time >= 8 else { return Int(time) }
        let power = 63 - time.leadingZeroBitCount
        return (power - 2) * 8 + Int(time >> UInt64(power - 3) & 7)
    }

    /// The time in microseconds at which the next step begins.
    private static func end(of step: Int) -> UInt64 {
        let next = step + 1
        guard next >= 8 else { return UInt64(next) }
        return UInt64(8 + next % 8) << UInt64(next / 8 - 1)
    }
}
