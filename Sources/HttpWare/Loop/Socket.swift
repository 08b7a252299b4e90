import CSystemShims
public import Glibc

/// Calls on non-blocking sockets: each makes one system call where it can, repeats it after a signal, and names what came of it.
public enum Socket {
    /// What came of reading or writing.
    public enum Transfer: Equatable, Sendable {
        /// That many bytes were moved: at least one, when at least one was asked for.
        case bytes(Int)
        /// The peer sends no more. Only when reading.
        case end
        /// Nothing can be moved now; the loop tells when.
        case wouldBlock
        /// The connection failed, with this `errno`.
        case failed(Int32)
    }

    /// What came of accepting.
    public enum Acceptance: Sendable {
        /// A connection: its descriptor, and whom it comes from.
        case accepted(Int32, from: SocketAddress)
        /// No connection waits.
        case wouldBlock
        /// The process (`EMFILE`) or the machine (`ENFILE`) has no descriptor left; the connection waits on.
        case outOfDescriptors(Int32)
        /// The listener failed, with this `errno`.
        case failed(Int32)
    }

    /// What came of connecting.
    public enum Connection: Equatable, Sendable {
        /// The connection stands: a Unix socket, or the same host.
        case connected(Int32)
        /// The descriptor becomes writable when the connection stands or has failed; `pendingError` says which.
        case inProgress(Int32)
        /// It failed at once, with this `errno`; nothing is left open.
        case failed(Int32)
    }

    // MARK: Making

    /// Makes a listener: non-blocking, closed on exec, with `setDelivery` for the connections it accepts.
    ///
    /// Several listeners of one address share its connections if all ask for that (`SO_REUSEPORT`); IPv6 takes no IPv4.
    /// For a Unix socket `mode` sets the permissions, and the file of a socket that nobody listens to is replaced; any other
    /// file is left alone and refused with `EADDRINUSE`.
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
                // The file is made with no more than this mode, cut by the umask; then it gets all of it.
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

    /// Throws `EADDRINUSE` where somebody listens on the address already, also one who shares its port (`SO_REUSEPORT`), with whom
    /// `listen` would share it without a word. Says nothing of Unix sockets and of port 0, for which `listen` looks itself.
    /// Connections that are still closing (TIME_WAIT) are nobody's.
    public static func requireFree(_ address: SocketAddress) throws(SystemError) {
        guard case .ip(let ip, let port) = address, port != 0 else { return }
        let descriptor = socket(address.family, streamType, 0)
        guard descriptor >= 0 else { throw SystemError("socket") }
        defer { close(descriptor) }
        try set(descriptor, SOL_SOCKET, SO_REUSEADDR, "SO_REUSEADDR")
        if !ip.isIPv4 { try set(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, "IPV6_V6ONLY") }
        try bind(descriptor, to: address)
    }

    /// Makes a listener that another program made one like ours: non-blocking, closed on exec, with `setDelivery`. Answers its address.
    /// Throws, and leaves it as it is, where it is no stream socket that listens.
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

