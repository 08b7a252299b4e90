/// The number of requests that a connection of HTTP/2 carries before the origin server ends it, as far as that is known: learned from
/// a GOAWAY that refused requests above its last stream. New connections get no more requests than that, because an origin server with
/// a small limit would refuse most of the requests that share a connection, and refuse them again on the next one. RFC 9113 §6.8.
///
/// A GOAWAY can have other reasons. So the number doubles when a connection outlives it, and is forgotten after a minute.
struct RequestAllowance {
    /// How long the number is used, in nanoseconds.
    static let lifetime: Int64 = 60_000_000_000
    /// From this number on there is no limit: it costs little if the last ones of 65,536 requests are refused.
    static let mostKnown = 1 << 16

    private var number = Int.max
    private var lapses = Int64.min

    /// The number of requests for one connection, at a time in nanoseconds.
    @inline(__always)
    func most(at now: Int64) -> Int { now < lapses ? number : .max }

    /// The origin server ended a connection: it has served `served` requests of it, and refused `refused` others.
    mutating func ended(after served: Int, refusing refused: Int, at now: Int64) {
        guard served > 0, refused > 0 else { return }
        set(served, at: now)
    }

    /// A connection has carried as many requests as it was allowed, and goes on.
    mutating func outlived(at now: Int64) {
        let most = most(at: now)
        if most < .max { set(most * 2, at: now) }
    }

    private mutating func set(_ number: Int, at now: Int64) {
        self.number = number < RequestAllowance.mostKnown ? number : .max
        lapses = now &+ RequestAllowance.lifetime
    }
}
