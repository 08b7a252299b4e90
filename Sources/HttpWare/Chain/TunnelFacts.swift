/// The tunnel that carries a connection's requests: where it leads, and the credentials that opened it.
final class TunnelFacts: Sendable {
    /// The host that the requests must name: in lower case without a trailing dot, an IPv6 address in brackets.
    let host: String
    /// The host as bytes.
    let hostBytes: [UInt8]
    let port: UInt16
    /// The address that the CONNECT named: connections go there, whatever the host's name resolves to.
    let address: IPAddress?
    /// The CONNECT's credentials for this proxy. They are never logged, and never go upstream. RFC 9110 §11.7.2.
    let proxyAuthorization: String?
    let hasSeveralProxyAuthorizations: Bool
    /// Whether the requests may name every host, because the client that opened the tunnel named only an address.
    let takesEveryHost: Bool
    /// The tunnel as the records of its requests keep it.
    let recorded: RecordedTunnel

    init(
        _ request: HttpRequest, host: String, port: UInt16, address: IPAddress? = nil, principal: String? = nil,
        takesEveryHost: Bool = false
    ) {
        self.takesEveryHost = takesEveryHost
        self.host = host
        hostBytes = Array(host.utf8)
        self.port = port
        self.address = address
        proxyAuthorization = request.proxyAuthorization
        hasSeveralProxyAuthorizations = request.hasSeveralProxyAuthorizations
        recorded = RecordedTunnel(host: host, port: port, address: address, principal: principal)
    }

    /// Gives a request in the tunnel the CONNECT's credentials, and the tunnel's host if it names none. Returns the fault of a
    /// request that does not belong in the tunnel; `nil` if it does. RFC 9110 §15.5.20.
    func take(_ request: inout HttpRequest, isSecure: Bool) -> GatewayError? {
        request.proxyAuthorization = proxyAuthorization
        request.hasSeveralProxyAuthorizations = hasSeveralProxyAuthorizations
        if request.target.form == .authority { return nil }
        guard request.target.host.count > 0 else {
            // An HTTP/1.0 request may name no host.
            request.target.setHost(host)
            request.target.port = port
            return nil
        }
        let target = request.target
        guard target.isSecure == isSecure, (target.port ?? (target.isSecure ? 443 : 80)) == port,
            takesEveryHost || target.bytes[target.host.range].elementsEqual(hostBytes)
        else {
            return GatewayError(
                .downstream, .misdirected, "the tunnel leads to \(host):\(port), the request to another host")
        }
        return nil
    }

    /// The field that offers other ways to the host, which would bypass the gateway. RFC 7838.
    static let altSvc: FieldName = "Alt-Svc"
}
