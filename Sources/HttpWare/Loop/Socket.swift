import CSystemShims
public import Glibc

/// Calls on non-blocking sockets: each makes one system call if possible, repeats it after a signal, and returns a typed result.
public enum Socket {
    /// The result of reading or writing.
    public enum Transfer: Equatable, Sendable {
        /// This many bytes were moved: at least one, if at least one was requested.
        case bytes(Int)
        /// The peer sends no more. Only for reading.
        case end
        /// Nothing can be moved now; the loop reports when it can.
        case wouldBlock
        /// The connection failed, with this `errno`.
        case failed(Int32)
    }

    /// The result of accepting.
    public enum Acceptance: Sendable {
        /// A connection: its descriptor, and its peer.
        case accepted(Int32, from: SocketAddress)
        /// No connection is waiting.
        case wouldBlock
        /// The process (`EMFILE`) or the machine (`ENFILE`) has no descriptor left; the connection keeps waiting.
        case outOfDescriptors(Int32)
        /// The listener failed, with this `errno`.
        case failed(Int32)
    }

    /// The result of connecting.
    public enum Connection: Equatable, Sendable {
        /// The connection is established: a Unix socket, or the same host.
        case connected(Int32)
        /// The descriptor becomes writable when the connection is established or has failed; `pendingError` tells which.
        case inProgress(Int32)
        /// It failed at once, with this `errno`; no descriptor is left open.
        case failed(Int32)
    }

    // MARK: Making

    /// Makes a listener: non-blocking, closed on exec, with `setDelivery` for the connections it accepts.
    ///
    /// Several listeners of one address share its connections if all set `sharesPort` (`SO_REUSEPORT`); IPv6 sockets take no IPv4.
    /// For a Unix socket `mode` sets the permissions, and the file of a socket without a listener is replaced; any other
    /// file is kept and refused with `EADDRINUSE`.
    public static func listen(
        on address: SocketAddress, backlog: Int32 = 4096, sharesPort: Bool = true, mode: UInt32 = 0o660
    ) throws(SystemError) -> Int32 {
        let descriptor = socket(address.family, streamType, 0)
        guard descriptor >= 0 else { throw SystemError("socket") }
        do throws(SystemError) {
            switch address {
            case .ip(let ip, _):
                try set(descriptor, SOL_SOCKET, SO_REUSEADDR, "SO_REUSEADDR")
                if sharesPort { try set(descriptor, SOL_SOCKET, SO_REUSEPORT, "SO_REUSEPORT") }
                if !ip.isIPv4 { try set(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, "IPV6_V6ONLY") }
                setDelivery(descriptor)
                try bind(descriptor, to: address)
            case .unix(let path):
                guard path.utf8.count <= SocketAddress.longestPath else {
                    throw SystemError("bind", code: ENAMETOOLONG)
                }
                try removeStaleSocket(at: path, address)
                // The file is created with at most this mode, reduced by the umask; then it gets the full mode.
                fchmod(descriptor, mode)
                try bind(descriptor, to: address)
                guard chmod(path, mode) == 0 else { throw SystemError("chmod") }
            }
            guard Glibc.listen(descriptor, backlog) == 0 else { throw SystemError("listen") }
            return descriptor
        } catch {
            close(descriptor)
            throw error
        }
    }

    /// Throws `EADDRINUSE` if a process already listens on the address, even with a shared port (`SO_REUSEPORT`), which
    /// `listen` would silently join. Does not check Unix sockets and port 0, because `listen` does.
    /// Connections that are still closing (TIME_WAIT) are ignored.
    public static func requireFree(_ address: SocketAddress) throws(SystemError) {
        guard case .ip(let ip, let port) = address, port != 0 else { return }
        let descriptor = socket(address.family, streamType, 0)
        guard descriptor >= 0 else { throw SystemError("socket") }
        defer { close(descriptor) }
        try set(descriptor, SOL_SOCKET, SO_REUSEADDR, "SO_REUSEADDR")
        if !ip.isIPv4 { try set(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, "IPV6_V6ONLY") }
        try bind(descriptor, to: address)
    }

