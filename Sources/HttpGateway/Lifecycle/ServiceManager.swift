import Glibc
import HttpWare

/// The service manager that supervises the program, such as systemd. It is notified of the program's state by datagrams to
/// `$NOTIFY_SOCKET`: sd_notify(3).
struct ServiceManager: Sendable {
    /// The path of its socket; a path that begins with `@` is a name in the abstract namespace.
    let socket: String

    /// The interval within which it must be notified, because it otherwise treats the program as stuck; `nil` if it has no
    /// watchdog.
    let watchdog: Duration?

    /// The maximum wait when its queue is full, in milliseconds.
    private static let patience: Int32 = 1000

    /// Sends assignments, such as `READY=1`, in one datagram. Returns the error, if any.
    @discardableResult
    func tell(_ assignments: [String]) -> SystemError? {
        let path = Array(socket.utf8)
        guard path.count <= SocketAddress.longestPath else { return SystemError("connect", code: ENAMETOOLONG) }
        let type = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = Glibc.socket(AF_UNIX, type, 0)
        guard descriptor >= 0 else { return SystemError("socket") }
        defer { Socket.close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        let isAbstract = socket.hasPrefix("@")
        // An abstract name has a zero byte in front, and none at the end.
        if isAbstract { address.sun_path.0 = 0 }
        let length = MemoryLayout<sa_family_t>.size + path.count + (isAbstract ? 0 : 1)
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, socklen_t(length)) }
        }
        guard connected == 0 else { return SystemError("connect") }
        let text = Array(assignments.joined(separator: "\n").utf8)
        if send(descriptor, text, text.count, Int32(MSG_NOSIGNAL)) >= 0 { return nil }
        guard errno == EAGAIN else { return SystemError("send") }
        var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        poll(&wanted, 1, ServiceManager.patience)
        return send(descriptor, text, text.count, Int32(MSG_NOSIGNAL)) < 0 ? SystemError("send") : nil
    }
}
