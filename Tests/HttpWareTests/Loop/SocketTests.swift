import Foundation
import Glibc
import Testing

@testable import HttpWare

@Suite(.timeLimit(.minutes(10))) struct SocketTests {
    private func path() -> String { "/tmp/httpware-test-\(getpid())-\(UInt64.random(in: 0 ... .max)).sock" }

    /// Waits until a descriptor is readable or writable, as a loop would.
    private func wait(_ descriptor: Int32, for events: Int32) {
        var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
        #expect(poll(&entry, 1, 5000) == 1)
    }

    private func accepted(_ listener: Int32) throws -> (Int32, SocketAddress) {
        wait(listener, for: POLLIN)
        guard case .accepted(let descriptor, let peer) = Socket.accept(listener) else {
            throw SystemError("accept")
        }
        return (descriptor, peer)
    }

    private func connected(_ address: SocketAddress) throws -> Int32 {
        switch Socket.connect(to: address) {
        case .connected(let descriptor): return descriptor
        case .inProgress(let descriptor):
            wait(descriptor, for: POLLOUT)
            #expect(Socket.pendingError(descriptor) == 0)
            return descriptor
        case .failed(let code): throw SystemError("connect", code: code)
        }
    }

    private func option(_ descriptor: Int32, _ level: Int32, _ name: Int32) -> Int32 {
        var value: Int32 = -1
        var length = socklen_t(4)
        getsockopt(descriptor, level, name, &value, &length)
        return value
    }

    @Test(arguments: ["127.0.0.1:0", "[::1]:0"])
    func `a TCP connection is made, named at both ends, and moves bytes`(text: String) throws {
        let listener = try Socket.listen(on: try #require(SocketAddress(text)))
        let address = try #require(Socket.localAddress(listener))
        #expect(address.port != 0 && address.isLoopback)
        if case .wouldBlock = Socket.accept(listener) {} else { Issue.record("nobody has connected") }
        let near = try connected(address)
        let (far, peer) = try accepted(listener)
        #expect(peer == Socket.localAddress(near))
        #expect(Socket.peerAddress(near) == address)
        #expect(Socket.localAddress(far) == address)
        for end in [near, far] {
            #expect(fcntl(end, F_GETFL) & O_NONBLOCK != 0)
            #expect(fcntl(end, F_GETFD) & FD_CLOEXEC != 0)
            #expect(option(end, Int32(IPPROTO_TCP), TCP_NODELAY) == 1)
            #expect(option(end, Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT) == Socket.mostUnsent)
        }
        var bytes: [UInt8] = Array("abcdef".utf8)
        bytes.withUnsafeMutableBytes { bytes in
            let pieces = [
                iovec(iov_base: bytes.baseAddress, iov_len: 2), iovec(iov_base: bytes.baseAddress! + 2, iov_len: 4),
            ]  // six bytes, so there is a base address
            #expect(pieces.withUnsafeBufferPointer { Socket.write(near, pieces: $0) } == .bytes(6))
            wait(far, for: POLLIN)
            #expect(Socket.read(far, into: bytes) == .bytes(6))
            #expect(Socket.read(far, into: bytes) == .wouldBlock)
            Socket.shutdownWriting(near)
            wait(far, for: POLLIN)
            #expect(Socket.read(far, into: bytes) == .end)
            Socket.reset(far)
            wait(near, for: POLLIN)
            #expect(Socket.read(near, into: bytes) == .failed(ECONNRESET))
            // SIGPIPE is ignored by the first loop of the process.
            #expect((try? EventLoop(name: "test")) != nil)
            #expect(Socket.write(near, UnsafeRawBufferPointer(bytes)) == .failed(EPIPE))
        }
        Socket.close(near)
        Socket.close(listener)
    }

    @Test func `listeners share a port only if they ask for it`() throws {
        let first = try Socket.listen(on: .loopback)
        let address = try #require(Socket.localAddress(first))
        let second = try Socket.listen(on: address)
        #expect(throws: SystemError("bind", code: EADDRINUSE)) { try Socket.listen(on: address, sharesPort: false) }
        Socket.close(first)
        Socket.close(second)
    }

    @Test func `an address where another process listens is not free, although the port could be shared`() throws {
        let listener = try Socket.listen(on: .loopback)
        let address = try #require(Socket.localAddress(listener))
        #expect(throws: SystemError("bind", code: EADDRINUSE)) { try Socket.requireFree(address) }
        let any = SocketAddress.ip(IPAddress(ipv4: 0), port: try #require(address.port))
        #expect(throws: SystemError("bind", code: EADDRINUSE)) { try Socket.requireFree(any) }
        // Connections that the listener accepted do not count as a listener: not while they stand, and not in TIME_WAIT.
        let near = try connected(address)
        let (far, _) = try accepted(listener)
        Socket.close(listener)
        try Socket.requireFree(address)
        Socket.close(far)
        Socket.close(near)
        try Socket.requireFree(address)
        Socket.close(try Socket.listen(on: address))
    }

    @Test func `port 0 and Unix sockets are looked at when they are bound`() throws {
        try Socket.requireFree(.loopback)
        try Socket.requireFree(.unix(path: "/nonexistent/socket"))
    }

    @Test func `over the loopback a connection stands at once`() throws {
        let listener = try Socket.listen(on: .loopback)
        defer { Socket.close(listener) }
        let address = try #require(Socket.localAddress(listener))
        // A busy machine may leave a segment for later.
        let stands = try (0..<50).contains { _ in
            let connection = Socket.connect(to: address)
            Socket.close(try accepted(listener).0)
            switch connection {
            case .connected(let descriptor):
                Socket.close(descriptor)
                return true
            case .inProgress(let descriptor): Socket.close(descriptor)
            case .failed(let code): throw SystemError("connect", code: code)
            }
            return false
        }
        #expect(stands)
    }

    @Test func `a connection that the server has no room for is in progress`() throws {
        let listener = try Socket.listen(on: .loopback)
        defer { Socket.close(listener) }
        #expect(listen(listener, 0) == 0)
        let address = try #require(Socket.localAddress(listener))
        // The queue holds one more than it was told: the handshake of those behind it is not answered.
        let waiting = try (0..<4).compactMap { _ -> Int32? in
            switch Socket.connect(to: address) {
            case .connected(let descriptor):
                Socket.close(descriptor)
                return nil
            case .inProgress(let descriptor): return descriptor
            case .failed(let code): throw SystemError("connect", code: code)
            }
        }
        #expect(waiting.contains { Socket.peerAddress($0) == nil })
        for descriptor in waiting { Socket.close(descriptor) }
    }

    @Test func `there is room for descriptors before they are there`() throws {
        Socket.reserveDescriptors()
        let most = try #require(Socket.mostDescriptors)
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("FDSize:") })
        #expect(try #require(Int(line.split(separator: "\t")[1])) >= min(most, 65536))
    }

    @Test func `a refused connection says so`() throws {
        // A port that is bound and not listened to: no other socket can get it meanwhile.
        let bound = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        #expect(SocketAddress.loopback.withSystemAddress { bind(bound, $0, $1) } == 0)
        switch Socket.connect(to: try #require(Socket.localAddress(bound))) {
        case .failed(let code): #expect(code == ECONNREFUSED)
        case .inProgress(let descriptor):
            wait(descriptor, for: POLLOUT)
            #expect(Socket.pendingError(descriptor) == ECONNREFUSED)
            Socket.close(descriptor)
        case .connected: Issue.record("nobody listens")
        }
        Socket.close(bound)
    }

    @Test func `a Unix socket has its mode, replaces a stale file and spares a live one`() throws {
        let path = path()
        let address = SocketAddress.unix(path: path)
        let stale = try Socket.listen(on: address)
        #expect(throws: SystemError("bind", code: EADDRINUSE)) { try Socket.listen(on: address) }
        Socket.close(stale)
        let listener = try Socket.listen(on: address, mode: 0o606)
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o606)
        let near = try connected(address)
        let (far, peer) = try accepted(listener)
        #expect(peer == .unix(path: ""))
        #expect(Socket.peerAddress(near) == address)
        for end in [near, far, listener] { Socket.close(end) }
        unlink(path)
    }

    @Test func `a file that is not a socket is left alone`() throws {
        let path = path()
        Socket.close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600))
        #expect(throws: SystemError("bind", code: EADDRINUSE)) { try Socket.listen(on: .unix(path: path)) }
        #expect(access(path, F_OK) == 0)
        unlink(path)
    }

    @Test func `a path that is too long is refused`() {
        let path = "/tmp/" + String(repeating: "x", count: 103)
        #expect(throws: SystemError("bind", code: ENAMETOOLONG)) { try Socket.listen(on: .unix(path: path)) }
    }

    @Test func `an error says what failed and why`() {
        #expect(SystemError("bind", code: EADDRINUSE).description == "bind: Address already in use")
        #expect(SystemError("accept", code: EMFILE).isOutOfDescriptors)
        #expect(!SystemError("accept", code: EAGAIN).isOutOfDescriptors)
    }
}
