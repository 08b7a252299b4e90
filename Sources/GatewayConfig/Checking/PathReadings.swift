import HttpWare

/// Finds out, for each listener without `paths`, whether the path of a request decides which access wares and limits apply to it.
///
/// An origin server may read `//admin`, `/x%2F..` or `/admin;x` as a different path than the routes do. If access, or a limit, depends
/// on the path, such a request could bypass a ware. Therefore these listeners refuse such paths.
struct PathReadings {
    /// The number of pairs of routes that may still be compared. When it is used up, access counts as depending on the path.
    private var stepsLeft = 1_000_000

    /// Makes the listeners strict whose access or limits depend on the path.
    static func decide(_ listeners: inout [ListenerDefinition]) {
        var readings = PathReadings()
        for index in listeners.indices where listeners[index].paths == nil {
            guard let finding = readings.finding(listeners[index]) else { continue }
            listeners[index].refusesAmbiguousPaths = true
            listeners[index].ambiguityReason = finding
        }
    }

    // MARK: The ways of a request

    /// A route with one of its chains.
    private struct Way {
        let route: RouteDefinition
        /// The access wares and limits of its chain, in order.
        let guards: [ChainEntry]
        /// A number that is the same for all ways with the same guards.
        let kind: Int

        /// Whether a request that passes the chain reaches an origin server.
        var goesUpstream: Bool { route.service != nil || !route.shares.isEmpty }
    }

    /// The text that says what depends on the path, and why; `nil` if nothing does.
    private mutating func finding(_ listener: ListenerDefinition) -> String? {
        var known: [ObjectIdentifier: (guards: [ChainEntry], kind: Int)] = [:]
        var kinds: [[GuardKey]: Int] = [:]
        var ways: [Way] = []
        for (resolved, joined) in listener.routes.flatMap({ route in route.chains.map { (route, $0) } }) {
            let chain = ObjectIdentifier(joined)
            if known[chain] == nil {
                let guards = joined.entries.middlewares.filter { WareRegistry.mustRunForEveryForm($0) }
                let key = guards.map { GuardKey(location: $0.location, options: $0.options) }
                let kind = kinds[key] ?? kinds.count
                kinds[key] = kind
                known[chain] = (guards, kind)
            }
            if let (guards, kind) = known[chain] {
                ways.append(Way(route: resolved.route, guards: guards, kind: kind))
            }
        }
        guard ways.contains(where: { !$0.guards.isEmpty }) else { return nil }
        for way in ways where way.goesUpstream {
            for entry in way.guards where Self.isDecidedByPath(entry, in: way) {
                return "\(Self.subject(entry)): \(entry.label) at \(entry.location) has an if with a path"
            }
        }
        guard kinds.count > 1 else { return nil }
        var reach = RouteReach(mode: listener.mode)
        // The shares of a route follow one another, and are reached together.
        var hidden: Set<Int> = []
        var former: Int?
        for route in ways.map(\.route) where route.index != former {
            former = route.index
            switch reach.addRoute(route) {
            case .reached, .undecided: break
            case .hidden, .matchesNothing: hidden.insert(route.index)
            }
        }
        ways.removeAll { hidden.contains($0.route.index) }
        return difference(of: ways)
    }

    private static func subject(_ entry: ChainEntry) -> String {
        WareRegistry.restrictsAccess(entry) ? "access" : "limits"
    }

    /// Identifies a list of wares. An entry that a route changes by `with` has the same place, but other options.
    private struct GuardKey: Hashable {
        let location: SourceLocation
        let options: ConfigNode
    }

    /// Whether the condition of an entry is true for some paths of the way and false for others.
    private static func isDecidedByPath(_ entry: ChainEntry, in way: Way) -> Bool {
        guard let asked = entry.condition?.options.request, asked.asksPath else { return false }
        if !asked.asksPathInMembers, isCovered(way.route.match, by: asked) { return false }
        return !way.guards.contains { $0.condition == nil && isSame($0, entry) }
    }

