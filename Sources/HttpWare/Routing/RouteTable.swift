/// The routes of one listener, for lookup: the first that matches wins. One instance serves all loops.
///
/// An index finds the routes whose host and path match; the first of these whose other conditions hold is taken. So the cost of a
/// lookup depends on the routes that match the request's host and path, not on all routes.
public final class RouteTable: ExchangeRouter {
    /// A route: its conditions and its plan.
    public struct Route: Sendable {
        let match: RequestMatch
        let takesConnect: Bool
        let plan: ExchangePlan
        let split: RouteSplit?

        /// Makes a route. Without `takesConnect` the route never matches CONNECT. With `split`, that chooses the plan of an
        /// exchange.
        public init(match: RequestMatch, takesConnect: Bool = true, plan: ExchangePlan, split: RouteSplit? = nil) {
            self.match = match
            self.takesConnect = takesConnect
            self.plan = plan
            self.split = split
        }
    }

    /// The first matching route so far.
    private struct Found {
        var route = Int32.max
        /// Whether a pattern of that route reached its match limit, so that the result is unknown.
        var isUndecided = false
    }

    private let routes: [Route]
    private let capturing: [[PathPattern]]
    private let index: RouteIndex
    /// The plan of the first route if it takes every request, also CONNECT: then no lookup is needed.
    private let only: ExchangePlan?
    public let listenerPlan: ExchangePlan
    private let services: [String: UpstreamService]

    /// Makes a table of routes, in the order in which they are tried.
    public init(_ routes: [Route], listenerPlan: ExchangePlan, services: [String: UpstreamService] = [:]) {
        self.routes = routes
        self.services = services
        self.listenerPlan = listenerPlan
        capturing = routes.map { route in
            (route.match.paths + route.match.capturesIgnoringCase).filter { !$0.captures.isEmpty }
        }
        index = RouteIndex(routes.map(\.match))
        only = routes.first.flatMap { $0.match.isEmpty && $0.takesConnect && $0.split == nil ? $0.plan : nil }
    }

    /// A copy with its own plans: loops that do not share plans do not wait for each other's reference counts.
    public init(copying other: RouteTable) {
        let copy = { (plan: ExchangePlan) in
            plan.copy()
        }
        routes = other.routes.map { route in
            Route(
                match: route.match, takesConnect: route.takesConnect, plan: copy(route.plan),
                split: route.split.map { RouteSplit(copying: $0, copy) })
        }
        services = other.services
        listenerPlan = copy(other.listenerPlan)
        capturing = other.capturing
        index = other.index
        only = other.only == nil ? nil : routes.first?.plan
    }

    public func service(named name: String) -> UpstreamService? { services[name] }

    public func plan(
        for request: borrowing HttpRequest, captures: inout [(name: String, value: String)]
    ) throws(Pattern.LimitReached) -> ExchangePlan {
        var request = copy request
        var split: RouteSplit?
        return try plan(for: &request, from: nil, &captures, &split)
    }

    public func plan(for exchange: Exchange) throws(Pattern.LimitReached) -> ExchangePlan {
        var split: RouteSplit?
        let plan = try plan(for: &exchange.heldRequest, from: exchange, &exchange.captures, &split)
        let chosen = split?.plan(for: exchange) ?? plan
        // Before any ware sees the request.
        if chosen.keepsClients { chosen.service?.sticky?.take(from: exchange) }
        return chosen
    }

    /// Here and below, the request is `inout` only to avoid copying it out of the exchange. Without an exchange, no condition on the
    /// client's address holds.
    @inline(__always)
    private func plan(
        for request: inout HttpRequest, from exchange: Exchange?, _ captures: inout [(name: String, value: String)],
        _ split: inout RouteSplit?
    ) throws(Pattern.LimitReached) -> ExchangePlan {
        if let only { return only }
        let found = find(&request, exchange)
        guard found.route != .max else { return listenerPlan }
        if found.isUndecided { throw Pattern.LimitReached() }
        let route = Int(found.route)
        if !capturing[route].isEmpty { capture(capturing[route], request, &captures) }
        split = routes[route].split
        return routes[route].plan
    }

    /// Whether any route could match a request to an authority.
    public func couldReach(_ host: String, _ port: UInt16) -> Bool {
        var host = host
        return host.withUTF8 { bytes in
            routes.contains { route in
                route.match.hosts.isEmpty
                    || route.match.hosts.contains { $0.matches(UnsafeRawBufferPointer(bytes), port: Int(port)) }
            }
        }
    }

    // MARK: Finding

