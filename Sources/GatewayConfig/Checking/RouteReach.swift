import HttpWare

/// Whether any request can reach a route, or those before it take all of what it matches.
///
/// Only a few of the requests that a route matches are examined: the requests that other routes are the least likely to match
/// (`RouteProbe`). For a host, a method or a segment that is left open, such a request has a value that no pattern names. For
/// `/prefix/**`, its path ends there, or continues with an empty or an unnamed segment. If the earlier routes take each of these
/// requests, they take everything, as long as what they ask is positive. So the answer is exact for such routes, but for regular
/// expressions of values, of which only equal ones are known to match the same; then, and when the work would be too much, a route
/// counts as reached.
///
/// An earlier route with `not`, `any` or a regular expression for the path may match a probe and yet not all that it stands for. A
/// probe that it does not match is reached all the same; where all are matched, the answer is not known.
///
/// The earlier routes stand in tries of their paths, one for each exact host and one for all others.
struct RouteReach {
    /// The result for a route.
    enum Finding {
        case reached
        /// Earlier routes, in file order, match everything that it matches.
        case hidden(by: [RouteDefinition])
        /// Earlier routes may match everything that it matches; these have conditions that cannot be compared with it.
        case undecided(by: [RouteDefinition])
        /// No request that the listener accepts can match it.
        case matchesNothing
    }

    private let mode: ListenerDefinition.Mode
    private var routes: [RouteDefinition] = []
    private var tries: [[UInt8]: Node] = [:]
    /// Those without an exact host.
    private let others = Node()
    /// Any route asks for a scheme.
    private var asksSchemes = false
    /// How many comparisons may still be made; after that all routes count as reached.
    private(set) var stepsLeft: Int

    /// The most steps for all listeners together.
    static let mostSteps = 1_000_000
    /// The most conditions of earlier routes that are looked at to find a request that is reached.
    private static let mostWitnesses = 32

    init(mode: ListenerDefinition.Mode, steps: Int = RouteReach.mostSteps) {
        self.mode = mode
        stepsLeft = steps
    }

    /// Judges the next route, and counts it among the earlier ones from then on.
    mutating func addRoute(_ route: RouteDefinition) -> Finding {
        if !asksSchemes { asksSchemes = route.match.asksScheme }
        let finding = judge(route)
        insert(route)
        return finding
    }

    private mutating func judge(_ route: RouteDefinition) -> Finding {
        guard stepsLeft > 0 else { return .reached }
        var probes: [RouteProbe] = []
        for match in route.match.variants {
            guard let some = self.probes(of: match, route) else { return .reached }
            probes += some
        }
        if probes.isEmpty { return .matchesNothing }
        var takers = Takers()
        var taking = Taking.yes
        for probe in probes {
            taking = min(taking, isTaken(probe, among: nil, &takers))
            if taking == .no { return .reached }
        }
        if taking == .perhaps {
            if hasWitness(route, takers) || stepsLeft <= 0 { return .reached }
            return .undecided(by: takers.doubtful.sorted().map { routes[$0] })
        }
        // One that takes everything says more than several that do so together.
        if takers.sure.count > 1 {
            for taker in takers.sure.sorted() {
                var alone = Takers()
                if probes.allSatisfy({ isTaken($0, among: taker, &alone) == .yes }) {
                    return .hidden(by: [routes[taker]])
                }
            }
        }
        return .hidden(by: takers.sure.sorted().map { routes[$0] })
    }

    private func probes(of match: RequestMatch, _ route: RouteDefinition) -> [RouteProbe]? {
        RouteProbe.all(of: match, takesConnect: route.takesConnect, mode: mode, schemes: asksSchemes)
    }

    /// Whether a request that is among those which a doubtful route leaves to others is taken by none.
    private mutating func hasWitness(_ route: RouteDefinition, _ takers: Takers) -> Bool {
        let left = takers.doubtful.sorted().flatMap { routes[$0].match.not }.prefix(Self.mostWitnesses)
        for member in left {
            for match in route.match.variants.flatMap({ $0.narrowed(by: member).variants }).prefix(Self.mostWitnesses) {
                for probe in probes(of: match, route) ?? [] {
                    var some = Takers()
                    if isTaken(probe, among: nil, &some) == .no { return true }
                }
            }
        }
        return false
    }

