import Glibc
import Synchronization

/// The endpoints of a service that currently take requests, with their weights. Immutable: each change makes another table.
final class EndpointTable: Sendable {
    /// The entry of an endpoint.
    struct Place: Sendable {
        let member: EndpointMember
        /// The share relative to the sum of all; at least 1.
        let weight: Int
        /// Whether it takes requests.
        let isOpen: Bool
        /// Whether it takes requests only while no other does.
        var isBackup = false
        /// The start of its warm-up, in nanoseconds of the loops' clock; `nil` if it is warm.
        let warmsSince: Int64?
    }

    /// All entries.
    let places: [Place]
    /// The entries that take requests: the primaries, or the backups if no primary is available. If none is available, all except the
    /// backups, because one of them might still answer.
    let open: [Place]
    /// The indices in `open` for one round, each as often as its weight.
    let turns: [UInt16]
    /// Whether no endpoint is available: then those in `open` get requests nevertheless.
    let isForlorn: Bool
    /// The end of the earliest ejection, in nanoseconds of the loops' clock; `Int64.max` without one.
    let nextReturn: Int64
    /// The time until which an endpoint gets less than its share.
    let warmUntil: Int64
    private let slowStart: Int64
    private let isEven: Bool
    private let boundsLoad: Bool

    init(_ places: [Place], slowStart: Int64, nextReturn: Int64, boundsLoad: Bool = true) {
        self.places = places
        self.boundsLoad = boundsLoad
        let able = places.filter(\.isOpen)
        let others = able.filter { !$0.isBackup }
        isForlorn = able.isEmpty
        let open = others.isEmpty ? able : others
        let usual = places.filter { !$0.isBackup }
        self.open = open.isEmpty ? (usual.isEmpty ? places : usual) : open
        turns = EndpointTable.spread(self.open.map(\.weight))
        self.nextReturn = nextReturn
        self.slowStart = slowStart
        warmUntil = self.open.compactMap { $0.warmsSince.map { $0 &+ slowStart } }.max() ?? .min
        isEven = Set(self.open.map(\.weight)).count <= 1
    }

    // MARK: Choosing

    /// Chooses an entry in `open` for a request, except the tried ones; `nil` if all were tried. Allocates nothing.
    ///
    /// `turn` is the number of the request, `random` a random number, `key` the hash of its key.
    func choose(
        _ rule: Balancing.Rule, turn: Int, random: UInt64, key: UInt64, excluding tried: [EndpointMember], at now: Int64
    ) -> Int? {
        if open.count <= 1 { return open.isEmpty || isTried(0, tried) ? nil : 0 }
        switch rule {
        case .roundRobin: return byTurns(turn, tried, now)
        case .leastRequests: return least(from: turn, tried, now)
        case .random2: return ofTwo(random, turn, tried, now)
        case .hash: return byKey(key, tried, now)
        }
    }

    private func isTried(_ index: Int, _ tried: [EndpointMember]) -> Bool {
        guard !tried.isEmpty else { return false }
        return tried.contains { $0 === open[index].member }
    }

    private func byTurns(_ turn: Int, _ tried: [EndpointMember], _ now: Int64) -> Int? {
        let count = turns.count
        let start = Int(UInt(bitPattern: turn) % UInt(count))
        if now >= warmUntil, tried.isEmpty { return Int(turns[start]) }
        var last: Int?
        for step in 0..<count {
            let index = Int(turns[(start + step) % count])
            if isTried(index, tried) { continue }
            if takesTurn(index, now) { return index }
            last = last ?? index
        }
        return last
    }

    /// Whether a warming endpoint takes the turn offered to it: it takes as many as its current part.
    private func takesTurn(_ index: Int, _ now: Int64) -> Bool {
        let part = warmth(index, now)
        guard part < EndpointTable.warm else { return true }
        let offer = open[index].member.offers.wrappingAdd(1, ordering: .relaxed).oldValue & 0xffff_ffff
        return (offer + 1) * part / EndpointTable.warm > offer * part / EndpointTable.warm
    }

    /// The endpoint with the lowest relative load including this request. Equal ones, or all if idle, are chosen in proportion to their
    /// shares.
    private func least(from turn: Int, _ tried: [EndpointMember], _ now: Int64) -> Int? {
        var best: Int?
        var shares = 0
        var equal = 0
        let own = open.indices.contains { !isTried($0, tried) && open[$0].member.load > 0 } ? 1 : 0
        for index in open.indices where !isTried(index, tried) {
            if let other = best, !hasLess(index, other, own, now) {
                guard !hasLess(other, index, own, now) else { continue }
                shares += share(index, now)
                equal += 1
            } else {
                (best, shares, equal) = (index, share(index, now), 1)
            }
        }
        guard let best, equal > 1 else { return best }
        // Multiples of the golden ratio are evenly distributed, whatever their number.
        var left = point(UInt64(bitPattern: Int64(turn)) &* 0x9e37_79b9_7f4a_7c15, of: shares)
        for index in best..<open.count where !isTried(index, tried) && !hasLess(best, index, own, now) {
            left -= share(index, now)
            if left < 0 { return index }
        }
        // Another loop changed the loads meanwhile.
        return best
    }

    /// Whether the first has fewer requests relative to its share, after `own` is added to each. `own` is 1 for the current request,
    /// or 0 if all are idle, because the greatest weight would otherwise always win.
    private func hasLess(_ left: Int, _ right: Int, _ own: Int, _ now: Int64) -> Bool {
        (open[left].member.load &+ own) &* share(right, now) < (open[right].member.load &+ own) &* share(left, now)
    }

