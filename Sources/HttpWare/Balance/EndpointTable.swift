import Glibc
import Synchronization

/// Who of a service's endpoints take requests at the moment, and with what weight. Never changed: another moment has another table.
final class EndpointTable: Sendable {
    /// An endpoint's place in it.
    struct Place: Sendable {
        let member: EndpointMember
        /// Its share of the sum of all; at least 1.
        let weight: Int
        /// It takes requests.
        let isOpen: Bool
        /// It takes requests only while no other does.
        var isBackup = false
        /// Since when it gets less than its share, in nanoseconds of the loops' clock; `nil` once it is warm, or was from the beginning.
        let warmsSince: Int64?
    }

    /// All of them.
    let places: [Place]
    /// Those that take requests: the others, or the backups where none of these would; all but the backups where no one would, for one
    /// that answers is better than none.
    let open: [Place]
    /// Those by turns, one as often as it weighs.
    let turns: [UInt16]
    /// None takes requests: they go to all the same.
    let isForlorn: Bool
    /// When one comes back that is out for a time, in nanoseconds of the loops' clock; `Int64.max` where none is.
    let nextReturn: Int64
    /// Until when one of them gets less than its share.
    let warmUntil: Int64
    private let slowStart: Int64
    private let isEven: Bool

    init(_ places: [Place], slowStart: Int64, nextReturn: Int64) {
        self.places = places
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

    /// A place for a request, in `open`, that is none of those tried; `nil` where all were tried. Allocates nothing.
    ///
    /// `turn` is the number of the request, `random` any number, `key` the number of its key.
    func choose(
        _ rule: Balancing.Rule, turn: Int, random: UInt64, key: UInt64, excluding tried: [EndpointMember], at now: Int64
    ) -> Int? {
        if open.count == 1 { return isTried(0, tried) ? nil : 0 }
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

    /// Whether one that warms up takes the turn that came to it: as many of them as its part is.
    private func takesTurn(_ index: Int, _ now: Int64) -> Bool {
        let part = warmth(index, now)
        guard part < EndpointTable.warm else { return true }
        let offer = open[index].member.offers.wrappingAdd(1, ordering: .relaxed).oldValue & 0xffff_ffff
        return (offer + 1) * part / EndpointTable.warm > offer * part / EndpointTable.warm
    }

    /// One of those that are the least full with this request; of several, or if all are idle, each as often as its share is of theirs.
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
        // Multiples of the golden ratio lie evenly, however many of them are looked at.
        var left = point(UInt64(bitPattern: Int64(turn)) &* 0x9e37_79b9_7f4a_7c15, of: shares)
        for index in best..<open.count where !isTried(index, tried) && !hasLess(best, index, own, now) {
            left -= share(index, now)
            if left < 0 { return index }
        }
        // Another loop changed their loads meanwhile.
        return best
    }

    /// Whether the first has fewer requests for its share, each with `own` more: the request that looks for a place, unless it finds
    /// nobody else and whoever weighs most would have each.
    private func hasLess(_ left: Int, _ right: Int, _ own: Int, _ now: Int64) -> Bool {
        (open[left].member.load &+ own) &* share(right, now) < (open[right].member.load &+ own) &* share(left, now)
    }

    /// The one that is less full with this request, of two that were drawn by their shares; the first where both are idle, or as full.
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
            draw = StableHash.spread(draw)
            let second = drawn(draw, shares, now)
            if second != first { return lesser(first, second, now) }
        }
        // One weighs far more than all others.
        let second = first + 1 < open.count ? first + 1 : 0
        return lesser(first, second, now)
    }

    /// One of all by its weight, or by its share while one of them warms up: then `shares` is the sum of them.
    private func drawn(_ random: UInt64, _ shares: Int, _ now: Int64) -> Int {
        guard shares > 0 else { return Int(turns[Int(random % UInt64(turns.count))]) }
        var left = point(random, of: shares)
        for index in open.indices {
            left -= share(index, now)
            if left < 0 { return index }
        }
        return open.count - 1
    }

    /// A number below the sum, as far in it as the number is in all numbers of 64 bits.
    private func point(_ number: UInt64, of sum: Int) -> Int {
        Int(truncatingIfNeeded: number.multipliedFullWidth(by: UInt64(sum)).high)
    }

    /// The one that the key ranks highest of those whose load is within the bound. Rendezvous hashing: the ranks of the others do not
    /// change when one goes, so only its keys move.
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
            let number = StableHash.spread(key ^ open[index].member.identity) >> 11
            let draw = (Double(number) + 0.5) / 9_007_199_254_740_992
            // With weights w the largest w / -ln(draw) wins as often as w is of the sum.
            let rank = isEven ? draw : Double(share(index, now)) / -log(draw)
            if rank > fallback?.rank ?? -1 { fallback = (index, rank) }
            if rank > best?.rank ?? -1, isWithinBound(index, load, shares, now) { best = (index, rank) }
        }
        return best?.index ?? fallback?.index
    }

    /// Whether one more request is at most what five quarters of its share come to, rounded up.
    private func isWithinBound(_ index: Int, _ load: Int, _ shares: Int, _ now: Int64) -> Bool {
        let bound = Double(Balancing.boundNumerator * load) * Double(share(index, now))
        let most = (bound / (Double(Balancing.boundDenominator) * Double(shares))).rounded(.up)
        return Double(open[index].member.load + 1) <= most
    }

    // MARK: Shares

    /// What `warmth` is in the end.
    static let warm = 1024
    /// What it is in the beginning: a tenth.
    private static let cold = 103

    /// Which part of its weight counts, of 1,024.
    @inline(__always)
    private func warmth(_ index: Int, _ now: Int64) -> Int {
        guard now < warmUntil, let since = open[index].warmsSince, slowStart > 0 else { return EndpointTable.warm }
        let passed = now &- since
        guard passed < slowStart else { return EndpointTable.warm }
        return max(EndpointTable.cold, Int(Double(max(0, passed)) / Double(slowStart) * Double(EndpointTable.warm)))
    }

    @inline(__always)
    private func share(_ index: Int, _ now: Int64) -> Int { open[index].weight &* warmth(index, now) }

    /// Weights without what divides them all, their sum at most 1,000 or so.
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

    /// One round in which each comes as often as it weighs, spread evenly: the one that is furthest behind its share is
    /// next.
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
