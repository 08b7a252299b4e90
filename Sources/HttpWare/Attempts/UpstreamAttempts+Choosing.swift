// The choice of endpoints among those of a service with balancing.

extension UpstreamAttempts {
    /// Chooses the endpoint of the next attempt: the one that a ware prefers, else by the service's rule, avoiding endpoints that were
    /// tried while others are left. `nil` if a ware avoids all of them.
    mutating func choose(
        among seat: BalancerSeat, for exchange: Exchange, at now: LoopInstant
    ) -> EndpointMember? {
        let key = seat.key(of: exchange)
        var avoided: [EndpointMember] = []
        if let steering = exchange.steering {
            let members = seat.table.places.map(\.member)
            let preferred = members.first { $0.endpoint.name == steering.preferred }
            if let preferred, !tried.contains(where: { $0 === preferred }) { return preferred }
            avoided = members.filter { steering.avoided.contains($0.endpoint.name) }
        }
        let excluded = avoided.isEmpty ? tried : tried + avoided
        if let chosen = seat.choose(key: key, excluding: excluded, at: now) { return chosen }
        // All others were tried: any of them may be chosen.
        forgetTried()
        return seat.choose(key: key, excluding: avoided, at: now)
    }

    /// Chooses the endpoint of a further attempt: one that takes requests and was not asked; `nil` without such an endpoint.
    func chooseOther(among seat: BalancerSeat, for exchange: Exchange, at now: LoopInstant) -> EndpointMember? {
        // Only the client's own endpoint knows its session.
        guard exchange.endpointKeep?.isHeld != true else { return nil }
        var excluded = asked
        if let avoided = exchange.steering?.avoided {
            excluded += seat.table.places.map(\.member).filter { avoided.contains($0.endpoint.name) }
        }
        return seat.chooseOpen(key: seat.key(of: exchange), excluding: excluded, at: now)
    }
}

extension BalancerSeat {
    /// The hash of the part of the request that the rule names; 0 for other rules.
    @inline(__always)
    fileprivate func key(of exchange: Exchange) -> UInt64 {
        guard case .hash(let part) = balancer.rules.rule else { return 0 }
        return part.stableNumber(exchange.heldRequest, exchange)
    }
}
