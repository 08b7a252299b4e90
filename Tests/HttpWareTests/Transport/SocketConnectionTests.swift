import Glibc
import HttpWareTesting
import Testing

@testable import HttpWare

/// Output that a peer does not read at once. Without a loop that runs: the test says when the socket is writable, and when.
@Suite(.timeLimit(.minutes(2))) struct SocketConnectionTests {
    private let clock = ManualClock()
    private let loop: EventLoop
    private let connection: SocketConnection
    private let peer: Int32

    init() throws {
        loop = try EventLoop(name: "sending", clock: clock)
        let listener = try Socket.listen(on: .loopback, sharesPort: false)
        defer { close(listener) }
        switch Socket.connect(to: try #require(Socket.localAddress(listener))) {
        case .connected(let descriptor), .inProgress(let descriptor): peer = descriptor
        case .failed(let code): throw SystemError("connect", code: code)
        }
        #expect(Self.isReady(listener, POLLIN, within: 10_000))
        guard case .accepted(let descriptor, _) = Socket.accept(listener) else { throw SystemError("accept") }
        connection = SocketConnection(
            transport: LoopTransport(loop: loop, resolver: nil),
            socket: SocketEvents(loop: loop, descriptor: descriptor),
            tls: nil)
    }

    /// Sends bytes in pieces of that size, in one event: as memory, or as arrays that have no other holder.
    private func send(_ content: [UInt8], by size: Int, asArrays: Bool = false) {
        content.withUnsafeBytes { bytes in
            connection.transport.inEvent {
                for start in stride(from: 0, to: bytes.count, by: size) {
                    let piece = UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + size, bytes.count)])
                    if asArrays { connection.send(Array(piece)) } else { connection.send(piece) }
                }
            }
        }
    }

    private static func isReady(_ descriptor: Int32, _ events: Int32, within milliseconds: Int32) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
        return poll(&entry, 1, milliseconds) == 1
    }

    private var limit: Int32 {
        var value: Int32 = -1
        var length = socklen_t(MemoryLayout<Int32>.size)
        getsockopt(connection.socket.descriptor, Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, &value, &length)
        return value
    }

    /// The peer reads until the socket takes more, after this time. Answers what it read.
    @discardableResult
    private func read(later: Duration) -> [UInt8] {
        var all: [UInt8] = []
        for _ in 0..<10_000 where !Self.isReady(connection.socket.descriptor, POLLOUT, within: 0) { all += readOnce() }
        clock.advance(by: later)
        loop.beginCallback()
        connection.socketWritable()
        loop.endCallback()
        return all
    }

    private func readOnce() -> [UInt8] {
        guard Self.isReady(peer, POLLIN, within: 1000) else { return [] }
        return [UInt8](unsafeUninitializedCapacity: 65536) { buffer, count in
            count = max(0, recv(peer, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT)))
        }
    }

    /// Pieces of 700 bytes are gathered, those of 3000 are not; a batch holds some hundred.
    @Test(arguments: [700, 2048, 3000], [false, true])
    func `bytes that do not fit go out in their order`(size: Int, asArrays: Bool) {
        // No stretch of it is like another one at a piece's distance.
        var content = [UInt8](repeating: 0, count: 4 << 20)
        content.withUnsafeMutableBytes { bytes in
            for index in 0..<(bytes.count / 4) {
                bytes.storeBytes(of: UInt32(index).bigEndian, toByteOffset: index * 4, as: UInt32.self)
            }
        }
        send(content, by: size, asArrays: asArrays)
        #expect(connection.isBlocked)
        var arrived: [UInt8] = []
        for _ in 0..<10_000 where connection.isBlocked { arrived += read(later: .seconds(1)) }
        for _ in 0..<10_000 where arrived.count < content.count { arrived += readOnce() }
        let isSame = arrived == content
        #expect(isSame && arrived.count == content.count)
        connection.reset()
        close(peer)
    }

    @Test func `an array goes out with what is sent before and after it in the same event`() {
        let pieces = ["7530\r\n", String(repeating: "c", count: 30_000), "\r\n0\r\n\r\n"].map { Array($0.utf8) }
        connection.transport.inEvent {
            for piece in pieces {
                connection.send(piece)
                #expect(!Self.isReady(peer, POLLIN, within: 0), "nothing leaves before the event ends")
            }
        }
        var arrived: [UInt8] = []
        for _ in 0..<10_000 where arrived.count < 30_013 { arrived += readOnce() }
        let isSame = arrived == pieces.reduce([], +)
        #expect(isSame)
        connection.reset()
        close(peer)
    }

    @Test func `of a peer that hardly reads little waits in the kernel, of a fast one what its buffer takes`() {
        send([UInt8](repeating: 0x78, count: 16 << 20), by: 16 << 20)
        #expect(connection.isBlocked && limit == Socket.mostUnsent)
        for _ in 0..<5 {
            read(later: .milliseconds(60))
            #expect(connection.isBlocked && limit == Socket.mostUnsent)
        }
        read(later: .milliseconds(40))
        #expect(connection.isBlocked && limit == 0)
        read(later: .seconds(1))
        #expect(limit == 0)
        connection.reset()
        close(peer)
    }
}
