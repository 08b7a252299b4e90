import Glibc
import Testing

@testable import HttpWare

/// An origin server at one loopback address that answers every request with its letter, and keeps connections. Lives on one loop.
final class NamedOrigin: SocketEventHandler {
    let address: SocketAddress
    private let letter: String
    private let events: SocketEvents
    private var connections: [Connection] = []

    /// Listens at an address, such as `127.0.0.2`; without a port, at a free one.
    init(_ letter: String, at host: String, port: UInt16 = 0, loop: EventLoop) throws {
        self.letter = letter
        let descriptor = try Socket.listen(
            on: .ip(try #require(IPAddress(host)), port: port), sharesPort: false)
        address = try #require(Socket.localAddress(descriptor))
        events = SocketEvents(loop: loop, descriptor: descriptor)
        events.handler = self
        events.enableReading()
    }

    var port: UInt16 { address.port ?? 0 }

    /// The number of open connections.
    var count: Int { connections.count { !$0.isClosed } }

    /// Ends with all connections: from now on, connections are refused.
    func stop() {
        events.close()
        for connection in connections { connection.close() }
        connections = []
    }

    func socketReadable() {
        while case .accepted(let descriptor, _) = Socket.accept(events.descriptor) {
            connections.append(Connection(events.loop, descriptor, letter))
        }
    }

    func socketWritable() {}

    private final class Connection: SocketEventHandler {
        private let events: SocketEvents
        private let letter: String
        private(set) var isClosed = false

        init(_ loop: EventLoop, _ descriptor: Int32, _ letter: String) {
            self.letter = letter
            events = SocketEvents(loop: loop, descriptor: descriptor)
            events.handler = self
            events.enableReading()
        }

        func close() {
            guard !isClosed else { return }
            isClosed = true
            events.close()
        }

        // Each request arrives in one piece: it is short, and has no content.
        func socketReadable() {
            guard case .bytes(let count) = Socket.read(events.descriptor, into: events.loop.readBuffer), count > 0
            else {
                return close()
            }
            Array("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n\(letter)".utf8).withUnsafeBytes {
                _ = Socket.write(events.descriptor, $0)
            }
        }

        func socketWritable() {}
    }
}

/// A listener whose queue is full: the system answers no further packet to it, as if the address were unused.
final class SilentListener {
    let port: UInt16
    private let descriptor: Int32
    private var filling: [Int32] = []

    init(at host: String) throws {
        descriptor = try Socket.listen(
            on: .ip(try #require(IPAddress(host)), port: 0), backlog: 0, sharesPort: false)
        let address = try #require(Socket.localAddress(descriptor))
        port = address.port ?? 0
        for _ in 0..<4 {
            switch Socket.connect(to: address) {
            case .connected(let descriptor), .inProgress(let descriptor): filling.append(descriptor)
            case .failed: break
            }
        }
    }

    func close() {
        for descriptor in filling { Socket.close(descriptor) }
        Socket.close(descriptor)
    }
}