    private func find(_ request: inout HttpRequest, _ exchange: Exchange?) -> Found {
        var found = Found()
        let target = request.target.bytes
        let bytes = target.span.bytes
        let path = bytes.extracting(request.target.path.range)
        let host = bytes.extracting(request.target.host.range)
        if index.hasHosts, host.byteCount > 0 {
            let root = index.child(of: RouteIndex.exactHosts, host, 0, host.byteCount)
            if root >= 0 { look(from: root, path, &request, exchange, &found) }
            // A wildcard stands for at least one byte.
            var start = max(1, host.byteCount - index.longestSuffix)
            while start < host.byteCount {
                if host.byte(at: start) == 0x2e, index.hasSuffix(ofLength: host.byteCount - start) {
                    let root = index.child(of: RouteIndex.wildcardHosts, host, start, host.byteCount)
                    if root >= 0 { look(from: root, path, &request, exchange, &found) }
                }
                start += 1
            }
        }
        look(from: RouteIndex.anyHost, path, &request, exchange, &found)
        return found
    }

    /// Searches the routes of one host, or of any host. CONNECT and `OPTIONS *` have no path that a pattern could match.
    private func look(
        from root: Int32, _ path: RawSpan, _ request: inout HttpRequest, _ exchange: Exchange?, _ found: inout Found
    ) {
        guard index.nodes[Int(root)].least < found.route else { return }
        if path.byteCount > 0, path.byte(at: 0) == 0x2f { visit(root, path, 0, &request, exchange, &found) }
        consider(index.nodes[Int(root)].exact, &request, exchange, &found)
    }

    /// Searches below a node that the bytes before `start` led to; `start` is at a slash, or at the path's end.
    ///
    /// Deep nodes come first, because their routes usually precede more general ones; then `least` ends the search early.
    private func visit(
        _ node: Int32, _ path: RawSpan, _ start: Int, _ request: inout HttpRequest, _ exchange: Exchange?,
        _ found: inout Found
    ) {
        let node = index.nodes[Int(node)]
        guard node.least < found.route else { return }
        if start == path.byteCount {
            consider(node.exact, &request, exchange, &found)
        } else if node.hasChildren {
            let segment = start + 1
            var end = segment
            while end < path.byteCount, path.byte(at: end) != 0x2f { end += 1 }
            if node.hasTexts {
                let child = index.child(of: node.number, path, segment, end)
                if child >= 0 { visit(child, path, end, &request, exchange, &found) }
            }
            if end > segment {
                for place in node.globs.range {
                    let glob = index.globs[place]
                    if PathPattern.glob(glob.text, path, segment, end) {
                        visit(glob.child, path, end, &request, exchange, &found)
                    }
                }
                if node.capture >= 0 { visit(node.capture, path, end, &request, exchange, &found) }
            }
        }
        consider(node.prefixes, &request, exchange, &found)
    }

    /// Tests the routes of one place, in their order, until one matches or an earlier match is known.
    private func consider(
        _ places: RouteIndex.Run, _ request: inout HttpRequest, _ exchange: Exchange?, _ found: inout Found
    ) {
        for place in places.range {
            let candidate = index.candidates[place]
            guard candidate.route < found.route else { return }
            if request.method == .connect, !routes[Int(candidate.route)].takesConnect { continue }
            do throws(Pattern.LimitReached) {
                if !candidate.isProven {
                    guard try holds(candidate, &request, exchange) else { continue }
                }
                found = Found(route: candidate.route)
            } catch {
                // No later route may replace it, but an earlier one may still win.
                found = Found(route: candidate.route, isUndecided: true)
            }
            return
        }
    }

    /// Whether the request meets the conditions that the route's place does not prove.
    private func holds(
        _ candidate: RouteIndex.Candidate, _ request: inout HttpRequest, _ exchange: Exchange?
    ) throws(Pattern.LimitReached) -> Bool {
        let route = Int(candidate.route)
        guard routes[route].match.matchesMethod(of: request) else { return false }
        if candidate.needs.contains(.host), !routes[route].match.matchesHost(of: request) { return false }
        guard let exchange else { return try holds(route, candidate.needs, request, UnknownSource()) }
        return try holds(route, candidate.needs, request, exchange)
    }

    @inline(__always)
    private func holds(
        _ route: Int, _ needs: RouteIndex.Needs, _ request: HttpRequest, _ source: some RequestSource
    ) throws(Pattern.LimitReached) -> Bool {
        if needs.contains(.path), try !routes[route].match.matchesPath(of: request, from: source) { return false }
        guard needs.contains(.more) else { return true }
        return try routes[route].match.matchesBeyondPath(request, from: source)
    }

    // MARK: Captures

    private func capture(
        _ patterns: [PathPattern], _ request: HttpRequest, _ captures: inout [(name: String, value: String)]
    ) {
        request.withPath(asReceived: false) { path in
            for pattern in patterns {
                guard let ranges = pattern.captured(in: path) else { continue }
                captures = zip(pattern.captures, ranges).map {
                    ($0, String(decoding: UnsafeRawBufferPointer(rebasing: path[$1]), as: UTF8.self))
                }
                return
            }
        }
    }
}
