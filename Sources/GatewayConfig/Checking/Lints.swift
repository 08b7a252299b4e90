import HttpWare

/// What is written rightly and is probably not meant: warnings.
struct Lints {
    private var diagnostics = Diagnostics()

    var found: [ConfigError] { diagnostics.all }

    init(listeners: [ListenerDefinition], services: [ServiceDefinition], routes: [RouteDefinition]) {
        let used = Set(routes.compactMap { $0.serviceName?.value })
        for service in services where !used.contains(service.name) {
            diagnostics.warning(at: service.location, "services.\(service.name)", "no route uses it")
        }
        for listener in listeners {
            if listener.routes.isEmpty {
                diagnostics.warning(
                    at: listener.location, "listeners.\(listener.name)",
                    "no route serves it; it will answer 404 to everything")
            }
        }
        for route in routes { checkPassthrough(route, listeners) }
        checkReach(routes, listeners)
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
