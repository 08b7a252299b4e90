import Glibc
import HttpWare

/// One request to an admin listener, for a command that has nothing else to do meanwhile.
struct AdminCall {
    /// Nobody answered, or what came was no response.
    struct Unreachable: Error, CustomStringConvertible {
        let description: String
    }

    let address: SocketAddress
    let token: Secret?
    /// Over all.
    var timeout = Duration.seconds(3)

    private static let largestResponse = 64 << 20

    /// Asks for a path; answers the status and the content.
    func get(_ path: String) throws(Unreachable) -> (status: Int, content: [UInt8]) {
        let deadline = ContinuousClock.now + timeout
        let descriptor = try connected(deadline)
        defer { Socket.close(descriptor) }
        // Without a persistent connection or chunks: what comes until the end is the content.
        var request = "GET \(path) HTTP/1.0\r\nHost: localhost\r\n"
        if let token { request += "Authorization: Bearer \(token.revealed)\r\n" }
        try send(Array((request + "\r\n").utf8), descriptor, deadline)
        return try parsed(try received(descriptor, deadline))
    }

    private func connected(_ deadline: ContinuousClock.Instant) throws(Unreachable) -> Int32 {
        switch Socket.connect(to: address) {
        case .connected(let descriptor): return descriptor
        case .failed(let code): throw failure(code)
        case .inProgress(let descriptor):
            do throws(Unreachable) {
                try wait(descriptor, POLLOUT, deadline)
            } catch {
                Socket.close(descriptor)
                throw error
            }
            let code = Socket.pendingError(descriptor)
            guard code == 0 else {
                Socket.close(descriptor)
                throw failure(code)
            }
            return descriptor
        }
    }

    private func send(_ bytes: [UInt8], _ descriptor: Int32, _ deadline: ContinuousClock.Instant) throws(Unreachable) {
        var rest = bytes[...]
        while !rest.isEmpty {
            switch rest.withUnsafeBytes({ Socket.write(descriptor, $0) }) {
            case .bytes(let count): rest = rest.dropFirst(count)
            case .wouldBlock: try wait(descriptor, POLLOUT, deadline)
            case .end: throw Unreachable(description: "\(address) closed the connection")
            case .failed(let code): throw failure(code)
            }
        }
    }

    private func received(_ descriptor: Int32, _ deadline: ContinuousClock.Instant) throws(Unreachable) -> [UInt8] {
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while all.count < AdminCall.largestResponse {
            switch buffer.withUnsafeMutableBytes({ Socket.read(descriptor, into: $0) }) {
            case .bytes(let count): all += buffer[..<count]
            case .wouldBlock: try wait(descriptor, POLLIN, deadline)
            case .end: return all
            case .failed(let code): throw failure(code)
            }
        }
        throw Unreachable(description: "\(address) answers with too much")
    }

    private func wait(_ descriptor: Int32, _ events: Int32, _ deadline: ContinuousClock.Instant) throws(Unreachable) {
        while true {
            let left = ContinuousClock.now.duration(to: deadline)
            var one = pollfd(fd: descriptor, events: Int16(events), revents: 0)
            let milliseconds = max(
                0, left.components.seconds * 1000 + left.components.attoseconds / 1_000_000_000_000_000)
            let count = poll(&one, 1, Int32(clamping: milliseconds))
            if count > 0 { return }
            if count == 0 {
                throw Unreachable(description: "\(address) does not answer in \(timeout.components.seconds) s")
            }
            if errno != EINTR { throw failure(errno) }
        }
    }

    private func failure(_ code: Int32) -> Unreachable {
        Unreachable(description: "\(address): \(String(cString: strerror(code)).lowercased())")
    }

    private func parsed(_ bytes: [UInt8]) throws(Unreachable) -> (status: Int, content: [UInt8]) {
        let line = String(decoding: bytes.prefix { $0 != 0x0d }, as: UTF8.self).split(separator: " ")
        let end = bytes.indices.dropLast(3).first { bytes[$0..<($0 + 4)].elementsEqual([0x0d, 0x0a, 0x0d, 0x0a]) }
        guard line.count >= 2, line[0].hasPrefix("HTTP/1."), let status = Int(line[1]), let end else {
            throw Unreachable(description: "\(address) does not answer as an admin listener does")
        }
        return (status, Array(bytes[(end + 4)...]))
    }
}
