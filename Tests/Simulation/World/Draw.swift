import HttpWare

/// Numbers that follow from a seed and from what they are for, so that a step which a script loses changes no other number.
struct Draw {
    private var state: UInt64

    /// The numbers for this purpose: a kind, and which one of that kind.
    init(_ seed: UInt64, _ kind: StaticString, _ number: Int = 0) {
        var state = SplitMix64.spread(seed &+ SplitMix64.step)
        kind.withUTF8Buffer { for byte in $0 { state = SplitMix64.spread(state ^ UInt64(byte)) } }
        self.state = SplitMix64.spread(state &+ UInt64(bitPattern: Int64(number)) &* SplitMix64.step)
    }

    mutating func next() -> UInt64 {
        state &+= SplitMix64.step
        return SplitMix64.spread(state)
    }

    /// A number below `end`, which is positive.
    mutating func below(_ end: Int) -> Int { Int(next() % UInt64(end)) }

    mutating func from(_ range: ClosedRange<Int>) -> Int { range.lowerBound + below(range.count) }

    /// True once in `times`.
    mutating func once(in times: Int) -> Bool { below(times) == 0 }

    mutating func one<Value>(of values: [Value]) -> Value { values[below(values.count)] }
}