    /// The one of two drawn endpoints with the lower relative load including this request; the first if both are idle or equal.
    private func lesser(_ first: Int, _ second: Int, _ now: Int64) -> Int {
        let own = open[first].member.load > 0 || open[second].member.load > 0 ? 1 : 0
        return hasLess(second, first, own, now) ? second : first
    }

    private func ofTwo(_ random: UInt64, _ turn: Int, _ tried: [EndpointMember], _ now: Int64) -> Int? {
        guard tried.isEmpty else { return least(from: turn, tried, now) }
        let shares = now < warmUntil ? open.indices.reduce(0) { $0 + share($1, now) } : 0
        let first = drawn(random, shares, now)
        var draw = random
        for _ in 0..<4 {
            draw = SplitMix64.spread(draw)
            let second = drawn(draw, shares, now)
            if second != first { return lesser(first, second, now) }
        }
        // One weight is far greater than all others.
        let second = first + 1 < open.count ? first + 1 : 0
        return lesser(first, second, now)
    }

    /// Draws an endpoint by weight. While one warms up, draws by share, and `shares` is their sum; otherwise `shares` is 0.
    private func drawn(_ random: UInt64, _ shares: Int, _ now: Int64) -> Int {
        guard shares > 0 else { return Int(turns[Int(random % UInt64(turns.count))]) }
        var left = point(random, of: shares)
        for index in open.indices {
            left -= share(index, now)
            if left < 0 { return index }
        }
        return open.count - 1
    }

    /// Scales a 64-bit number to a number below the sum.
    private func point(_ number: UInt64, of sum: Int) -> Int {
        Int(truncatingIfNeeded: number.multipliedFullWidth(by: UInt64(sum)).high)
    }

    /// The endpoint that the key ranks highest, among those whose load is within the bound if there is one. Rendezvous hashing: when an endpoint is
    /// removed, the ranks of the others do not change, so only its keys move.
    private func byKey(_ key: UInt64, _ tried: [EndpointMember], _ now: Int64) -> Int? {
        var load = 1
        var shares = 0
        for index in open.indices {
            load += open[index].member.load
            shares += share(index, now)
        }
        let isEven = isEven && now >= warmUntil
        var best: (index: Int, rank: Double)?
        var fallback: (index: Int, rank: Double)?
        for index in open.indices where !isTried(index, tried) {
            let number = SplitMix64.spread(key ^ open[index].member.identity) >> 11
            let draw = (Double(number) + 0.5) / 9_007_199_254_740_992
            // With weights w, the largest w / -ln(draw) wins in proportion to w.
            let rank = isEven ? draw : Double(share(index, now)) / -log(draw)
            if rank > fallback?.rank ?? -1 { fallback = (index, rank) }
            if rank > best?.rank ?? -1, !boundsLoad || isWithinBound(index, load, shares, now) { best = (index, rank) }
        }
        return best?.index ?? fallback?.index
    }

    /// Whether one more request keeps the load within five quarters of the endpoint's share, rounded up.
    private func isWithinBound(_ index: Int, _ load: Int, _ shares: Int, _ now: Int64) -> Bool {
        let bound = Double(Balancing.boundNumerator * load) * Double(share(index, now))
        let most = (bound / (Double(Balancing.boundDenominator) * Double(shares))).rounded(.up)
        return Double(open[index].member.load + 1) <= most
    }

    // MARK: Shares

    /// The final value of `warmth`.
    static let warm = 1024
    /// The initial value: a tenth.
    private static let cold = 103

    /// The part of its weight that counts, out of 1,024.
    @inline(__always)
    private func warmth(_ index: Int, _ now: Int64) -> Int {
        guard now < warmUntil, let since = open[index].warmsSince, slowStart > 0 else { return EndpointTable.warm }
        let passed = now &- since
        guard passed < slowStart else { return EndpointTable.warm }
        return max(EndpointTable.cold, Int(Double(max(0, passed)) / Double(slowStart) * Double(EndpointTable.warm)))
    }

    @inline(__always)
    private func share(_ index: Int, _ now: Int64) -> Int { open[index].weight &* warmth(index, now) }

    /// The weights divided by their common divisor, with a sum of at most about 1,000.
    static func reduce(_ weights: [Int]) -> [Int] {
        let divisor = max(1, commonDivisor(weights))
        let reduced = weights.map { $0 / divisor }
        let sum = reduced.reduce(0, +)
        guard sum > 1000 else { return reduced }
        let smaller = reduced.map { max(1, $0 * 1000 / sum) }
        let rest = max(1, commonDivisor(smaller))
        return smaller.map { $0 / rest }
    }

    private static func commonDivisor(_ numbers: [Int]) -> Int {
        numbers.reduce(0) { a, b in
            var (a, b) = (a, b)
            while b != 0 { (a, b) = (b, a % b) }
            return a
        }
    }

    /// One round in which each index occurs as often as its weight, spread evenly: the one that is furthest behind its share
    /// comes next.
    static func spread(_ weights: [Int]) -> [UInt16] {
        guard weights.count > 1 else { return weights.isEmpty ? [] : [0] }
        let shares = reduce(weights)
        let total = shares.reduce(0, +)
        var credits = [Int](repeating: 0, count: shares.count)
        return (0..<total).map { _ in
            for index in credits.indices { credits[index] += shares[index] }
            let best = credits.indices.max { credits[$0] < credits[$1] || credits[$0] == credits[$1] && $0 > $1 } ?? 0
            credits[best] -= total
            return UInt16(best)
        }
    }
}
