import GatewayConfig
import HttpWare

/// A listening socket that was there before the program: a service manager made it, or the gateway whose place it takes.
struct InheritedSocket: Sendable, Equatable {
    /// The descriptor, in this process.
    let descriptor: Int32
    /// The address that it is bound to.
    let address: SocketAddress
    /// The listener that used it, or the name that the service manager gave it.
    let name: String
    /// The service manager's: it stays when no listener uses it any more, and the file of a Unix socket is not ours to remove.
    let isManagers: Bool

    /// The name of an admin listener's, which no listener can have.
    static let adminName = "@admin"

    /// Whether this is what would be bound for that. A port that is any port goes by the name.
    func fits(_ bind: SocketAddress, name other: String) -> Bool {
        if address == bind { return true }
        return bind.port == 0 && address.address == bind.address && name == other
    }
}