    // MARK: Taking

    /// Whether earlier routes match a request, and all that it stands for.
    private enum Taking: Int, Comparable {
        case no, perhaps, yes

        static func < (left: Taking, right: Taking) -> Bool { left.rawValue < right.rawValue }
    }

    /// The routes that took a request.
    private struct Takers {
        var sure: Set<Int> = []
        /// Routes that match the probe, but perhaps not all requests that it stands for.
        var doubtful: Set<Int> = []
    }

    /// A route at a place of a trie. One that stands there for its regular expressions has to match by one of these.
    private struct Place: Hashable {
        let route: Int
        let isByExpression: Bool
    }

    /// How an earlier route stands to the request; its patterns of paths have led there.
    private mutating func standing(_ place: Place, _ probe: RouteProbe, _ path: RouteProbe.Path?) -> Standing {
        let route = routes[place.route]
        let match = route.match
        stepsLeft -= 1 + match.memberCount
        if probe.form != .path, !match.paths.isEmpty || !match.pathExpressions.isEmpty { return .never }
        if probe.form == .authority, !route.takesConnect { return .never }
        var standing = probe.standing(match, at: path)
        if place.isByExpression, standing > .never {
            if path != nil { stepsLeft -= 10 * match.pathExpressions.count }
            standing = min(standing, probe.pathStanding([], match.pathExpressions, at: path))
        }
        return standing
    }

    // MARK: Paths

    /// A place in a trie of path patterns.
    private final class Node {
        var texts: [[UInt8]: Node] = [:]
        /// Captures, and texts with a `*`.
        var open: [(segment: PathPattern.Segment, node: Node)] = []
        private var openPlaces: [PathPattern.Segment: Int] = [:]
        /// The routes with a pattern that ends here, and those with a pattern that continues with `**`.
        var ends: [Place] = []
        var prefixes: [Place] = []

        func children(_ segment: [UInt8]) -> [Node] {
            let text = texts[segment].map { [$0] } ?? []
            return text + open.filter { $0.segment.matches(segment) }.map(\.node)
        }

        func child(_ segment: PathPattern.Segment) -> Node {
            if case .text(let text) = segment {
                let node = texts[text] ?? Node()
                texts[text] = node
                return node
            }
            if let place = openPlaces[segment] { return open[place].node }
            openPlaces[segment] = open.count
            open.append((segment, Node()))
            return open[open.count - 1].node
        }
    }

    private mutating func insert(_ route: RouteDefinition) {
        let place = Place(route: routes.count, isByExpression: false)
        routes.append(route)
        let match = route.match
        var roots: [Node] = []
        for host in match.hosts where !host.isWildcard {
            let node = tries[host.name] ?? Node()
            tries[host.name] = node
            if !roots.contains(where: { $0 === node }) { roots.append(node) }
        }
        if match.hosts.isEmpty || match.hosts.contains(where: \.isWildcard) { roots.append(others) }
        for root in roots {
            if !match.pathExpressions.isEmpty {
                root.prefixes.append(Place(route: place.route, isByExpression: true))
            } else if match.paths.isEmpty {
                root.prefixes.append(place)
            }
            for path in match.paths {
                let node = path.segments.reduce(root) { $0.child($1) }
                if path.isPrefix { node.prefixes.append(place) } else { node.ends.append(place) }
            }
        }
    }

    /// A walk through the tries: the places that one of a route's patterns leads to.
    private struct Walk {
        let probe: RouteProbe
        let pattern: PathPattern?
        /// Only this route counts; `nil`: all.
        let only: Int?
        var path: [UInt8] = []
        /// Only one path is possible.
        var isExact: Bool
        /// Places on the way whose routes may match, which is not known before the path is whole.
        var passed: [Place] = []
    }

