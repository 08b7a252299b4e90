import HttpWare

/// Whether any request can reach a route, or those before it take all of what it matches.
///
/// All that a route asks for is positive, so only a few of the requests that it matches are examined: the requests that other
/// routes are the least likely to match. For a host, a method or a segment that is left open, such a request has a value that
/// no pattern names. For `/prefix/**`, its path ends there, or continues with an empty or an unnamed segment. If the earlier
/// routes take each of these requests, they take everything. So the answer is exact, but for regular expressions, of
/// which only equal ones are known to match the same; then, and when the work would be too much, a route counts as reached.
///
/// The earlier routes stand in tries of their paths, one for each exact host and one for all others.
struct RouteReach {
    /// The result for a route.
    enum Finding {
        case reached
        /// Earlier routes, in file order, match everything that it matches.
        case hidden(by: [RouteDefinition])
        /// No request that the listener accepts can match it.
        case matchesNothing
    }

    private let mode: ListenerDefinition.Mode
    private var routes: [RouteDefinition] = []
    private var tries: [[UInt8]: Node] = [:]
    /// Those without an exact host.
    private let others = Node()
    /// How many comparisons may still be made; after that all routes count as reached.
    private(set) var stepsLeft: Int

    /// The most steps for all listeners together.
    static let mostSteps = 1_000_000
    private static let mostChoices = 256

    init(mode: ListenerDefinition.Mode, steps: Int = RouteReach.mostSteps) {
        self.mode = mode
        stepsLeft = steps
    }

    /// Judges the next route, and counts it among the earlier ones from then on.
    mutating func addRoute(_ route: RouteDefinition) -> Finding {
        let finding = judge(route)
        insert(route)
        return finding
    }

    private mutating func judge(_ route: RouteDefinition) -> Finding {
        guard let probes = probes(of: route), stepsLeft > 0 else { return .reached }
        if probes.isEmpty { return .matchesNothing }
        var takers: Set<Int> = []
        for probe in probes where !isTaken(probe, route, among: nil, &takers) { return .reached }
        // One that takes everything says more than several that do so together.
        if takers.count > 1 {
            for taker in takers.sorted() {
                var alone: Set<Int> = []
                if probes.allSatisfy({ isTaken($0, route, among: taker, &alone) }) {
                    return .hidden(by: [routes[taker]])
                }
            }
        }
        return .hidden(by: takers.sorted().map { routes[$0] })
    }

    // MARK: Requests

    /// All of a request but its path.
    private struct Probe {
        enum Form { case path, asterisk, authority }

        var form = Form.path
        /// `nil`: one that no route names.
        var method: HttpMethod?
        /// `nil`: one that no route names, or none.
        var host: HostPattern?
        /// The bytes of that host.
        var hostBytes: [UInt8] = []
        var headers: [(name: FieldName, value: ValueMatch)] = []
        var query: [(name: String, value: ValueMatch)] = []
    }

    /// A byte that no pattern holds, as patterns are normalised.
    private static let unnamed: UInt8 = 0x01

    /// The requests to look at; `nil` where they would be too many.
    private func probes(of route: RouteDefinition) -> [Probe]? {
        let match = route.match
        var result: [Probe] = []
        for method in match.methods.isEmpty ? [nil] : match.methods.map(Optional.some) where method != .connect {
            result.append(Probe(method: method))
        }
        if match.paths.isEmpty, match.query.isEmpty {
            // `OPTIONS *` and CONNECT have no path.
            if match.methods.isEmpty || match.methods.contains(.options) {
                result.append(Probe(form: .asterisk, method: .options))
            }
            if mode == .forward, route.takesConnect, match.methods.isEmpty || match.methods.contains(.connect) {
                result.append(Probe(form: .authority, method: .connect))
            }
        }
        if !match.hosts.isEmpty {
            result = result.flatMap { probe in
                match.hosts.map { host in
                    var probe = probe
                    probe.host = host
                    probe.hostBytes = host.isWildcard ? [Self.unnamed] + host.name : host.name
                    return probe
                }
            }
        }
        for named in match.headers {
            guard let name = FieldName(named.name), result.count * named.values.count <= Self.mostChoices else {
                return nil
            }
            result = result.flatMap { probe in
                named.values.map { value in
                    var probe = probe
                    probe.headers.append((name, value))
                    return probe
                }
            }
        }
        for named in match.query {
            guard result.count * named.values.count <= Self.mostChoices else { return nil }
            result = result.flatMap { probe in
                named.values.map { value in
                    var probe = probe
                    probe.query.append((named.name, value))
                    return probe
                }
            }
        }
        return result.count <= Self.mostChoices ? result : nil
    }

    /// Whether an earlier route matches the request, its path aside.
    private mutating func takes(_ index: Int, _ probe: Probe) -> Bool {
        stepsLeft -= 1
        let route = routes[index]
        let match = route.match
        if !match.methods.isEmpty, !match.methods.contains(where: { $0 == probe.method }) { return false }
        switch probe.form {
        case .path: break
        case .asterisk: if !match.paths.isEmpty || !match.query.isEmpty { return false }
        case .authority: if !match.paths.isEmpty || !match.query.isEmpty || !route.takesConnect { return false }
        }
        if !match.hosts.isEmpty {
            guard let host = probe.host,
                match.hosts.contains(where: { $0.matches(probe.hostBytes.span, port: host.port) })
            else { return false }
        }
        return match.headers.allSatisfy { named in
            probe.headers.contains { $0.name == FieldName(named.name) && $0.value.isSurely(oneOf: named.values) }
        }
            && match.query.allSatisfy { named in
                probe.query.contains { $0.name == named.name && $0.value.isSurely(oneOf: named.values) }
            }
    }