    /// Configures a listener that another program made: non-blocking, closed on exec, with `setDelivery`. Returns its address.
    /// Throws, and leaves the descriptor unchanged, if it is not a listening stream socket.
    public static func adopt(listener descriptor: Int32) throws(SystemError) -> SocketAddress {
        guard try option(descriptor, SO_TYPE, "SO_TYPE") == Int32(SOCK_STREAM.rawValue),
            try option(descriptor, SO_ACCEPTCONN, "SO_ACCEPTCONN") != 0
        else { throw SystemError("listen", code: EINVAL) }
        guard let address = localAddress(descriptor) else { throw SystemError("getsockname", code: EAFNOSUPPORT) }
        let flags = fcntl(descriptor, F_GETFL)
        guard flags >= 0, fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0,
            fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0
        else { throw SystemError("fcntl") }
        if address.port != nil { setDelivery(descriptor) }
        return address
    }

    /// A copy of a descriptor, closed on exec.
    public static func copy(_ descriptor: Int32) throws(SystemError) -> Int32 {
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { throw SystemError("dup") }
        return copy
    }

    /// Accepts one connection: non-blocking, closed on exec. Connections that failed while waiting are skipped.
    public static func accept(_ listener: Int32) -> Acceptance {
        var storage = sockaddr_storage()
        for _ in 0..<64 {
            var length = UInt32(MemoryLayout<sockaddr_storage>.size)
            let descriptor = csystem_accept(listener, &storage, &length)
            if descriptor >= 0 {
                let peer = withUnsafeBytes(of: &storage) { bytes in
                    bytes.baseAddress.flatMap { SocketAddress($0, length: Int(length)) }
                }
                return .accepted(descriptor, from: peer ?? .unix(path: ""))
            }
            switch errno {
            case EAGAIN: return .wouldBlock
            case EMFILE, ENFILE: return .outOfDescriptors(errno)
            case EBADF, EFAULT, EINVAL, ENOTSOCK, EOPNOTSUPP, ENOBUFS, ENOMEM: return .failed(errno)
            default: continue  // EINTR, ECONNABORTED, EPERM, and errors that accept(2) advises to retry
            }
        }
        return .wouldBlock
    }

    /// Starts to connect: non-blocking, closed on exec, with `setDelivery`.
    public static func connect(to address: SocketAddress) -> Connection {
        if let standIn { return standIn.connect(to: address) }
        let descriptor = socket(address.family, streamType, 0)
        guard descriptor >= 0 else { return .failed(errno) }
        if address.family != AF_UNIX { setDelivery(descriptor) }
        let result = address.withSystemAddress { Glibc.connect(descriptor, $0, $1) }
        if result == 0 { return .connected(descriptor) }
        // After a signal the connect continues by itself: EINTR means EINPROGRESS here.
        if errno == EINPROGRESS || errno == EINTR {
            // Over the loopback it is already established.
            return peerAddress(descriptor) == nil ? .inProgress(descriptor) : .connected(descriptor)
        }
        let code = errno
        close(descriptor)
        return .failed(code)
    }

