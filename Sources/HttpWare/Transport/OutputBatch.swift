import Glibc

/// Gathers a connection's output during one event, so that a head and its content leave in one system call.
///
/// Each loop has one. Small pieces are copied to the loop's write buffer. Large pieces in the loop's read buffer are only
/// referenced until the end of the event, or until another connection writes. Arrays are referenced too, and retained until then.
/// Large pieces in other memory are sent at once.
final class OutputBatch {
    /// Pieces up to this size are copied.
    static let smallPiece = 2048
    static let mostPieces = 64

    private let loop: EventLoop
    private let buffer: UnsafeMutableRawBufferPointer
    private let pieces: UnsafeMutablePointer<iovec>
    private var pieceCount = 0
    private var used = 0
    /// Whether the last piece is the end of the buffer, and can grow with it.
    private var endsInBuffer = false
    /// The arrays that pieces refer to.
    private var kept: [[UInt8]] = []
    private var holder: SocketConnection?
    /// Whether an event is being handled that will flush at its end.
    var isInEvent = false

    init(loop: EventLoop) {
        self.loop = loop
        buffer = loop.writeBuffer
        pieces = .allocate(capacity: OutputBatch.mostPieces)  // lives as long as the loop's transport
    }

    deinit { pieces.deallocate() }

    /// Whether the buffer has room for `count` more bytes of the connection.
    @inline(__always)
    func hasRoom(_ count: Int, for connection: SocketConnection) -> Bool {
        claim(connection)
        return buffer.count &- used >= count
    }

    /// Makes room for a head of the connection. The caller writes into it and then reports the length with `wrote`.
    @inline(__always)
    func room(for connection: SocketConnection) -> UnsafeMutableRawBufferPointer {
        claim(connection)
        return UnsafeMutableRawBufferPointer(rebasing: buffer[used...])
    }

    /// The caller wrote this many bytes into the room.
    @inline(__always)
    func wrote(_ count: Int) {
        guard count > 0 else { return }
        if endsInBuffer {
            pieces[pieceCount - 1].iov_len += count
        } else {
            addPiece(buffer.baseAddress! + used, count)  // a loop's buffer is not empty
            endsInBuffer = true
        }
        used += count
    }

    /// Sends bytes after the gathered ones.
    func append(_ bytes: UnsafeRawBufferPointer, for connection: SocketConnection) {
        guard let base = bytes.baseAddress, bytes.count > 0 else { return }
        claim(connection)
        if bytes.count <= OutputBatch.smallPiece {
            if buffer.count - used < bytes.count {
                flush()
                // The socket did not take everything: these bytes must follow the connection's pending ones, like all later bytes.
                if connection.isBlocked { return connection.send(bytes) }
                claim(connection)
            }
            (buffer.baseAddress! + used).copyMemory(from: base, byteCount: bytes.count)
            wrote(bytes.count)
        } else {
            addPiece(UnsafeMutableRawPointer(mutating: base), bytes.count)
            endsInBuffer = false
            if !isReadBuffer(base) { return flush() }
        }
        if pieceCount >= OutputBatch.mostPieces - 1 { flush() }
    }

    /// Sends bytes after the gathered ones. A large array is retained, to be sent with the bytes that follow.
    func append(_ bytes: [UInt8], for connection: SocketConnection) {
        guard bytes.count > OutputBatch.smallPiece else {
            return bytes.withUnsafeBytes { append($0, for: connection) }
        }
        claim(connection)
        kept.append(bytes)
        // The array's memory stays in place while it is retained, because it is never modified.
        bytes.withUnsafeBytes { memory in
            guard let base = memory.baseAddress else { return }
            addPiece(UnsafeMutableRawPointer(mutating: base), memory.count)
        }
        endsInBuffer = false
        if pieceCount >= OutputBatch.mostPieces - 1 { flush() }
    }

    /// Sends the gathered output now if it retains arrays.
    func flushKept() {
        if !kept.isEmpty { flush() }
    }

    /// Whether the memory stays unchanged until the end of the event.
    @inline(__always)
    private func isReadBuffer(_ base: UnsafeRawPointer) -> Bool {
        guard let start = loop.readBuffer.baseAddress else { return false }
        return base >= UnsafeRawPointer(start) && base < UnsafeRawPointer(start + loop.readBuffer.count)
    }

    private func addPiece(_ base: UnsafeMutableRawPointer, _ count: Int) {
        pieces[pieceCount] = iovec(iov_base: base, iov_len: count)
        pieceCount += 1
    }

    @inline(__always)
    private func claim(_ connection: SocketConnection) {
        if holder === connection { return }
        flush()
        holder = connection
        if !isInEvent { loop.later { self.flush() } }
    }

    /// Sends the gathered output; the connection keeps the bytes that the socket does not take.
    @inline(__always)
    func flush() {
        guard let holder else { return }
        self.holder = nil
        let count = pieceCount
        pieceCount = 0
        used = 0
        endsInBuffer = false
        guard count > 0 else { return }
        if kept.isEmpty {
            holder.write(UnsafeMutableBufferPointer(start: pieces, count: count))
        } else {
            writeKept(count, to: holder)
        }
    }

    private func writeKept(_ count: Int, to holder: SocketConnection) {
        let arrays = kept
        kept = []
        withExtendedLifetime(arrays) {
            holder.write(UnsafeMutableBufferPointer(start: pieces, count: count))
        }
    }
}
