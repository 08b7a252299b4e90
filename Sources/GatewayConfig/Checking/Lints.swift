import HttpWare

/// What is written rightly and is probably not meant, or not safe.
struct Lints {
    private var diagnostics = Diagnostics()

    var found: [ConfigError] { diagnostics.all }

    init(listeners: [ListenerDefinition], services: [ServiceDefinition], routes: [RouteDefinition]) {
        let used = Set(routes.compactMap { $0.serviceName?.value })
        for service in services where !used.contains(service.name) {
            diagnostics.warning(at: service.location, "services.\(service.name)", "no route uses it")
        }
        checkBinds(listeners)
        for listener in listeners {
            checkIsClosed(listener)
            if listener.routes.isEmpty {
                diagnostics.warning(
                    at: listener.location, "listeners.\(listener.name)",
                    "no route serves it; it will answer 404 to everything")
            }
        }
        for route in routes { checkPassthrough(route, listeners) }
        checkReach(routes, listeners)
    }

    private mutating func checkBinds(_ listeners: [ListenerDefinition]) {
        var places: [SocketAddress: ListenerDefinition] = [:]
        for listener in listeners where listener.bind.port != 0 {
            if let first = places[listener.bind] {
                diagnostics.error(
                    at: listener.bindLocation, "listeners.\(listener.name).bind",
                    "\(listener.bind) is taken by listener \(first.name) at \(first.bindLocation)")
            } else {
                places[listener.bind] = listener
            }
        }
    }

    /// A forward listener that strangers can reach, with nothing that asks who they are, is an open proxy.
    private mutating func checkIsClosed(_ listener: ListenerDefinition) {
        guard listener.mode == .forward, !listener.bind.isLoopback else { return }
        let isGuarded = { (chain: WareChain) in
            chain.entries.middlewares.contains { $0.condition == nil && WareRegistry.isGuard($0.ware) }
        }
        guard !isGuarded(listener.chain),
            listener.routes.isEmpty || !listener.routes.allSatisfy({ isGuarded($0.chain) })
        else {
            return
        }
        diagnostics.error(
            at: listener.bindLocation, "listeners.\(listener.name).bind",
            "\(listener.bind) would be a proxy open to all; bind to 127.0.0.1, or put ipRule or authentication, without if, into its chain"
        )
    }

    private mutating func checkPassthrough(_ route: RouteDefinition, _ listeners: [ListenerDefinition]) {
        guard route.service?.isPassthrough == true, !listeners.contains(where: route.serves) else { return }
        diagnostics.warning(
            at: route.serviceName?.location ?? route.location, "routes[\(route.index)].service",
            "passthrough matches on forward listeners only, and this route has none")
    }

    // MARK: Routes that are never reached

    private mutating func checkReach(_ routes: [RouteDefinition], _ listeners: [ListenerDefinition]) {
        var hiders: [Int: RouteDefinition] = [:]
        var reached: Set<Int> = []
        for listener in listeners {
            var catchAll: RouteDefinition?
            var seen: [RequestMatch: RouteDefinition] = [:]
            for route in listener.routes.map(\.route) {
                let earlier = [catchAll, seen[route.match]].compactMap(\.self).first { hides($0, route, on: listener) }
                if let earlier {
                    hiders[route.index] = earlier
                } else {
                    reached.insert(route.index)
                    seen[route.match] = seen[route.match] ?? route
                    if route.match.isEmpty { catchAll = catchAll ?? route }
                }
            }
        }
        for route in routes where !reached.contains(route.index) {
            guard let hider = hiders[route.index] else { continue }
            let why = hider.match.isEmpty ? "has no match and takes every request" : "matches the same"
            diagnostics.warning(
                at: route.location, "routes[\(route.index)]",
                "is never reached: \(hider.name) before it, at \(hider.location), \(why)")
        }
    }

    /// A route with a named service takes a CONNECT only where `match.host` names the authority, so others stay reachable.
    private func hides(_ earlier: RouteDefinition, _ later: RouteDefinition, on listener: ListenerDefinition) -> Bool {
        if listener.mode == .reverse || earlier.service == nil || earlier.service?.isPassthrough == true { return true }
        return !earlier.match.hosts.isEmpty || (later.service?.isPassthrough == false && later.match.hosts.isEmpty)
    }
}
