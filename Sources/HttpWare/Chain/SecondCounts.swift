public import Synchronization

/// Counts events in each of the last 512 seconds, and separately the marked ones. Safe to use from any thread, without a lock.
///
/// Each second is one 64-bit value: 24 bits for its round of 512 seconds, then 20 bits for each of the two counts. Counts stop
/// at about a million.
public final class SecondCounts: Sendable {
    /// A sum over some seconds.
    public struct Sum: Equatable, Sendable {
        public var all = 0
        public var marked = 0

        public init(all: Int = 0, marked: Int = 0) {
            self.all = all
            self.marked = marked
        }
    }

    /// The longest span that `sum` covers, in seconds.
    public static let most = 512

    @usableFromInline let cells: InlineArray<512, Atomic<UInt64>> = InlineArray { _ in Atomic(0) }

    @usableFromInline static let largest: UInt64 = 1 << 20 - 1
    @usableFromInline static let roundMask: UInt64 = 1 << 24 - 1

    public init() {}

    /// Adds one event in the current second: to all, to the marked ones, or to both.
    @inlinable
    public func add(all: Bool, marked: Bool, at now: LoopInstant) {
        let second = SecondCounts.second(now)
        let round = second >> 9 & SecondCounts.roundMask
        let place = Int(second & 511)
        let increment: UInt64 = (marked ? 1 << 20 : 0) | (all ? 1 : 0)
        var old = cells[place].load(ordering: .relaxed)
        while true {
            let isPresent = old >> 40 == round
            let isFull =
                old & SecondCounts.largest == SecondCounts.largest
                || old >> 20 & SecondCounts.largest == SecondCounts.largest
            if isPresent, isFull { return }
            let new = isPresent ? old &+ increment : round << 40 | increment
            let (exchanged, original) = cells[place].weakCompareExchange(
                expected: old, desired: new, ordering: .relaxed)
            if exchanged { return }
            old = original
        }
    }

    /// The counts of the last `seconds` seconds, including the current one.
    public func sum(last seconds: Int, at now: LoopInstant) -> Sum {
        let present = SecondCounts.second(now)
        var sum = Sum()
        for back in 0..<UInt64(min(max(seconds, 1), SecondCounts.most)) where back <= present {
            let second = present - back
            let cell = cells[Int(second & 511)].load(ordering: .relaxed)
            guard cell >> 40 == second >> 9 & SecondCounts.roundMask else { continue }
            sum.all += Int(cell & SecondCounts.largest)
            sum.marked += Int(cell >> 20 & SecondCounts.largest)
        }
        return sum
    }

    /// Sets all counts to 0.
    public func clear() {
        for place in 0..<SecondCounts.most { cells[place].store(0, ordering: .relaxed) }
    }

    @inlinable
    static func second(_ now: LoopInstant) -> UInt64 { UInt64(max(0, now.nanoseconds)) / 1_000_000_000 }
}