    /// Whether earlier routes, or that one, take the request, whatever path of the route's it has.
    private mutating func isTaken(_ probe: RouteProbe, among only: Int?, _ takers: inout Takers) -> Taking {
        let exact = probe.host.flatMap { $0.isWildcard ? nil : tries[$0.name] }
        let roots = [others, exact].compactMap(\.self)
        var walk = Walk(probe: probe, pattern: nil, only: only, isExact: false)
        let isUnknown = !probe.match.pathExpressions.isEmpty
        if probe.form != .path || isUnknown {
            // Which paths an expression matches is not known: only what takes every path counts.
            let taking = take(roots.flatMap(\.prefixes), nil, &walk, &takers)
            return taking == .perhaps && isUnknown ? .no : taking
        }
        if probe.match.paths.isEmpty {
            return isTaken(roots, [], isPrefix: true, isRoot: true, walk, &takers)
        }
        var taking = Taking.yes
        for path in probe.match.paths where taking > .no {
            let isExact = !path.isPrefix && path.segments.allSatisfy { if case .text = $0 { true } else { false } }
            walk = Walk(probe: probe, pattern: path, only: only, isExact: isExact)
            taking = min(
                taking,
                isTaken(roots, path.segments[...], isPrefix: path.isPrefix, isRoot: true, walk, &takers))
        }
        return taking
    }

    private mutating func isTaken(
        _ start: [Node], _ segments: ArraySlice<PathPattern.Segment>, isPrefix: Bool, isRoot: Bool, _ walk: Walk,
        _ takers: inout Takers
    ) -> Taking {
        var walk = walk
        var nodes = start
        for segment in segments {
            if take(nodes.flatMap(\.prefixes), nil, &walk, &takers) == .yes { return .yes }
            let least = Self.least(segment)
            walk.path += [UInt8(ascii: "/")] + least
            nodes = children(of: nodes, least)
            if nodes.isEmpty, walk.passed.isEmpty { return .no }
        }
        if take(nodes.flatMap(\.prefixes), nil, &walk, &takers) == .yes { return .yes }
        // A path is never empty: behind the root at least one segment follows.
        var taking = Taking.yes
        if !(isRoot && segments.isEmpty) {
            let path = RouteProbe.Path(bytes: walk.path, isExact: walk.isExact, pattern: walk.pattern)
            var end = walk
            end.passed = []
            taking = take(nodes.flatMap(\.ends) + walk.passed, path, &end, &takers)
            if taking == .no { return .no }
        }
        // Behind the last node, one segment more says nothing new of the routes that were passed.
        guard isPrefix, !nodes.isEmpty else { return taking }
        for further in [[], [RouteProbe.unnamed]] {
            let next = children(of: nodes, further)
            if next.isEmpty, walk.passed.isEmpty { return .no }
            var longer = walk
            longer.path += [UInt8(ascii: "/")] + further
            taking = min(taking, isTaken(next, [], isPrefix: true, isRoot: false, longer, &takers))
            if taking == .no { return .no }
        }
        return taking
    }

    /// The places behind these, by a segment; none where the work is too much.
    private mutating func children(of nodes: [Node], _ segment: [UInt8]) -> [Node] {
        stepsLeft -= nodes.reduce(1) { $0 + $1.open.count }
        return stepsLeft > 0 ? nodes.flatMap { $0.children(segment) } : []
    }

    /// Whether one of the routes takes the request; the first that does is remembered. Without a path, those that depend on it are
    /// left for later.
    private mutating func take(
        _ places: [Place], _ path: RouteProbe.Path?, _ walk: inout Walk, _ takers: inout Takers
    ) -> Taking {
        var doubtful: Int?
        for place in places where walk.only == nil || walk.only == place.route {
            guard stepsLeft > 0 else { return .no }
            switch standing(place, walk.probe, path) {
            case .always:
                takers.sure.insert(place.route)
                return .yes
            case .here, .unknown:
                if path == nil, walk.probe.form == .path { walk.passed.append(place) }
                doubtful = doubtful ?? place.route
            case .notHere, .never: break
            }
        }
        guard let doubtful else { return .no }
        if path != nil || walk.probe.form != .path { takers.doubtful.insert(doubtful) }
        return .perhaps
    }

    /// Of the segments that this one matches, the segment that the fewest others match.
    private static func least(_ segment: PathPattern.Segment) -> [UInt8] {
        switch segment {
        case .text(let text): text
        case .glob(let glob): glob.map { $0 == UInt8(ascii: "*") ? RouteProbe.unnamed : $0 }
        case .capture: [RouteProbe.unnamed]
        }
    }
}

extension RouteDefinition {
    /// A named service takes a CONNECT only where `match.host` names the authority.
    public var takesConnect: Bool {
        shares.isEmpty && service?.isPassthrough != false || !match.hosts.isEmpty
    }
}
