import HttpWare

/// Finds out whether any request can reach a route, or whether earlier routes match everything that it matches.
///
/// Only a few of the requests that a route matches are examined: the ones that other routes are least likely to match
/// (`RouteProbe`). If a host, a method or a segment is left open, such a request has a value that no pattern names. For
/// `/prefix/**`, its path ends there, or continues with an empty or an unnamed segment. If earlier routes match each of these
/// requests, they match all requests, provided that their conditions are positive. So the answer is exact for such routes, except
/// for regular expressions of values: only equal ones are known to match the same. In that case, and if there would be too much
/// work, a route counts as reached.
///
/// An earlier route with `not`, `any` or a regular expression for the path may match a probe, but not all requests that the probe
/// stands for. A probe that it does not match is still reached. If all probes are matched, the answer is unknown.
///
/// The earlier routes are in tries of their paths, one trie for each exact host and one for all others.
struct RouteReach {
    /// The result for a route.
    enum Finding {
        case reached
        /// Earlier routes, in file order, match everything that the route matches.
        case hidden(by: [RouteDefinition])
        /// Earlier routes may match everything that the route matches; the conditions of these routes cannot be compared with it.
        case undecided(by: [RouteDefinition])
        /// No request that the listener accepts can match the route.
        case matchesNothing
    }

    private let mode: ListenerDefinition.Mode
    private var routes: [RouteDefinition] = []
    private var tries: [[UInt8]: Node] = [:]
    /// The trie of the routes without an exact host.
    private let others = Node()
    /// Whether any route has a condition on the scheme.
    private var asksSchemes = false
    /// The number of comparisons that may still be made. When it is used up, all routes count as reached.
    private(set) var stepsLeft: Int

    /// The maximum number of comparisons for all listeners together.
    static let mostSteps = 1_000_000
    /// The maximum number of conditions of earlier routes that are examined to find a request that is reached.
    private static let mostWitnesses = 32

    init(mode: ListenerDefinition.Mode, steps: Int = RouteReach.mostSteps) {
        self.mode = mode
        stepsLeft = steps
    }

    /// Examines the next route, and adds it to the earlier ones.
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
        // A single route that matches everything says more than several that do so together.
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

    /// Whether one of the requests that a doubtful route leaves to others is matched by no route.
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

    /// Whether earlier routes match a probe, and all requests that it stands for.
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

    /// A route at a node of a trie. If it is there for its regular expressions, one of these must match.
    private struct Place: Hashable {
        let route: Int
        let isByExpression: Bool
    }

    /// The relation of an earlier route to the probe, when the route's path patterns have led to this place.
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

    /// A node in a trie of path patterns.
    private final class Node {
        var texts: [[UInt8]: Node] = [:]
        /// Captures, and segments with a `*`.
        var open: [(segment: PathPattern.Segment, node: Node)] = []
        private var openPlaces: [PathPattern.Segment: Int] = [:]
        /// The routes with a pattern that ends here, and the routes with a pattern that continues with `**`.
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

    /// A walk through the tries along one of a route's patterns.
    private struct Walk {
        let probe: RouteProbe
        let pattern: PathPattern?
        /// The only route that counts; `nil` for all routes.
        let only: Int?
        var path: [UInt8] = []
        /// Whether only one path is possible.
        var isExact: Bool
        /// Places on the way whose routes may match. Whether they do is known only when the path is complete.
        var passed: [Place] = []
    }

    /// Whether earlier routes, or only the given one, match the probe with every path of its route.
    private mutating func isTaken(_ probe: RouteProbe, among only: Int?, _ takers: inout Takers) -> Taking {
        let exact = probe.host.flatMap { $0.isWildcard ? nil : tries[$0.name] }
        let roots = [others, exact].compactMap(\.self)
        var walk = Walk(probe: probe, pattern: nil, only: only, isExact: false)
        let isUnknown = !probe.match.pathExpressions.isEmpty
        if probe.form != .path || isUnknown {
            // It is unknown which paths an expression matches, so only routes that match every path count.
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
        // A path is never empty: at least one segment follows the root.
        var taking = Taking.yes
        if !(isRoot && segments.isEmpty) {
            let path = RouteProbe.Path(bytes: walk.path, isExact: walk.isExact, pattern: walk.pattern)
            var end = walk
            end.passed = []
            taking = take(nodes.flatMap(\.ends) + walk.passed, path, &end, &takers)
            if taking == .no { return .no }
        }
        // After the last node, another segment changes nothing for the routes that were passed.
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

    /// The nodes that follow these by a segment; none if there is too much work.
    private mutating func children(of nodes: [Node], _ segment: [UInt8]) -> [Node] {
        stepsLeft -= nodes.reduce(1) { $0 + $1.open.count }
        return stepsLeft > 0 ? nodes.flatMap { $0.children(segment) } : []
    }

    /// Whether one of the routes matches the probe; the first that does is remembered. Without a path, routes that depend on it
    /// are left for later.
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

    /// The segment that this one matches and the fewest others do.
    private static func least(_ segment: PathPattern.Segment) -> [UInt8] {
        switch segment {
        case .text(let text): text
        case .glob(let glob): glob.map { $0 == UInt8(ascii: "*") ? RouteProbe.unnamed : $0 }
        case .capture: [RouteProbe.unnamed]
        }
    }
}

extension RouteDefinition {
    /// Whether the route can match CONNECT. A named service accepts it only if `match.host` names the authority.
    public var takesConnect: Bool {
        shares.isEmpty && service?.isPassthrough != false || !match.hosts.isEmpty
    }
}
