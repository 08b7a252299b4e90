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
    /// The tunnel as the records of its requests keep it.
    let recorded: RecordedTunnel

    init(_ request: HttpRequest, host: String, port: UInt16, address: IPAddress? = nil, principal: String? = nil) {
        self.host = host
        hostBytes = Array(host.utf8)
        self.port = port
        self.address = address
        proxyAuthorization = request.proxyAuthorization
        hasSeveralProxyAuthorizations = request.hasSeveralProxyAuthorizations
        recorded = RecordedTunnel(host: host, port: port, address: address, principal: principal)
    }
}
