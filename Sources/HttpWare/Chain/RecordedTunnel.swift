/// The tunnel of a connection's requests, as recorded with each of them: made once, without credentials.
public final class RecordedTunnel: Sendable {
    /// The host that the requests go to: in lower case without a trailing dot, an IPv6 address in brackets.
    public let host: String
    public let port: UInt16
    /// The address that the CONNECT named, if the TLS handshake named the host.
    public let address: IPAddress?
    /// The name of the principal that opened the tunnel; `nil` if no ware required credentials.
    public let principal: String?

    init(host: String, port: UInt16, address: IPAddress?, principal: String?) {
        self.host = host
        self.port = port
        self.address = address
        self.principal = principal
    }

    /// The approximate memory use in bytes.
    var bytes: Int { 96 + host.utf8.count + (principal?.utf8.count ?? 0) }
}