    // MARK: Paths

    /// A place in a trie of path patterns.
    private final class Node {
        var texts: [[UInt8]: Node] = [:]
        /// Captures, and texts with a `*`.
        var open: [(segment: PathPattern.Segment, node: Node)] = []
        private var openPlaces: [PathPattern.Segment: Int] = [:]
        /// The routes with a pattern that ends here, and those with a pattern that continues with `**`.
        var ends: [Int] = []
        var prefixes: [Int] = []

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
        let index = routes.count
        routes.append(route)
        var roots: [Node] = []
        for host in route.match.hosts where !host.isWildcard {
            let node = tries[host.name] ?? Node()
            tries[host.name] = node
            if !roots.contains(where: { $0 === node }) { roots.append(node) }
        }
        if route.match.hosts.isEmpty || route.match.hosts.contains(where: \.isWildcard) { roots.append(others) }
        for root in roots {
            if route.match.paths.isEmpty { root.prefixes.append(index) }
            for path in route.match.paths {
                let node = path.segments.reduce(root) { $0.child($1) }
                if path.isPrefix { node.prefixes.append(index) } else { node.ends.append(index) }
            }
        }
    }

    /// Whether earlier routes, or that one, take the request, whatever path of the route's it has.
    private mutating func isTaken(
        _ probe: Probe, _ route: RouteDefinition, among only: Int?, _ takers: inout Set<Int>
    ) -> Bool {
        let exact = probe.host.flatMap { $0.isWildcard ? nil : tries[$0.name] }
        let roots = [others, exact].compactMap(\.self)
        if probe.form != .path {
            return findTaker(roots.flatMap(\.prefixes), probe, only, &takers)
        }
        if route.match.paths.isEmpty {
            return isTaken(roots, [], isPrefix: true, isRoot: true, probe, only, &takers)
        }
        return route.match.paths.allSatisfy { path in
            isTaken(roots, path.segments[...], isPrefix: path.isPrefix, isRoot: true, probe, only, &takers)
        }
    }

    private mutating func isTaken(
        _ start: [Node], _ segments: ArraySlice<PathPattern.Segment>, isPrefix: Bool, isRoot: Bool, _ probe: Probe,
        _ only: Int?, _ takers: inout Set<Int>
    ) -> Bool {
        var nodes = start
        for segment in segments {
            if findTaker(nodes.flatMap(\.prefixes), probe, only, &takers) { return true }
            nodes = children(of: nodes, Self.least(segment))
            if nodes.isEmpty { return false }
        }
        if findTaker(nodes.flatMap(\.prefixes), probe, only, &takers) { return true }
        // A path is never empty: behind the root at least one segment follows.
        let endsHere = !(isRoot && segments.isEmpty)
        if endsHere, !findTaker(nodes.flatMap(\.ends), probe, only, &takers) { return false }
        guard isPrefix else { return true }
        for further in [[], [Self.unnamed]] {
            let next = children(of: nodes, further)
            if next.isEmpty || !isTaken(next, [], isPrefix: true, isRoot: false, probe, only, &takers) { return false }
        }
        return true
    }

    /// The places behind these, by a segment; none where the work is too much.
    private mutating func children(of nodes: [Node], _ segment: [UInt8]) -> [Node] {
        stepsLeft -= nodes.reduce(1) { $0 + $1.open.count }
        return stepsLeft > 0 ? nodes.flatMap { $0.children(segment) } : []
    }

    /// Whether one of the routes takes the request; the first that does is remembered.
    private mutating func findTaker(_ indices: [Int], _ probe: Probe, _ only: Int?, _ takers: inout Set<Int>) -> Bool {
        for index in indices where only == nil || only == index {
            if stepsLeft > 0, takes(index, probe) {
                takers.insert(index)
                return true
            }
        }
        return false
    }

    /// Of the segments that this one matches, the segment that the fewest others match.
    private static func least(_ segment: PathPattern.Segment) -> [UInt8] {
        switch segment {
        case .text(let text): text
        case .glob(let glob): glob.map { $0 == UInt8(ascii: "*") ? unnamed : $0 }
        case .capture: [unnamed]
        }
    }
}

extension RouteDefinition {
    /// A named service takes a CONNECT only where `match.host` names the authority.
    var takesConnect: Bool { service?.isPassthrough != false || !match.hosts.isEmpty }
}

extension ValueMatch {
    /// Whether every value that this one matches is among the others.
    fileprivate func isSurely(oneOf others: [ValueMatch]) -> Bool {
        others.contains { other in
            if self == other { return true }
            guard case .pattern(let pattern) = other else { return false }
            if ["", "^", ".*", "^.*"].contains(pattern.source) { return true }
            guard case .exactly(let value) = self else { return false }
            return Array(value.utf8).withUnsafeBytes { (try? pattern.matches($0)) ?? false }
        }
    }
}
