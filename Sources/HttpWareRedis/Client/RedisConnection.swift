import Glibc
import HttpWare

/// Receives the events of a connection to a Redis server. Called on the loop's thread.
protocol RedisConnectionOwner: AnyObject {
    /// The connection is made: commands can be sent.
    func connectionStands()
    func received(_ reply: RedisReply)
    /// The connection has failed and is closed. Called once, and not after `close()`.
    func connectionEnded(_ reason: String)
}

/// One connection to a Redis server: it sends commands and receives replies. Used on its loop's thread only.
///
/// The bytes pass through this loop's own events and sockets; hiredis encodes and decodes them. The asynchronous half of
/// hiredis (0.14) is not used. It ends the process by `assert` if a server sends an unexpected reply or an invalid message,
/// and it does its own name lookup.
final class RedisConnection: SocketEventHandler, LoopTurnHandler {
    private let loop: EventLoop
    private let socket: SocketEvents
    private let reader: RedisReplyReader
    private var stands = false
    private var output: [UInt8] = []
    private var written = 0
    private var isFlushing = false
    /// The time of the last received bytes, or the time when the connection was made.
    private(set) var lastReceived: LoopInstant
    private(set) var isClosed = false
    /// The receiver of events, which owns the connection.
    weak var owner: (any RedisConnectionOwner)?

    /// An empty output buffer larger than this is released, in bytes.
    private static let keptOutput = 64 << 10

    /// Starts to connect; `nil` if that fails at once.
    init?(to address: SocketAddress, loop: EventLoop, owner: any RedisConnectionOwner) {
        guard let reader = RedisReplyReader() else { return nil }
        switch Socket.connect(to: address) {
        case .connected(let descriptor), .inProgress(let descriptor):
            socket = SocketEvents(loop: loop, descriptor: descriptor)
        case .failed: return nil
        }
        self.loop = loop
        self.reader = reader
        self.owner = owner
        lastReceived = loop.now
        socket.handler = self
        // A connect ends by becoming writable, whether it succeeded or not. A finished one is writable at once.
        guard socket.enableWriting() else {
            socket.close()
            return nil
        }
    }

    /// Sends a command after earlier ones. All commands are written together when the loop has handled all ready events.
    func send(_ command: [UInt8]) {
        guard !isClosed else { return }
        output += command
        guard stands, !isFlushing, !socket.isWriting else { return }
        isFlushing = true
        loop.whenTurnEnds(self)
    }

    /// Closes the connection without notifying the owner. Can be called more than once.
    func close() {
        isClosed = true
        owner = nil
        output = []
        socket.close()
    }

    private func end(_ reason: String) {
        let owner = owner
        close()
        owner?.connectionEnded(reason)
    }

    func turnEnded() {
        isFlushing = false
        flush()
    }

    private func flush() {
        while !isClosed, written < output.count {
            let result = output.withUnsafeBytes {
                Socket.write(socket.descriptor, UnsafeRawBufferPointer(rebasing: $0[written...]))
            }
            switch result {
            case .bytes(let count): written += count
            case .wouldBlock:
                if !socket.enableWriting() { end("the connection cannot be watched") }
                return
            case .end: return end("the connection ended")
            case .failed(let code): return end(SystemError.text(of: code))
            }
        }
        guard !isClosed else { return }
        output.removeAll(keepingCapacity: output.count <= RedisConnection.keptOutput)
        written = 0
        socket.disableWriting()
    }

    func socketWritable() {
        guard !stands else { return flush() }
        let code = Socket.pendingError(socket.descriptor)
        guard code == 0 else { return end(SystemError.text(of: code)) }
        guard socket.enableReading() else { return end("the connection cannot be watched") }
        stands = true
        owner?.connectionStands()
        flush()
    }

    func socketReadable() {
        switch Socket.read(socket.descriptor, into: loop.readBuffer) {
        case .bytes(let count):
            lastReceived = loop.now
            do throws(RedisReplyReader.Fault) {
                try reader.feed(UnsafeRawBufferPointer(rebasing: loop.readBuffer[..<count]))
                // The owner may close the connection.
                while !isClosed, let reply = try reader.next() { owner?.received(reply) }
            } catch {
                end("it answers what is no Redis reply, or too much")
            }
        case .end: end("it closed the connection")
        case .wouldBlock: return
        case .failed(let code): end(SystemError.text(of: code))
        }
    }
}
