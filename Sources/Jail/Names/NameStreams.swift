import HttpWare

/// Accepts connections for DNS queries. RFC 7766. Used on its loop's thread only.
final class NameStreams: SocketEventHandler {
    private let answers: NameAnswers
    private let socket: SocketEvents
    private var connections: [ObjectIdentifier: NameStream] = [:]

    /// The maximum number of connections; further ones are closed.
    private static let most = 64

    init(_ answers: NameAnswers, loop: EventLoop, descriptor: Int32) {
        self.answers = answers
        socket = SocketEvents(loop: loop, descriptor: descriptor)
        socket.handler = self
        socket.enableReading()
    }

    func socketReadable() {
        while case .accepted(let descriptor, _) = Socket.accept(socket.descriptor) {
            guard connections.count < NameStreams.most else {
                Socket.reset(descriptor)
                continue
            }
            let stream = NameStream(answers, SocketEvents(loop: socket.loop, descriptor: descriptor)) {
                [unowned self] in connections[ObjectIdentifier($0)] = nil
            }
            connections[ObjectIdentifier(stream)] = stream
        }
    }

    func socketWritable() {}

    func close() {
        socket.close()
        for stream in connections.values { stream.close() }
        connections = [:]
    }
}

/// A connection with DNS queries: each message begins with its length. RFC 1035 §4.2.2
private final class NameStream: SocketEventHandler, LoopTimerHandler {
    private let answers: NameAnswers
    private let socket: SocketEvents
    private let timer: LoopTimer
    private let ended: (NameStream) -> Void
    private var received: [UInt8] = []

    /// The maximum length of a query.
    private static let longest = 1500
    /// How long a client may be silent.
    private static let patience = Duration.seconds(10)

    init(_ answers: NameAnswers, _ socket: SocketEvents, ended: @escaping (NameStream) -> Void) {
        self.answers = answers
        self.socket = socket
        self.ended = ended
        timer = LoopTimer(loop: socket.loop)
        socket.handler = self
        timer.handler = self
        timer.set(after: NameStream.patience)
        socket.enableReading()
    }

    func socketReadable() {
        let count = withUnsafeTemporaryAllocation(byteCount: NameStream.longest + 2, alignment: 1) { buffer in
            guard case .bytes(let count) = Socket.read(socket.descriptor, into: buffer) else { return 0 }
            received.append(contentsOf: buffer[..<count])
            return count
        }
        guard count > 0 else { return end() }
        timer.set(after: NameStream.patience)
        while received.count >= 2 {
            let length = Int(received[0]) << 8 | Int(received[1])
            guard length <= NameStream.longest else { return end() }
            guard received.count >= 2 + length else { return }
            let response = answers.response(to: Array(received[2..<2 + length]))
            received.removeFirst(2 + length)
            guard let response, send(response) else { return end() }
        }
    }

    /// Returns false if the client does not take the response: it does not read, though responses are small.
    private func send(_ response: [UInt8]) -> Bool {
        let count = UInt16(clamping: response.count)
        let message = [UInt8(count >> 8), UInt8(truncatingIfNeeded: count)] + response
        return message.withUnsafeBytes { Socket.write(socket.descriptor, $0) } == .bytes(message.count)
    }

    func socketWritable() {}

    func timerFired(_ timer: LoopTimer) { end() }

    private func end() {
        close()
        ended(self)
    }

    func close() {
        timer.cancel()
        socket.close()
    }
}
