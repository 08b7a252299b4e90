import Glibc
import HttpWare

/// What a connection to a Redis server tells. Called on the loop's thread.
protocol RedisConnectionOwner: AnyObject {
    /// It stands: commands may be sent.
    func connectionStands()
    func received(_ reply: RedisReply)
    /// It is over, and closed. Told once, and not after `close()`.
    func connectionEnded(_ reason: String)
}

/// One connection to a Redis server: commands go out, replies come in. Used on its loop's thread only.
///
/// The bytes go through this loop's own events and sockets; hiredis makes and reads them. Its asynchronous half (0.14) is not
/// used: it ends the process by `assert` when a server sends a reply that nobody asked for, or a message that is none, and it
/// connects by a lookup of its own.
final class RedisConnection: SocketEventHandler, LoopTurnHandler {
    private let loop: EventLoop
    private let socket: SocketEvents
    private let reader: RedisReplyReader
    private var stands = false
    private var output: [UInt8] = []
    private var written = 0
    private var isFlushing = false
    /// When something came last, or the connection was made.
    private(set) var lastReceived: LoopInstant
    private(set) var isClosed = false
    /// Who is told; it holds the connection.
    weak var owner: (any RedisConnectionOwner)?

    /// An output buffer larger than this is given back when it is empty.
    private static let keptOutput = 64 << 10

    /// Begins to connect; `nil` when that fails at once.
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
        // Writable is how a connect ends, well or not; one that stands already is writable at once.
        guard socket.enableWriting() else {
            socket.close()
            return nil
        }
    }

    /// Sends a command behind those before it, all together when the loop has looked at everything that is ready.
    func send(_ command: [UInt8]) {
        guard !isClosed else { return }
        output += command
        guard stands, !isFlushing, !socket.isWriting else { return }
        isFlushing = true
        loop.whenTurnEnds(self)
    }

    /// Ends it; nobody is told. More than once does no harm.
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
                // Whoever is told may close it.
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