    /// Takes the pending error of a socket; 0 without one. After a connect in progress it shows whether that succeeded.
    public static func pendingError(_ descriptor: Int32) -> Int32 {
        if isStandIn(descriptor) { return standIn?.pendingError(descriptor) ?? EBADF }
        var code: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length) == 0 ? code : errno
    }

    // MARK: Moving bytes

    // `recv` and `send`, not `read` and `write`: over the loopback they take 3.6 % less CPU time, because the kernel checks less.

    /// Reads the available bytes, up to the size of the buffer.
    public static func read(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Transfer {
        if isStandIn(descriptor) { return standIn?.read(descriptor, into: buffer) ?? .failed(EBADF) }
        while true {
            let count = csystem_receive(descriptor, buffer.baseAddress, UInt(buffer.count))
            if count > 0 { return .bytes(count) }
            if count == 0 { return buffer.isEmpty ? .bytes(0) : .end }
            if errno != EINTR { return failure(errno) }
        }
    }

    /// Whether the connection is open and has no unread bytes: one system call.
    public static func isQuiet(_ descriptor: Int32) -> Bool {
        if isStandIn(descriptor) { return standIn?.isQuiet(descriptor) ?? false }
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) < 0 && errno == EAGAIN
    }

    /// Writes as much as the socket takes.
    @inline(__always)
    public static func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Transfer {
        if isStandIn(descriptor) { return writeToStandIn(descriptor, bytes) }
        while true {
            let count = csystem_send(descriptor, bytes.baseAddress, UInt(bytes.count))
            if count >= 0 { return .bytes(count) }
            if errno != EINTR { return failure(errno) }
        }
    }

    /// Writes several pieces in one call, at most 1024 of them, as much as the socket takes.
    public static func write(_ descriptor: Int32, pieces: UnsafeBufferPointer<iovec>) -> Transfer {
        if isStandIn(descriptor) {
            var bytes: [UInt8] = []
            for piece in pieces { bytes += UnsafeRawBufferPointer(start: piece.iov_base, count: piece.iov_len) }
            return bytes.withUnsafeBytes { writeToStandIn(descriptor, $0) }
        }
        while true {
            let count = writev(descriptor, pieces.baseAddress, Int32(min(pieces.count, 1024)))
            if count >= 0 { return .bytes(count) }
            if errno != EINTR { return failure(errno) }
        }
    }

    @inline(never)
    private static func writeToStandIn(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Transfer {
        standIn?.write(descriptor, bytes) ?? .failed(EBADF)
    }

    private static func failure(_ code: Int32) -> Transfer { code == EAGAIN ? .wouldBlock : .failed(code) }

    // MARK: Ending

    /// Two connected, non-blocking sockets of this process. `nil` if no descriptor is left.
    static func pair() -> (Int32, Int32)? {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        return socketpair(AF_UNIX, type, 0, &ends) == 0 ? (ends[0], ends[1]) : nil
    }

    /// Tells the peer that no more bytes follow; reading continues.
    public static func shutdownWriting(_ descriptor: Int32) {
        if isStandIn(descriptor) {
            standIn?.shutdownWriting(descriptor)
        } else {
            _ = shutdown(descriptor, Int32(SHUT_WR))
        }
    }

    /// Closes a descriptor. Its events must be gone: see `SocketEvents.close()`.
    public static func close(_ descriptor: Int32) {
        if isStandIn(descriptor) { return standIn?.close(descriptor) ?? () }
        // Not repeated after EINTR: on Linux the descriptor is then closed, and its number may already be in use again.
        _ = Glibc.close(descriptor)
    }

    /// Closes a connection with a reset, so that the peer cannot take the sent part for complete.
    public static func reset(_ descriptor: Int32) {
        if isStandIn(descriptor) { return standIn?.reset(descriptor) ?? () }
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
        close(descriptor)
    }

    // MARK: Querying and setting

    /// The process's limit of descriptors (`ulimit -n`); `nil` if it is unknown.
    public static var mostDescriptors: Int? {
        var limit = rlimit()
        let code = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return code == 0 ? Int(clamping: limit.rlim_cur) : nil
    }

    /// The number that the system would give to the next descriptor; `nil` if none is left.
    public static var lowestFreeDescriptor: Int32? {
        let descriptor = csystem_eventfd()
        guard descriptor >= 0 else { return nil }
        close(descriptor)
        return descriptor
    }

    /// Raises the process's soft limit (`ulimit -Sn`) to its hard limit (`ulimit -Hn`): each client and each connection to
    /// an origin server needs a descriptor, and many systems start services with 1,024.
    public static func raiseDescriptorLimit() {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard getrlimit(resource, &limit) == 0, limit.rlim_cur < limit.rlim_max else { return }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(resource, &limit)
    }

    /// The size that `reserveDescriptors` makes room for: half a MiB of kernel memory.
    private static let reservedDescriptors = 65536

    /// Makes room in the process's table of descriptors, as far as its limit (`ulimit -n`) allows.
    ///
    /// The system doubles the table when it is full. If threads share it, opening a descriptor meanwhile waits until
    /// each processor has passed a quiescent state (`synchronize_rcu`): 11 to 16 ms for all loops at 2,048 descriptors of a busy machine.
    public static func reserveDescriptors() {
        guard let mostDescriptors else { return }
        let descriptor = csystem_eventfd()
        guard descriptor >= 0 else { return }
        let last = Int32(min(mostDescriptors, reservedDescriptors)) - 1
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, last)
        if copy >= 0 { close(copy) }
        close(descriptor)
    }

    /// The maximum of unsent bytes that a connection keeps in the kernel, until its peer has shown that it reads fast. Bytes in flight
    /// are not counted.
    ///
    /// Without this limit, each slow peer would hold as much as its send buffer can grow to (4 MiB, `net.ipv4.tcp_wmem`). Some hundred
    /// such peers use up the system's memory for TCP (`net.ipv4.tcp_mem`). From then on segments of all connections are dropped, and
    /// sent again 200 ms later.
    static let mostUnsent: Int32 = 256 << 10

    /// Makes small pieces leave at once, and keeps at most `mostUnsent` unsent bytes. Connections accepted from our own
    /// listeners inherit both.
    static func setDelivery(_ descriptor: Int32) {
        setDelivery(descriptor, TCP_NODELAY, 1)
        setDelivery(descriptor, TCP_NOTSENT_LOWAT, mostUnsent)
    }

    /// Enables TCP keep-alive: a silent peer is probed after a minute, and given up after two. Other kinds of sockets ignore it.
    static func keepAlive(_ descriptor: Int32) {
        var on: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, socklen_t(MemoryLayout<Int32>.size))
        setDelivery(descriptor, TCP_KEEPIDLE, 60)
        setDelivery(descriptor, TCP_KEEPINTVL, 15)
        setDelivery(descriptor, TCP_KEEPCNT, 4)
    }

    /// Allows a connection to keep as many unsent bytes as its send buffer holds.
    static func liftUnsentLimit(_ descriptor: Int32) { setDelivery(descriptor, TCP_NOTSENT_LOWAT, 0) }

    private static func setDelivery(_ descriptor: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        setsockopt(descriptor, Int32(IPPROTO_TCP), option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    /// The address of this end; `nil` if the descriptor is not a supported socket.
    public static func localAddress(_ descriptor: Int32) -> SocketAddress? {
        isStandIn(descriptor) ? standIn?.localAddress(descriptor) : address { getsockname(descriptor, $0, $1) }
    }

    /// The address of the other end; `nil` without one.
    public static func peerAddress(_ descriptor: Int32) -> SocketAddress? {
        isStandIn(descriptor) ? standIn?.peerAddress(descriptor) : address { getpeername(descriptor, $0, $1) }
    }

    private static func address(
        _ call: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> SocketAddress? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) { storage in
            storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                call(pointer, &length) == 0 ? SocketAddress(UnsafeRawPointer(pointer), length: Int(length)) : nil
            }
        }
    }

    private static var streamType: Int32 {
        Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    }

    private static func set(
        _ descriptor: Int32, _ level: Int32, _ option: Int32, _ name: String
    ) throws(SystemError) {
        var on: Int32 = 1
        guard setsockopt(descriptor, level, option, &on, socklen_t(MemoryLayout<Int32>.size)) == 0 else {
            throw SystemError(name)
        }
    }

    private static func option(_ descriptor: Int32, _ option: Int32, _ name: String) throws(SystemError) -> Int32 {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(descriptor, SOL_SOCKET, option, &value, &length) == 0 else { throw SystemError(name) }
        return value
    }

    private static func bind(_ descriptor: Int32, to address: SocketAddress) throws(SystemError) {
        guard address.withSystemAddress({ Glibc.bind(descriptor, $0, $1) }) == 0 else { throw SystemError("bind") }
    }

    private static func removeStaleSocket(at path: String, _ address: SocketAddress) throws(SystemError) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFSOCK else { throw SystemError("bind", code: EADDRINUSE) }
        switch connect(to: address) {
        case .failed(ECONNREFUSED): unlink(path)
        case .failed: throw SystemError("bind", code: EADDRINUSE)
        case .connected(let descriptor), .inProgress(let descriptor):
            close(descriptor)
            throw SystemError("bind", code: EADDRINUSE)
        }
    }
}
