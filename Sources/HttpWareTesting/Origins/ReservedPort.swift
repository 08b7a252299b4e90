import Glibc
import HttpWare

/// A listening socket at 127.0.0.1 that keeps its port when it no longer listens. From then on connections are refused, and do
/// not reach another test's origin server.
final class ReservedPort: Sendable {
    let number: UInt16
    /// The descriptor, which its user must close.
    let listener: Int32
    /// A duplicate of the descriptor.
    private let held: Int32

    init() throws {
        // A port that the system chose is released when the socket stops listening. A port that was requested is kept.
        let chosen = try Socket.listen(on: .loopback)
        defer { Socket.close(chosen) }
        guard let number = Socket.localAddress(chosen)?.port, let address = SocketAddress("127.0.0.1:\(number)") else {
            throw SystemError("getsockname")
        }
        self.number = number
        listener = try Socket.listen(on: address)
        held = fcntl(listener, F_DUPFD_CLOEXEC, 0)
    }

    deinit { if held >= 0 { Socket.close(held) } }

    /// Refuses connections from now on.
    func refuse() { shutdown(held, Int32(SHUT_RDWR)) }
}
