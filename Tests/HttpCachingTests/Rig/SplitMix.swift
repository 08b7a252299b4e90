import HttpWare

/// A small generator whose numbers are the same in every run.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= SplitMix64.step
        return SplitMix64.spread(state)
    }

    /// 0 …< 1.
    mutating func unit() -> Double { Double(next() >> 11) / Double(1 << 53) }

    /// Whether an event with a chance of one in this number happens now.
    mutating func isOneIn(_ times: Int) -> Bool { Int.random(in: 0..<times, using: &self) == 0 }

    mutating func pick<Value>(_ values: [Value]) -> Value { values[Int.random(in: 0..<values.count, using: &self)] }
}
