import Glibc
import HttpWare
import Synchronization

/// Sends log lines to another machine, by UDP or TCP. Runs on the writer's thread without blocking it: another thread looks up
/// the name, and the socket is non-blocking.
///
/// A line is a message of RFC 5424, or the plain line with a line feed. With UDP each line is a datagram (RFC 5426). With TCP, a
/// message of RFC 5424 has its length in front (RFC 6587 §3.4.1).
final class LogConnection {
    /// Whether lines can be sent.
    enum Readiness {
        case isReady
        /// The connection is being made, or will be made later.
        case waits
        /// The connection just failed.
        case failed(String)
    }

    /// The result of sending.
    enum Outcome {
        case all
        /// The rest must wait.
        case later
        /// Sending failed, and `lost` lines are lost.
        case failed(String, lost: Int)
    }

    private enum State {
        case closed
        case lookingUp(Lookup)
        case connecting
        case open
    }

    private let target: LogOutput.Network
    private var state = State.closed
    private var descriptor: Int32 = -1
    private var addresses: [SocketAddress] = []
    private var retryAt: Int64 = .min
    private var failures = 0
    private var began: Int64 = 0
    /// The messages to be sent, and the offset where each ends.
    private var output: [UInt8] = []
    private var ends: [Int] = []
    private var sent = 0

    /// The maximum length of a message by UDP. RFC 5426 §3.2: "a maximum message size of up to 65535 octets minus the UDP and IP
    /// headers".
    private static let longestDatagram = 65_000
    /// The time limit of making a connection, and the maximum pause between two attempts, in nanoseconds.
    private static let patience: Int64 = 5_000_000_000
    private static let longestPause: Int64 = 30_000_000_000

    init(_ target: LogOutput.Network) { self.target = target }

    deinit { closeSocket() }

    // MARK: Connecting

