/// A histogram of durations: how many were at most as long as each bound, and their sum.
public struct DurationCounts: Sendable {
    /// The upper bounds in nanoseconds, ascending.
    public let bounds: [Int64]
    /// The numbers of durations up to the bound with the same index and above the previous one; the last counts all longer ones.
    public private(set) var counts: [Int]
    /// The sum of all durations.
    public private(set) var nanoseconds: Int64 = 0

    /// For exchanges: from 1 ms to 30 s.
    public static let exchanges = DurationCounts(
        milliseconds: [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000])
    /// For wares: from 10 µs to 10 s.
    public static let wares = DurationCounts(milliseconds: [0.01, 0.1, 1, 10, 100, 1000, 10_000])

    private init(milliseconds: [Double]) {
        bounds = milliseconds.map { Int64($0 * 1_000_000) }
        counts = Array(repeating: 0, count: milliseconds.count + 1)
    }

    /// The number of durations.
    public var count: Int { counts.reduce(0, +) }

    /// Adds a duration; a negative one counts as 0.
    @inline(__always)
    mutating func add(_ duration: Int64) {
        let duration = max(0, duration)
        nanoseconds &+= duration
        var place = 0
        while place < bounds.count, duration > bounds[place] { place &+= 1 }
        counts[place] &+= 1
    }

    /// Adds the counts of another loop, which have the same bounds.
    mutating func add(_ other: DurationCounts) {
        nanoseconds &+= other.nanoseconds
        for place in counts.indices { counts[place] &+= other.counts[place] }
    }
}
