/// A small generator whose numbers are the same in every run.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = (state ^ state >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        return mixed ^ mixed >> 31
    }

    /// 0 …< 1.
    mutating func unit() -> Double { Double(next() >> 11) / Double(1 << 53) }

    /// Whether an event with a chance of one in this number happens now.
    mutating func isOneIn(_ times: Int) -> Bool { Int.random(in: 0..<times, using: &self) == 0 }

    mutating func pick<Value>(_ values: [Value]) -> Value { values[Int.random(in: 0..<values.count, using: &self)] }
}
