import GatewayConfig
import HttpWare

extension RouteTable {
    /// The routes of one listener, each joined with its service; services are made once and shared by name.
    /// `changing` makes other chains of theirs.
    convenience init(
        _ listener: ListenerDefinition, services: [String: UpstreamService],
        changing change: (WareChain) -> WareChain = { $0 }
    ) {
        self.init(
            listener.routes.map { resolved in
                let route = resolved.route
                return Route(
                    match: route.match, takesConnect: route.takesConnect,
                    plan: ExchangePlan(
                        chain: change(resolved.chain), service: route.service.flatMap { services[$0.name] },
                        route: route.name))
            },
            listenerPlan: ExchangePlan(chain: listener.chain, service: nil, route: nil),
            services: services.filter { !$0.value.isPassthrough })
    }
}

extension RouteDefinition {
    /// CONNECT reaches a named service only by naming the authority.
    var takesConnect: Bool { service?.isPassthrough != false || !match.hosts.isEmpty }
}