    /// Checks the connection, and begins a new one when it is due.
    func prepare(now: Int64) -> Readiness {
        switch state {
        case .open: return .isReady
        case .closed:
            guard now >= retryAt else { return .waits }
            began = now
            if let address = IPAddress(target.host) {
                addresses = [.ip(address, port: target.port)]
                return connectNext(now)
            }
            state = .lookingUp(Lookup(target.host, port: target.port))
            return .waits
        case .lookingUp(let lookup):
            guard let found = lookup.result else {
                return now - began > LogConnection.patience ? fail("its name cannot be resolved in time", now) : .waits
            }
            switch found {
            case .success(let found):
                addresses = found
                return connectNext(now)
            case .failure(let error): return fail("its name cannot be resolved: \(error.text)", now)
            }
        case .connecting:
            var poll = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            guard Glibc.poll(&poll, 1, 0) > 0 else {
                guard now - began > LogConnection.patience else { return .waits }
                return connectNext(now, after: "it does not answer")
            }
            var code: Int32 = 0
            var size = socklen_t(MemoryLayout<Int32>.size)
            getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size)
            guard code == 0 else { return connectNext(now, after: SystemError.text(of: code)) }
            opened()
            return .isReady
        }
    }

    private func opened() {
        state = .open
        failures = 0
    }

    /// Connects to the next address.
    private func connectNext(_ now: Int64, after problem: String = "it has no address") -> Readiness {
        closeSocket()
        var problem = problem
        while !addresses.isEmpty {
            let address = addresses.removeFirst()
            let type = target.isDatagram ? SOCK_DGRAM : SOCK_STREAM
            let flags = Int32(type.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
            let family = address.address?.isIPv4 == true ? AF_INET : AF_INET6
            descriptor = socket(family, flags, 0)
            guard descriptor >= 0 else { return fail(SystemError.text(of: errno), now) }
            let result = address.withSystemAddress { Glibc.connect(descriptor, $0, $1) }
            if result == 0 {
                opened()
                return .isReady
            }
            if errno == EINPROGRESS {
                began = now
                state = .connecting
                return .waits
            }
            problem = SystemError.text(of: errno)
            closeSocket()
        }
        return fail(problem, now)
    }

    private func fail(_ problem: String, _ now: Int64) -> Readiness {
        closeSocket()
        state = .closed
        failures += 1
        retryAt = now + min(LogConnection.longestPause, 1_000_000_000 << Int64(min(failures - 1, 5)))
        return .failed(problem)
    }

    private func closeSocket() {
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
    }

    // MARK: Messages

    /// Whether everything that was added has been sent.
    var isEmpty: Bool { ends.isEmpty }

    /// Adds whole lines, each with its line end. Returns the number of lines that are too long.
    func add(_ lines: UnsafeRawBufferPointer, at time: WallTime) -> Int {
        var tooLong = 0
        // Facility daemon, severity info; no message id, no structured data.
        let head = Array(
            "<30>1 \(LogTime.text(time)) \(LogConnection.hostName) \(ProgramName.text) \(getpid()) - - ".utf8)
        for line in lines.split(separator: 0x0a) {
            let message = message(UnsafeRawBufferPointer(rebasing: line), behind: head)
            guard !target.isDatagram || message.count <= LogConnection.longestDatagram else {
                tooLong += 1
                continue
            }
            output += message
            ends.append(output.count)
        }
        return tooLong
    }

    private func message(_ line: UnsafeRawBufferPointer, behind head: [UInt8]) -> [UInt8] {
        switch target.framing {
        case .lines: return Array(line) + [0x0a]
        case .rfc5424:
            let message = head + line
            return target.isDatagram ? message : Array("\(message.count) ".utf8) + message
        }
    }

    /// The name of this machine as RFC 5424 §6.2.4 requires: visible ASCII, or `-`.
    private static let hostName: String = {
        var buffer = [CChar](repeating: 0, count: 256)
        let isNamed = gethostname(&buffer, buffer.count - 1) == 0
        let name = buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        return isNamed && !name.isEmpty && name.allSatisfy { (0x21...0x7e).contains($0) }
            ? String(decoding: name, as: UTF8.self) : "-"
    }()

    // MARK: Sending

    /// Sends as much as the socket accepts.
    func send(now: Int64) -> Outcome {
        while let end = ends.first {
            let count = output[sent..<(target.isDatagram ? end : output.count)].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count < 0 {
                let code = errno
                switch code {
                case EINTR: continue
                case EAGAIN, ENOBUFS: return .later
                // The error is about an earlier datagram, which no receiver accepted.
                case ECONNREFUSED where target.isDatagram:
                    pass(to: end)
                    return .failed(SystemError.text(of: code), lost: 1)
                default:
                    let lost = ends.count
                    (output, ends, sent) = ([], [], 0)
                    _ = fail(SystemError.text(of: code), now)
                    return .failed(SystemError.text(of: code), lost: lost)
                }
            }
            pass(to: target.isDatagram ? end : sent + count)
        }
        return .all
    }

    private func pass(to place: Int) {
        sent = place
        let whole = ends.firstIndex { $0 > place } ?? ends.count
        ends.removeFirst(whole)
        if ends.isEmpty { (output, sent) = ([], 0) }
    }
}

/// A lookup of a name by the system, on a separate thread.
private final class Lookup: Sendable {
    private static let queue = OffloadQueue(name: "httpware.log.names", threads: 1, most: 16)
    private let found = Mutex<Result<[SocketAddress], LookupError>?>(nil)

    init(_ host: String, port: UInt16) {
        let isTaken = Lookup.queue.submit({ Lookup.addresses(of: host, port: port) }) { result in
            self.found.withLock { $0 = result }
        }
        if !isTaken { found.withLock { $0 = .failure(LookupError(text: "too many names are looked up")) } }
    }

    var result: Result<[SocketAddress], LookupError>? { found.withLock { $0 } }

    private static func addresses(of host: String, port: UInt16) -> Result<[SocketAddress], LookupError> {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, nil, &hints, &list)
        guard code == 0 else {
            let text = gai_strerror(code).map { String(cString: $0).lowercased() }
            return .failure(LookupError(text: text ?? "error \(code)"))
        }
        defer { freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var next = list
        while let entry = next, addresses.count < 8 {
            next = entry.pointee.ai_next
            var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            guard
                getnameinfo(
                    entry.pointee.ai_addr, entry.pointee.ai_addrlen, &text, socklen_t(text.count), nil, 0,
                    NI_NUMERICHOST)
                    == 0
            else { continue }
            let name = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            if let address = IPAddress(name) { addresses.append(.ip(address, port: port)) }
        }
        return .success(addresses)
    }
}

/// Why a name could not be looked up.
private struct LookupError: Error { let text: String }