    /// Accepts one connection: non-blocking, closed on exec. Connections that failed while they waited are passed over.
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
            default: continue  // EINTR, ECONNABORTED, EPERM, and what accept(2) says to treat like EAGAIN by retrying
            }
        }
        return .wouldBlock
    }

    /// Starts to connect: non-blocking, closed on exec, with `setDelivery`.
    public static func connect(to address: SocketAddress) -> Connection {
        let descriptor = socket(address.family, streamType, 0)
        guard descriptor >= 0 else { return .failed(errno) }
        if address.family != AF_UNIX { setDelivery(descriptor) }
        let result = address.withSystemAddress { Glibc.connect(descriptor, $0, $1) }
        if result == 0 { return .connected(descriptor) }
        // After a signal the connect goes on by itself: EINTR is EINPROGRESS here.
        if errno == EINPROGRESS || errno == EINTR {
            // Over the loopback it stands by now, and need not be waited for.
            return peerAddress(descriptor) == nil ? .inProgress(descriptor) : .connected(descriptor)
        }
        let code = errno
        close(descriptor)
        return .failed(code)
    }

    /// The error that waits at a socket, taken from it; 0 for none. After a connect in progress: whether it stands.
    public static func pendingError(_ descriptor: Int32) -> Int32 {
        var code: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length) == 0 ? code : errno
    }

    // MARK: Moving bytes

    // `recv` and `send`, not `read` and `write`: over the loopback they take 3.6 % less CPU time, as the kernel has less to look at.

    /// Reads what is there, as much as the buffer holds.
    public static func read(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Transfer {
        while true {
            let count = csystem_receive(descriptor, buffer.baseAddress, UInt(buffer.count))
            if count > 0 { return .bytes(count) }
            if count == 0 { return buffer.isEmpty ? .bytes(0) : .end }
            if errno != EINTR { return failure(errno) }
        }
    }

    /// Whether the connection stands and the peer has sent nothing that was not read: one system call.
    public static func isQuiet(_ descriptor: Int32) -> Bool {
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) < 0 && errno == EAGAIN
    }

    /// Writes as much as there is room for.
    @inline(__always)
    public static func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Transfer {
        while true {
            let count = csystem_send(descriptor, bytes.baseAddress, UInt(bytes.count))
            if count >= 0 { return .bytes(count) }
            if errno != EINTR { return failure(errno) }
        }
    }

    /// Writes several pieces in one call, at most 1024 of them, as much as there is room for.
    public static func write(_ descriptor: Int32, pieces: UnsafeBufferPointer<iovec>) -> Transfer {
        while true {
            let count = writev(descriptor, pieces.baseAddress, Int32(min(pieces.count, 1024)))
            if count >= 0 { return .bytes(count) }
            if errno != EINTR { return failure(errno) }
        }
    }

    private static func failure(_ code: Int32) -> Transfer { code == EAGAIN ? .wouldBlock : .failed(code) }

    // MARK: Ending

    /// Two sockets of this process that are connected with each other; neither blocks. `nil` where no descriptor is left.
    static func pair() -> (Int32, Int32)? {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        return socketpair(AF_UNIX, type, 0, &ends) == 0 ? (ends[0], ends[1]) : nil
    }

    /// Tells the peer that nothing more comes; reading goes on.
    public static func shutdownWriting(_ descriptor: Int32) { _ = shutdown(descriptor, Int32(SHUT_WR)) }

    /// Closes a descriptor. Its events must be gone: see `SocketEvents.close()`.
    public static func close(_ descriptor: Int32) {
        // Not repeated after EINTR: on Linux the descriptor is closed then, and its number may be another's already.
        _ = Glibc.close(descriptor)
    }

    /// Closes a connection with a reset, so that the peer cannot take what was sent for complete.
    public static func reset(_ descriptor: Int32) {
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
        close(descriptor)
    }

    // MARK: Asking and setting

    /// How many descriptors the process may have (`ulimit -n`); `nil` where the system does not say.
    public static var mostDescriptors: Int? {
        var limit = rlimit()
        let code = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return code == 0 ? Int(clamping: limit.rlim_cur) : nil
    }

    /// The lowest number that the system would give to the next descriptor; `nil` if there is none left.
    public static var lowestFreeDescriptor: Int32? {
        let descriptor = csystem_eventfd()
        guard descriptor >= 0 else { return nil }
        close(descriptor)
        return descriptor
    }

    /// Raises the process's own limit (`ulimit -Sn`) to what the system allows it (`ulimit -Hn`): each client and each connection to
    /// an origin server takes a descriptor, and many systems start services with 1,024.
    public static func raiseDescriptorLimit() {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard getrlimit(resource, &limit) == 0, limit.rlim_cur < limit.rlim_max else { return }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(resource, &limit)
    }

    /// As many descriptors as `reserveDescriptors` makes room for: half a MiB of the kernel's memory.
    private static let reservedDescriptors = 65536

    /// Makes room in the process's table of descriptors, as far as it may have them (`ulimit -n`).
    ///
    /// The system doubles the table when it is full. Where threads share it, whoever opens a descriptor meanwhile waits until
    /// each processor has been seen elsewhere (`synchronize_rcu`): 11 to 16 ms for all loops at 2,048 descriptors of a busy machine.
    public static func reserveDescriptors() {
        guard let mostDescriptors else { return }
        let descriptor = csystem_eventfd()
        guard descriptor >= 0 else { return }
        let last = Int32(min(mostDescriptors, reservedDescriptors)) - 1
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, last)
        if copy >= 0 { close(copy) }
        close(descriptor)
    }

    /// How many bytes that were never sent a connection keeps in the kernel, until its peer has shown that it takes them fast: what is
    /// under way is not counted.
    ///
    /// Without this bound each peer that hardly reads holds as much as its send buffer grows to (4 MiB, `net.ipv4.tcp_wmem`); some hundred
    /// of them take what the system has for TCP (`net.ipv4.tcp_mem`), and from then on segments of all connections are dropped, and sent
    /// again 200 ms later.
    static let mostUnsent: Int32 = 256 << 10

    /// Sends small pieces at once, and keeps no more than `mostUnsent` of what a peer does not take. A connection accepted from our own
    /// listeners inherits both.
    static func setDelivery(_ descriptor: Int32) {
        setDelivery(descriptor, TCP_NODELAY, 1)
        setDelivery(descriptor, TCP_NOTSENT_LOWAT, mostUnsent)
    }

    /// Lets TCP ask a silent peer whether it is still there: after a minute, and gives it up after two. Sockets of other kinds ignore it.
    static func keepAlive(_ descriptor: Int32) {
        var on: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, socklen_t(MemoryLayout<Int32>.size))
        setDelivery(descriptor, TCP_KEEPIDLE, 60)
        setDelivery(descriptor, TCP_KEEPINTVL, 15)
        setDelivery(descriptor, TCP_KEEPCNT, 4)
    }

    /// Lets a connection keep as much as its send buffer holds.
    static func liftUnsentLimit(_ descriptor: Int32) { setDelivery(descriptor, TCP_NOTSENT_LOWAT, 0) }

    private static func setDelivery(_ descriptor: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        setsockopt(descriptor, Int32(IPPROTO_TCP), option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    /// The address of this end; `nil` if the descriptor is no socket of ours.
    public static func localAddress(_ descriptor: Int32) -> SocketAddress? {
        address { getsockname(descriptor, $0, $1) }
    }

    /// The address of the other end; `nil` if there is none.
    public static func peerAddress(_ descriptor: Int32) -> SocketAddress? {
        address { getpeername(descriptor, $0, $1) }
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
