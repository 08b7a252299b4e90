extension ForwardRules {
    /// The endpoint that the request names, for a service whose clients choose the origin server. `address` is the address of the tunnel
    /// that carries the request; `nil` if the name is looked up.
    func endpoint(
        for exchange: Exchange, _ service: UpstreamService, at address: IPAddress?, among known: inout PassingEndpoints
    ) throws(GatewayError) -> Endpoint {
        guard exchange.heldRequest.target.host.count > 0 else {
            throw .malformed("the request names no host")
        }
        let isConnect = exchange.heldRequest.method == .connect
        let isSecure = !isConnect && exchange.heldRequest.target.isSecure
        let port = exchange.heldRequest.port ?? (isConnect || isSecure ? 443 : 80)
        if isConnect {
            guard connectPorts.contains(port) else {
                throw GatewayError(.downstream, .requestDenied, "CONNECT to port \(port) is not allowed")
            }
        }
        let tls = isSecure ? service.passing.tls ?? SystemTrust.shared.client : nil
        if isSecure, tls == nil { throw GatewayError(.gateway, .internalError, "OpenSSL cannot make a context") }
        let speaks = exchange.isIntercepted ? Endpoint.Version.auto : .h1
        var hop: UpstreamProxy.Hop?
        if let proxy = upstreamProxy {
            let host = address.map { $0.isIPv4 ? "\($0)" : "[\($0)]" }
            hop = proxy.hop(to: host ?? exchange.heldRequest.host ?? "", port: port, isSecure: isSecure || isConnect)
        }
        let endpoint = exchange.heldRequest.withHost(asReceived: false) {
            known.endpoint(
                $0, port: port, tls: tls, deniesPrivate: deniesPrivate, deniesMetadata: deniesMetadata,
                limits: service.passing.limits, speaks: speaks, hop: hop, isTunnel: isConnect && hop != nil)
        }
        return address.map { endpoint.fixed(at: [.ip($0, port: port)]) } ?? endpoint
    }
}
