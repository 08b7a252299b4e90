import HttpWare

/// Finds keys that no request can have at their place, so that all requests would share one limit or one endpoint.
///
/// An entry can be in several chains, and a service behind several routes. A key is reported only if it is missing in all of
/// them.
struct KeyReach {
    /// A key in an option, with the place of the definition that has the option.
    private struct Use: Hashable {
        let place: SourceLocation
        let path: String
        let key: RequestKey
    }

    /// The properties of requests at a place of a chain.
    private struct Known {
        let listener: ListenerDefinition
        var hasPrincipal: Bool
        var hasClaims = false
        var taken: Set<FieldName> = []

        init(_ listener: ListenerDefinition) {
            self.listener = listener
            hasPrincipal = listener.tls?.asksForCertificates ?? false
        }
    }

    /// Why no request has the key; `nil` if a request may have it.
    private var reasons: [Use: String?] = [:]
    private var order: [Use] = []

    init(_ listeners: [ListenerDefinition]) {
        for listener in listeners {
            _ = walk(listener.chain, Known(listener))
            for route in listener.routes {
                if case .hashKey(let key)? = route.route.sticky?.means, let place = route.route.sticky?.location {
                    // The share is chosen before any ware runs.
                    for part in key.parts {
                        note(
                            Use(place: place, path: "routes[\(route.route.index)].sticky.hashKey", key: part),
                            Known(listener))
                    }
                }
                let services = route.route.shares.isEmpty ? [route.route.service] : route.route.shares.map(\.service)
                for (service, chain) in zip(services, route.chains) {
                    let known = walk(chain, Known(listener))
                    guard let service, let key = service.hashKey else { continue }
                    for part in key.parts {
                        note(
                            Use(
                                place: service.hashKeyLocation, path: "services.\(service.name).hashKey", key: part),
                            known)
                    }
                }
            }
        }
    }

    /// The warnings.
    var found: [ConfigError] {
        var diagnostics = Diagnostics()
        for use in order {
            guard case .some(.some(let reason)) = reasons[use] else { continue }
            diagnostics.warning(at: use.place, use.path, "no request has the key \(use.key.optionText): \(reason)")
        }
        return diagnostics.all
    }

    /// Checks the keys of a chain. Returns the properties of requests after the chain.
    private mutating func walk(_ chain: WareChain, _ start: Known) -> Known {
        var known = start
        for entry in chain.entries.middlewares {
            if let keyed = entry.ware as? any KeyedWare {
                for key in keyed.keys { note(Use(place: entry.location, path: entry.label, key: key), known) }
            }
            if let ware = entry.ware as? any AuthenticatingWare {
                known.hasPrincipal = true
                if ware.givesClaims { known.hasClaims = true }
            }
            if let ware = entry.ware as? any FieldEditingWare {
                if entry.condition == nil { known.taken.formUnion(ware.takenFields) }
                known.taken.subtract(ware.givenFields)
            }
        }
        return known
    }

    private mutating func note(_ use: Use, _ known: Known) {
        let reason = reason(use.key, known)
        if let before = reasons[use] {
            if before != nil, reason == nil { reasons[use] = .some(nil) }
        } else {
            order.append(use)
            reasons[use] = .some(reason)
        }
    }

    private func reason(_ key: RequestKey, _ known: Known) -> String? {
        switch key {
        case .ip:
            known.listener.bind.address == nil ? "clients of a Unix socket have no address" : nil
        case .principal:
            known.hasPrincipal
                ? nil
                : "no earlier ware authenticates clients, and the listener asks for no certificate; put authentication first"
        case .claim: known.hasClaims ? nil : "no earlier ware accepts a token; put jwt or introspect first"
        case .header(.proxyAuthorization):
            known.listener.mode == .forward ? nil : "a reverse listener removes the field from every request"
        case .header(let name):
            name.isGatewayOwned
                ? "the field concerns one connection and is removed from every request"
                : known.taken.contains(name) ? "an earlier ware removes the field" : nil
        case .cookie: known.taken.contains(.cookie) ? "an earlier ware removes Cookie" : nil
        case .route, .all: nil
        }
    }
}
