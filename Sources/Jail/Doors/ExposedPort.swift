import HttpWare

/// A port of this machine's loopback that a program behind a wall reaches at its own loopback. Used on its loop's thread only.
final class ExposedPort: SocketEventHandler {
    private let socket: SocketEvents
    private let port: UInt16
    private var connections: [ObjectIdentifier: ExposedConnection] = [:]

    /// The maximum number of connections to one port; further ones are closed.
    private static let most = 256

    /// Takes over the listening descriptor.
    init(_ port: UInt16, loop: EventLoop, descriptor: Int32) {
        self.port = port
        socket = SocketEvents(loop: loop, descriptor: descriptor)
        socket.handler = self
        socket.enableReading()
    }

    func socketReadable() {
        while case .accepted(let descriptor, _) = Socket.accept(socket.descriptor) {
            guard connections.count < ExposedPort.most, let far = connected() else {
                Socket.reset(descriptor)
                continue
            }
            let connection = ExposedConnection(
                SocketEvents(loop: socket.loop, descriptor: descriptor),
                SocketEvents(loop: socket.loop, descriptor: far)
            ) { [unowned self] in connections[ObjectIdentifier($0)] = nil }
            connections[ObjectIdentifier(connection)] = connection
            connection.start()
        }
    }

    /// A connection to the port, to 127.0.0.1 or else to `::1`; `nil` if no server accepts one.
    private func connected() -> Int32? {
        for address in [IPAddress(ipv4: 0x7f00_0001), IPAddress(ipv6: 0, 1)] {
            switch Socket.connect(to: .ip(address, port: port)) {
            case .connected(let descriptor), .inProgress(let descriptor): return descriptor
            case .failed: continue
            }
        }
        return nil
    }

    func socketWritable() {}

    func close() {
        socket.close()
        for connection in connections.values { connection.close() }
        connections = [:]
    }
}

/// A program's connection and the one to this machine's loopback: each passes the other's bytes on. Used on its loop's thread only.
private final class ExposedConnection {
    private let near: ExposedEnd
    private let far: ExposedEnd
    private let ended: (ExposedConnection) -> Void

    init(_ near: SocketEvents, _ far: SocketEvents, ended: @escaping (ExposedConnection) -> Void) {
        self.near = ExposedEnd(near)
        self.far = ExposedEnd(far)
        self.ended = ended
    }

    func start() {
        near.other = far
        far.other = near
        near.whole = self
        far.whole = self
        near.start()
        far.start()
    }

    /// One end has ended or failed: the connection ends if both have ended, or if it failed.
    fileprivate func heard(failed: Bool) {
        guard failed || near.isDone && far.isDone else { return }
        close(failed: failed)
        ended(self)
    }

    func close(failed: Bool = false) {
        near.close(failed: failed)
        far.close(failed: failed)
    }
}

/// One of the two sockets, and the bytes that it does not take yet. At most one piece waits, and the other end is not read meanwhile.
private final class ExposedEnd: SocketEventHandler {
    private let socket: SocketEvents
    unowned var whole: ExposedConnection?
    unowned var other: ExposedEnd?
    private var waiting: [UInt8] = []
    /// Whether the peer sends no more, and whether the other's end was passed on to it.
    private var isReadWhole = false
    private var endsWhenSent = false
    private var hasEnded = false

    private static let piece = 64 * 1024

    init(_ socket: SocketEvents) {
        self.socket = socket
        socket.handler = self
    }

    /// Both directions have ended.
    var isDone: Bool { isReadWhole && hasEnded }

    func start() { socket.enableReading() }

    func socketReadable() {
        guard let other else { return }
        withUnsafeTemporaryAllocation(byteCount: ExposedEnd.piece, alignment: 1) { buffer in
            switch Socket.read(socket.descriptor, into: buffer) {
            case .bytes(let count):
                if !other.take(UnsafeRawBufferPointer(rebasing: buffer[..<count])) { socket.disableReading() }
            case .end:
                isReadWhole = true
                socket.disableReading()
                other.end()
            case .wouldBlock: break
            case .failed: whole?.heard(failed: true)
            }
        }
    }

    /// Sends bytes of the other end. Returns false if some wait.
    private func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var sent = 0
        if waiting.isEmpty {
            switch Socket.write(socket.descriptor, bytes) {
            case .bytes(let count): sent = count
            case .wouldBlock: break
            case .end, .failed:
                whole?.heard(failed: true)
                return true
            }
        }
        if sent == bytes.count { return true }
        waiting.append(contentsOf: bytes[sent...])
        socket.enableWriting()
        return false
    }

    func socketWritable() {
        guard !waiting.isEmpty else { return socket.disableWriting() }
        switch waiting.withUnsafeBytes({ Socket.write(socket.descriptor, $0) }) {
        case .bytes(let count): waiting.removeFirst(count)
        case .wouldBlock: return
        case .end, .failed: return whole?.heard(failed: true) ?? ()
        }
        guard waiting.isEmpty else { return }
        socket.disableWriting()
        if endsWhenSent { return end() }
        other?.continueReading()
    }

    private func continueReading() { if !isReadWhole { socket.enableReading() } }

    /// The other end sends no more.
    private func end() {
        endsWhenSent = true
        guard waiting.isEmpty else { return }
        Socket.shutdownWriting(socket.descriptor)
        hasEnded = true
        whole?.heard(failed: false)
    }

    func close(failed: Bool) {
        other = nil
        whole = nil
        let descriptor = socket.detach()
        guard descriptor >= 0 else { return }
        if failed { Socket.reset(descriptor) } else { Socket.close(descriptor) }
    }
}
