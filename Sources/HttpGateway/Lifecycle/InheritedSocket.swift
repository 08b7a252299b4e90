import GatewayConfig
import HttpWare

/// A listening socket that existed before the program: from a service manager, or from the gateway that this one replaces.
struct InheritedSocket: Sendable, Equatable {
    /// The descriptor in this process.
    let descriptor: Int32
    /// The address that the socket is bound to.
    let address: SocketAddress
    /// The listener that used it, or the name that the service manager gave it.
    let name: String
    /// Whether the socket belongs to a service manager. It then stays when no listener uses it, and this process does not
    /// remove the file of a Unix socket.
    let isManagers: Bool

    /// The name of the admin listener's socket, which no listener can have.
    static let adminName = "@admin"

    /// Whether the socket can be used for a listener with this address. If the address leaves the port open, the name must
    /// match.
    func fits(_ bind: SocketAddress, name other: String) -> Bool {
        if address == bind { return true }
        return bind.port == 0 && address.address == bind.address && name == other
    }
}