    /// Looks for two routes that are told apart by the path, one of which lacks an access ware or a limit of the other.
    private mutating func difference(of ways: [Way]) -> String? {
        var missing: [Pair: ChainEntry?] = [:]
        var places = HostPlaces()
        for place in ways.indices {
            let hosts = ways[place].route.match.hosts
            for other in places.sharing(hosts)
            where ways[other].kind != ways[place].kind && ways[other].route.index != ways[place].route.index {
                stepsLeft -= 1
                guard stepsLeft > 0 else { return "access: it has too many routes to compare" }
                for (guarded, open) in [(other, place), (place, other)] where ways[open].goesUpstream {
                    let pair = Pair(guarded: ways[guarded].kind, open: ways[open].kind)
                    let entry = missing[pair] ?? Self.missing(in: ways[open], of: ways[guarded])
                    missing[pair] = .some(entry)
                    guard let entry, Self.doesPathTellApart(ways[other].route, ways[place].route) else { continue }
                    let (guarded, open) = (ways[guarded].route, ways[open].route)
                    return
                        "\(Self.subject(entry)): \(guarded.name) runs \(entry.label), at \(entry.location), and"
                        + " \(open.name) at \(open.location) does not"
                }
            }
            places.add(place, hosts)
        }
        return nil
    }

    /// The places of ways by the hosts of their routes, so that routes of different hosts, which no request can mix up, are not compared.
    private struct HostPlaces {
        private var exact: [[UInt8]: [Int]] = [:]
        /// The places of routes without a host, or with a wildcard.
        private var others: [Int] = []
        private var count = 0

        mutating func add(_ place: Int, _ hosts: [HostPattern]) {
            count = place + 1
            guard !hosts.isEmpty, !hosts.contains(where: \.isWildcard) else { return others.append(place) }
            for name in Set(hosts.map(\.name)) { exact[name, default: []].append(place) }
        }

        /// The places, in order, whose hosts may match one that these match.
        func sharing(_ hosts: [HostPattern]) -> [Int] {
            guard !hosts.isEmpty, !hosts.contains(where: \.isWildcard) else { return Array(0..<count) }
            let some = Set(hosts.map(\.name)).flatMap { exact[$0] ?? [] }
            return some.isEmpty ? others : Set(some + others).sorted()
        }
    }

    private struct Pair: Hashable {
        let guarded: Int
        let open: Int
    }

    /// The first such ware of one way that the other lacks.
    private static func missing(in open: Way, of guarded: Way) -> ChainEntry? {
        guarded.guards.first { entry in
            !open.guards.contains { other in
                isSame(entry, other) && (other.condition == nil || other.condition?.options == entry.condition?.options)
            }
        }
    }

    /// Whether the two wares refuse the same requests when they run.
    private static func isSame(_ one: ChainEntry, _ other: ChainEntry) -> Bool {
        one.ware.configuredName == other.ware.configuredName
            && one.options.bare(exactly: true) == other.options.bare(exactly: true)
    }

    // MARK: Requests that match

    /// Whether a request could take either route, depending only on its path.
    private static func doesPathTellApart(_ earlier: RouteDefinition, _ later: RouteDefinition) -> Bool {
        let (one, other) = (earlier.match, later.match)
        guard one.methods.isEmpty || other.methods.isEmpty || one.methods.contains(where: other.methods.contains),
            one.hosts.isEmpty || other.hosts.isEmpty
                || one.hosts.contains(where: { host in other.hosts.contains { isShared(host, $0) } })
        else { return false }
        // Otherwise the earlier route takes every path of the later one.
        return one.asksPathInMembers || !isCovered(other, by: one)
    }

    /// Whether a host can match both patterns.
    private static func isShared(_ one: HostPattern, _ other: HostPattern) -> Bool {
        guard one.port == nil || other.port == nil || one.port == other.port else { return false }
        switch (one.isWildcard, other.isWildcard) {
        case (false, false): return one.name == other.name
        case (true, false): return one.matches(other.name.span, port: one.port)
        case (false, true): return other.matches(one.name.span, port: other.port)
        case (true, true):
            let (short, long) = one.name.count < other.name.count ? (one, other) : (other, one)
            return long.name.suffix(short.name.count).elementsEqual(short.name)
        }
    }

    /// Whether `wide` surely matches every path that `narrow` matches, judging only by paths outside `not` and `any`.
    private static func isCovered(_ narrow: RequestMatch, by wide: RequestMatch) -> Bool {
        if wide.paths.isEmpty, wide.pathExpressions.isEmpty { return true }
        if narrow.paths.isEmpty, narrow.pathExpressions.isEmpty { return false }
        return narrow.paths.allSatisfy { pattern in wide.paths.contains { $0.covers(pattern) } }
            && narrow.pathExpressions.allSatisfy(wide.pathExpressions.contains)
    }
}

extension RequestMatch {
    /// Whether a member of `not` or `any` has a condition on the path.
    fileprivate var asksPathInMembers: Bool {
        not.contains(where: \.asksPath) || any.contains(where: \.asksPath)
    }
}
