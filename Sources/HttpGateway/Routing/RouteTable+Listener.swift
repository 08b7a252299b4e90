import GatewayConfig
import HttpWare

extension RouteTable {
    /// The routes of one listener, each joined with its services. Services are made once and shared by name. `changing`
    /// changes the chains of the routes.
    convenience init(
        _ listener: ListenerDefinition, services: [String: UpstreamService],
        changing change: (WareChain) -> WareChain = { $0 }
    ) {
        self.init(
            listener.routes.map { resolved in
                let route = resolved.route
                let shares = route.shares.map(\.service)
                let plans = zip(shares.isEmpty ? [route.service] : shares, resolved.chains).map { service, chain in
                    ExchangePlan(
                        chain: change(chain), service: service.flatMap { services[$0.name] }, route: route.name,
                        isShare: !shares.isEmpty,
                        fallbacks: (service?.fallbacks ?? []).compactMap { services[$0] })
                }
                return Route(
                    match: route.match, takesConnect: route.takesConnect, plan: plans[0],
                    split: shares.isEmpty ? nil : RouteSplit(route, plans))
            },
            listenerPlan: ExchangePlan(chain: listener.chain, service: nil, route: nil),
            services: services.filter { !$0.value.isPassthrough })
    }
}

extension RouteSplit {
    /// The shares of a route, in order.
    fileprivate convenience init(_ route: RouteDefinition, _ plans: [ExchangePlan]) {
        let shares = zip(route.shares, plans).map { Share(plan: $1, weight: $0.weight) }
        self.init(shares, route: route.name, sticky: route.sticky.map(Sticky.init))
    }
}

extension RouteSplit.Sticky {
    /// Takes over a definition. Without its own secrets, the process's secret is used.
    fileprivate init(_ definition: RouteSticky) {
        let keys = SealingKey.ofSticky(definition.keys)
        switch definition.means {
        case .cookie(let name): self = .cookie(name, ttl: definition.ttl, keys: keys)
        case .header(let name): self = .header(name, ttl: definition.ttl, keys: keys)
        case .hashKey(let key): self = .hash(key)
        }
    }
}
