import HttpWare

/// Warnings: entries that are valid and probably not intended.
struct Lints {
    private var diagnostics = Diagnostics()

    var found: [ConfigError] { diagnostics.all }

    /// `namedServices` are the services that wares send requests to.
    init(
        listeners: [ListenerDefinition], services: [ConfiguredService], routes: [RouteDefinition],
        findsRoutes: Bool, namedServices: Set<String>
    ) {
        let used = namedServices.union(
            routes.flatMap { [$0.serviceName?.value].compactMap(\.self) + $0.shares.map(\.name.value) })
        let fallbacks = Set(services.filter { used.contains($0.name) }.flatMap(\.fallbacks))
        for service in services where !used.contains(service.name) && !fallbacks.contains(service.name) {
            diagnostics.warning(at: service.location, "services.\(service.name)", "is not used by any route")
        }
        for listener in listeners {
            let answers = listener.chain.entries.middlewares.contains {
                ($0.ware as? any AnsweringWare)?.storesResponses == false
            }
            if listener.routes.isEmpty, !findsRoutes, !answers {
                diagnostics.warning(
                    at: listener.location, "listeners.\(listener.name)",
                    "has no route; it answers every request with 404")
            }
            checkPasswords(listener)
        }
        for route in routes {
            checkPassthrough(route, listeners)
            checkPaths(route)
        }
        checkReach(routes, listeners)
        var order = ChainOrder()
        for listener in listeners {
            order.check(listener.chain)
            for chain in listener.routes.flatMap(\.chains) { order.check(chain) }
        }
        diagnostics.append(order.diagnostics.all)
        diagnostics.append(KeyReach(listeners).found)
    }

    private mutating func checkPasswords(_ listener: ListenerDefinition) {
        guard !listener.bind.isLoopback, listener.tls == nil else { return }
        for chain in [listener.chain] + listener.routes.flatMap(\.chains) {
            for entry in chain.entries.middlewares where (entry.ware as? any AuthenticatingWare)?.takesPasswords == true
            {
                diagnostics.warning(
                    at: entry.location, entry.label,
                    "passwords for listener \(listener.name) pass the network in clear text; write tls for it, or let only a server with TLS reach it"
                )
            }
        }
    }

    private mutating func checkPassthrough(_ route: RouteDefinition, _ listeners: [ListenerDefinition]) {
        guard route.service?.isPassthrough == true, !listeners.contains(where: route.serves) else { return }
        diagnostics.warning(
            at: route.serviceName?.location ?? route.location, "routes[\(route.index)].service",
            "passthrough matches on forward listeners only, and this route has none")
    }

    /// Checks for patterns of other programs that have a different meaning here.
    private mutating func checkPaths(_ route: RouteDefinition) {
        for pattern in route.match.paths {
            let keyPath = "routes[\(route.index)].match.path"
            if pattern.source == "/*" {
                diagnostics.warning(
                    at: route.location, keyPath, "/* matches a path of one segment; write /** for every path")
            }
            // In nginx, `location /api/` matches everything below it.
            let bare = pattern.source.dropLast()
            if pattern.source.hasSuffix("/"), !bare.isEmpty, !route.match.paths.contains(where: { $0.source == bare }) {
                diagnostics.warning(
                    at: route.location, keyPath,
                    "\(pattern.source) matches this path alone; write \(pattern.source)** for everything below it")
            }
            for segment in pattern.source.split(separator: "/") where segment.hasPrefix(":") {
                let name = segment.dropFirst()
                guard name.utf8.first.map({ UInt8(ascii: "a")...UInt8(ascii: "z") ~= $0 | 0x20 }) == true else {
                    continue
                }
                diagnostics.warning(
                    at: route.location, keyPath, ":\(name) matches this text alone; write {\(name)} for any segment")
            }
        }
    }

    // MARK: Routes that are never reached

    private mutating func checkReach(_ routes: [RouteDefinition], _ listeners: [ListenerDefinition]) {
        var hiders: [Int: [RouteDefinition]] = [:]
        var doubts: [Int: [RouteDefinition]] = [:]
        var reached: Set<Int> = []
        var steps = RouteReach.mostSteps
        for listener in listeners {
            var reach = RouteReach(mode: listener.mode, steps: steps)
            for route in listener.routes.map(\.route) {
                switch reach.addRoute(route) {
                case .reached: reached.insert(route.index)
                case .undecided(let others): doubts[route.index] = doubts[route.index] ?? others
                case .matchesNothing: hiders[route.index] = hiders[route.index] ?? []
                case .hidden(let others):
                    let known = hiders[route.index] ?? []
                    hiders[route.index] = known + others.filter { other in !known.contains { $0.index == other.index } }
                }
            }
            steps = reach.stepsLeft
        }
        for route in routes where !reached.contains(route.index) {
            if let others = doubts[route.index] {
                let named = others.prefix(8).map { "\($0.name) at \($0.location)" }.joined(separator: ", ")
                diagnostics.warning(
                    at: route.location, "routes[\(route.index)]",
                    "may never be reached: whether earlier routes match everything that it matches is not known, because"
                        + " their not, any or regular expressions cannot be compared with it: \(named)")
                continue
            }
            guard let hiders = hiders[route.index] else { continue }
            let why = hiders.isEmpty ? whyNothing(route, listeners) : why(route, hiders)
            diagnostics.warning(at: route.location, "routes[\(route.index)]", "is never reached: \(why)")
        }
    }

    /// Why no request matches the route, which only accepts CONNECT.
    private func whyNothing(_ route: RouteDefinition, _ listeners: [ListenerDefinition]) -> String {
        if !listeners.contains(where: { $0.mode == .forward && route.serves($0) }) {
            return "a reverse listener does not accept CONNECT"
        }
        return route.takesConnect
            ? "path and query never match CONNECT"
            : "a named service accepts CONNECT only if match.host names the authority"
    }

    /// Why other routes match every request that this route matches.
    private func why(_ route: RouteDefinition, _ hiders: [RouteDefinition]) -> String {
        let named = hiders.prefix(8).map { "\($0.name) at \($0.location)" }.joined(separator: ", ")
        switch hiders.count {
        case 1:
            let what =
                hiders[0].match.isEmpty
                ? "has no match and accepts every request"
                : hiders[0].match == route.match ? "matches the same" : "matches everything that it matches"
            return "\(hiders[0].name) before it, at \(hiders[0].location), \(what)"
        case 2...8: return "earlier routes match everything that it matches: \(named)"
        default: return "\(hiders.count) earlier routes match everything that it matches, among them \(named)"
        }
    }
}
