/// The version of the PROXY protocol that tells a service's endpoints the client's address.
///
/// The protocol is HAProxy's: `doc/proxy-protocol.txt` in its sources.
public enum ProxyProtocol: String, OptionWord {
    /// A line of text.
    case v1
    /// Binary.
    case v2
}

/// The contents of a PROXY protocol header: the client of the proxy that made the connection, and the proxy's address that it used.
struct ProxiedClient: Hashable, Sendable {
    let client: SocketAddress
    let server: SocketAddress

    /// Makes a value from two IP addresses; `nil` if one of them is missing or another kind of address.
    init?(_ client: SocketAddress?, to server: SocketAddress?) {
        guard let client, let server, client.address != nil, server.address != nil else { return nil }
        self.client = client
        self.server = server
    }
}

extension ProxyProtocol {
    /// The header before all other bytes of a connection. Without a client, the connection is the gateway's own, such as a health check.
    func header(_ proxied: ProxiedClient?) -> [UInt8] {
        guard let proxied, case .ip(let client, let clientPort) = proxied.client,
            case .ip(let server, let serverPort) = proxied.server
        else {
            return self == .v1 ? Array("PROXY UNKNOWN\r\n".utf8) : ProxyProtocol.signature + [0x20, 0, 0, 0]
        }
        let isIPv4 = client.isIPv4 && server.isIPv4
        let addresses = [client, server].map { isIPv4 ? $0 : $0.mapped }
        switch self {
        case .v1:
            let texts = addresses.map { "\($0.withoutScope)" }.joined(separator: " ")
            return Array("PROXY \(isIPv4 ? "TCP4" : "TCP6") \(texts) \(clientPort) \(serverPort)\r\n".utf8)
        case .v2:
            let ports = [clientPort, serverPort].flatMap { [UInt8($0 >> 8), UInt8($0 & 0xff)] }
            let block = addresses.flatMap(\.bytes) + ports
            return ProxyProtocol.signature + [0x21, isIPv4 ? 0x11 : 0x21, 0, UInt8(block.count)] + block
        }
    }

    /// The signature of version 2.
    static let signature: [UInt8] = [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a]
}

extension IPAddress {
    /// An IPv4 address in IPv4-mapped form; any other unchanged.
    fileprivate var mapped: IPAddress {
        isIPv4 ? IPAddress(ipv6: 0, 0xffff_0000_0000 | low) : self
    }
}
