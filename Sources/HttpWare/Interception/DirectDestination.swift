/// The destination of a connection that a client made to a host itself, without a CONNECT, and that was led to a forward listener.
///
/// The listener handles such a connection like the inside of a tunnel to that host.
public struct DirectDestination: Sendable, Equatable {
    /// The name that the client looked up: in lower case, without a trailing dot. If the client named none, the address, an IPv6 address in
    /// brackets.
    public let host: String
    /// The port that the client connected to.
    public let port: UInt16
    /// Whether the client looked up a name. The requests must then name the same host. Otherwise the client names the host in its handshake
    /// or its requests, and that name is resolved again: the address itself does not count.
    public let isNamed: Bool

    /// The destination of a client that looked up this name.
    public init(name: String, port: UInt16) {
        host = name
        self.port = port
        isNamed = true
    }

    /// The destination of a client that used an address.
    public init(address: IPAddress, port: UInt16) {
        let address = address.unmapped.withoutScope
        host = address.isIPv4 ? "\(address)" : "[\(address)]"
        self.port = port
        isNamed = false
    }

    /// Whether a host can have this name, in lower case: letters, digits, hyphens and underscores, and no client takes it for an address.
    public static func isName(_ text: String) -> Bool { Authority.isServerName(text) }
}
