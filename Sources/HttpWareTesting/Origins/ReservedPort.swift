import Glibc
import HttpWare

/// A listening socket of 127.0.0.1 whose port stays its own when nobody listens there any more: connections are refused from then
/// on, and reach no other test's origin server.
final class ReservedPort: Sendable {
    let number: UInt16
    /// To be closed by whoever takes it.
    let listener: Int32
    /// The same socket once more.
    private let held: Int32

    init() throws {
        // A port that the system chose goes back to it when the socket does not listen any more; one that was asked for stays.
        let chosen = try Socket.listen(on: .loopback)
        defer { Socket.close(chosen) }
        guard let number = Socket.localAddress(chosen)?.port, let address = SocketAddress("127.0.0.1:\(number)") else {
            throw SystemError("getsockname")
        }
        self.number = number
        listener = try Socket.listen(on: address)
        held = dup(listener)
    }

    deinit { if held >= 0 { Socket.close(held) } }

    /// From now on connections are refused.
    func refuse() { shutdown(held, Int32(SHUT_RDWR)) }
}
