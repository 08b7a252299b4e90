extension UpstreamService {
    /// Rewrites the endpoint's references to itself in a response into the names that the client knows. `host` is the value of `Host`
    /// that the endpoint got, if it is not the client's.
    func rewriteReferences(
        in fields: inout HttpFields, from endpoint: Endpoint, named host: @autoclosure () -> String?,
        of exchange: Exchange
    ) {
        guard references.concern(fields) || exchange.strippedPrefix != nil else { return }
        var authorities = endpoints.map(\.authority)
        if !authorities.contains(endpoint.authority) { authorities.append(endpoint.authority) }
        if let host = host() ?? exchange.heldRequest.authority?.description { authorities.append(host) }
        let origin = OriginReferences.Place(
            authorities: authorities, isSecure: endpoint.tls != nil, basePath: endpoint.basePath)
        references.rewrite(&fields, from: origin, for: exchange.clientsOrigin, under: exchange.strippedPrefix)
    }
}

extension Exchange {
    /// The scheme and authority that the client used, as the start of a URI; `nil` if it named no host.
    fileprivate var clientsOrigin: String? {
        let target = heldRequest.target
        let names = target.receivedNames
        guard names.host.count > 0 else { return nil }
        let port = names.port.flatMap { $0 == (isClientSecure ? 443 : 80) ? nil : ":\($0)" } ?? ""
        return "\(isClientSecure ? "https" : "http")://\(target.string(names.host))\(port)"
    }
}
