/// How long things took: how many took at most so long, and all of them together.
public struct DurationCounts: Sendable {
    /// In nanoseconds, ascending.
    public let bounds: [Int64]
    /// Those that took at most as long as the bound in that place, and longer than the one before; the last is for all longer ones.
    public private(set) var counts: [Int]
    /// All durations together.
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

    /// How many there were.
    public var count: Int { counts.reduce(0, +) }

    /// Counts one; a duration below nothing is none.
    @inline(__always)
    mutating func add(_ duration: Int64) {
        let duration = max(0, duration)
        nanoseconds &+= duration
        var place = 0
        while place < bounds.count, duration > bounds[place] { place &+= 1 }
        counts[place] &+= 1
    }

    /// Adds what another loop counted, of the same bounds.
    mutating func add(_ other: DurationCounts) {
        nanoseconds &+= other.nanoseconds
        for place in counts.indices { counts[place] &+= other.counts[place] }
    }
}
