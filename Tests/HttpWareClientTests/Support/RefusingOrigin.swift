import Foundation
import HttpWare
import Synchronization

/// An origin server that speaks HTTP/2 in clear text. It refuses requests unseen after it has read them, and then answers one.
///
/// Each connection is served by one thread, after the one before it.
final class RefusingOrigin: Sendable {
    /// How a request is refused. RFC 9113 §8.7.
    enum Way: CaseIterable, Sendable {
        /// RST_STREAM with REFUSED_STREAM.
        case reset
        /// GOAWAY whose last stream is before that of the request; the connection ends.
        case goAway
    }

    let port: UInt16
    private let listener: Int32
    private let way: Way
    private let state: Mutex<State>

    private struct State {
        var refusals: Int
        var contents: [Int] = []
    }

    /// The lengths of the content of the requests that came, in their order.
    var contents: [Int] { state.withLock { $0.contents } }

    init(refusing refusals: Int, by way: Way) throws {
        self.way = way
        state = Mutex(State(refusals: refusals))
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = listener
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(descriptor, address, length) == 0 && listen(descriptor, 16) == 0
                    && getsockname(descriptor, address, &length) == 0
            }
        }
        port = UInt16(bigEndian: address.sin_port)
        guard isListening else { throw POSIXError(.EADDRINUSE) }
        Thread.detachNewThread { [self] in
            while true {
                guard case .accepted(let connection, _) = Socket.accept(descriptor) else { return }
                // This thread waits for each byte.
                _ = fcntl(connection, F_SETFL, fcntl(connection, F_GETFL) & ~O_NONBLOCK)
                serve(connection)
                close(connection)
            }
        }
    }

    /// Ends the server.
    func stop() { shutdown(listener, Int32(SHUT_RDWR)) }

    private func serve(_ connection: Int32) {
        // Its windows are 1 MiB.
        guard read(24, connection) != nil,
            write(frame(4, 0, 0, [0, 4, 0, 0x10, 0, 0]) + frame(8, 0, 0, [0, 0x10, 0, 0]), connection)
        else { return }
        var length = 0
        while let head = read(9, connection) {
            let size = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
            let (type, flags) = (head[3], head[4])
            let stream = head[5...].reduce(0) { $0 << 8 | UInt32($1) }
            guard let content = read(size, connection) else { return }
            if type == 4, flags & 1 == 0, !write(frame(4, 1, 0, []), connection) { return }
            if type == 1 { length = 0 }
            if type == 0 { length += content.count }
            guard type <= 1, flags & 1 != 0 else { continue }
            let isRefused = state.withLock { state in
                state.contents.append(length)
                state.refusals -= 1
                return state.refusals >= 0
            }
            switch (isRefused, way) {
            case (true, .reset): if !write(frame(3, 0, stream, [0, 0, 0, 7]), connection) { return }
            case (true, .goAway):
                guard write(frame(7, 0, 0, [0, 0, 0, 0, 0, 0, 0, 0]), connection) else { return }
                // A close with unread bytes would be a reset, which takes the frame away from the client.
                shutdown(connection, Int32(SHUT_WR))
                while read(1, connection) != nil {}
                return
            // :status 200. RFC 7541 Appendix A.
            case (false, _): if !write(frame(1, 5, stream, [0x88]), connection) { return }
            }
        }
    }

    private func frame(_ type: UInt8, _ flags: UInt8, _ stream: UInt32, _ content: [UInt8]) -> [UInt8] {
        let number = (0..<4).reversed().map { UInt8(truncatingIfNeeded: stream >> ($0 * 8)) }
        return [0, 0, UInt8(content.count), type, flags] + number + content
    }

    private func read(_ count: Int, _ connection: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let taken = bytes.withUnsafeMutableBytes {
                recv(connection, $0.baseAddress?.advanced(by: filled), count - filled, 0)
            }
            guard taken > 0 else { return nil }
            filled += taken
        }
        return bytes
    }

    private func write(_ bytes: [UInt8], _ connection: Int32) -> Bool {
        bytes.withUnsafeBytes { send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) } == bytes.count
    }
}
